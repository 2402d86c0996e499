#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "marginmerge/data/judgements.h"

namespace marginmerge {

/// Relevance judgements in any of the usual forms, told apart by their columns:
///   query doc               two columns, grade 1
///   query doc grade         three columns (BEIR), with or without a header line
///   query iteration doc grade   four columns (TREC)
/// Columns are separated by tabs (ids may then hold spaces) or by blanks. Grades are whole numbers
/// from -1000 to 1000. A pair judged twice with different grades is an error.
Judgements read_qrels(const std::filesystem::path& path);

/// The same from memory; `source` names it in errors.
Judgements parse_qrels(std::string_view text, const std::string& source);

/// Writes the BEIR form: header line and three tab-separated columns.
void write_qrels(const std::filesystem::path& path, const Judgements& judgements);

}  // namespace marginmerge
