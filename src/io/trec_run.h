#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "marginmerge/data/run.h"

namespace marginmerge {

/// Appends one query's ranking as TREC lines "query Q0 document rank score tag", rank from 1,
/// scores with as many digits as it takes to read the same float back. Fields are separated by
/// blanks, or by tabs in a line whose ids hold a blank.
void append_trec_lines(std::string& out, std::string_view query, std::span<const RankedDocument> ranking,
                       std::string_view tag);

/// A whole run as a file, atomically, queries in the order of the map.
void write_trec_run(const std::filesystem::path& path, const RankedRun& run, std::string_view tag = "marginmerge");

/// Reads a run; documents are ordered by descending score, equal scores by rank.
RankedRun read_trec_run(const std::filesystem::path& path);
RankedRun parse_trec_run(std::string_view text, const std::string& source);

}  // namespace marginmerge
