#pragma once

#include <map>
#include <string>

namespace marginmerge {

/// Graded relevance: query id -> document id -> grade (0 = judged not relevant). Ordered, so that
/// iterating is the same everywhere.
using Judgements = std::map<std::string, std::map<std::string, int>>;

}  // namespace marginmerge
