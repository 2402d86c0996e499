#pragma once

#include <map>
#include <string>
#include <vector>

namespace marginmerge {

/// One document in a query's ranking.
struct RankedDocument {
    std::string id;
    double score = 0;
};

/// Rankings: query id -> documents, best first. Ordered by query id, so that iterating is the same
/// everywhere.
using RankedRun = std::map<std::string, std::vector<RankedDocument>>;

}  // namespace marginmerge
