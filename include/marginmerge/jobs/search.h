#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "marginmerge/index/index.h"

namespace marginmerge {

struct SearchJobOptions {
    std::filesystem::path index;    ///< any multi-vector file or an index folder
    std::filesystem::path queries;  ///< a multi-vector file
    SearchOptions search;
    bool measure_recall = false;  ///< search exactly as well and say what a first pass lost
};

struct SearchJobReport {
    std::vector<std::string> queries;    ///< ids, in the order of the file
    std::vector<std::vector<Hit>> hits;  ///< for each query, best first
    double seconds = 0;                  ///< searching, without opening files
    IndexStats index;
    std::string kernel;  ///< instruction set that ran
    /// Share of the exact top k that a first pass kept, when measured.
    std::optional<double> recall;
};

SearchJobReport search_job(const SearchJobOptions& options);

/// The results as a TREC run, one line a hit, queries in the order of their file. Scores have the digits it
/// takes to read the same float back, ranks tell the order of equal scores.
std::string trec_run_text(const SearchJobReport& report);
/// The results as one JSON document.
std::string search_json(const SearchJobReport& report);
/// Writes either as a file, atomically.
void write_results(const std::filesystem::path& path, const std::string& text);

}  // namespace marginmerge
