#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lab/dataset.h"
#include "marginmerge/merge/model.h"

namespace marginmerge::lab {

/// Milliseconds a page that each stage of the construction takes, on one thread, median over sampled pages.
struct StageTimes {
    std::vector<std::pair<std::string, double>> stages;
    double total = 0;
    std::size_t pages = 0;
};
/// The paper's construction. The model must have a network.
StageTimes paper_stages(const Dataset& data, const Model& model, Recipe recipe, std::size_t pages);
/// A whole recipe, without its stages.
double page_time(const Dataset& data, const Model& model, const Recipe& recipe, std::size_t pages);

/// Milliseconds to score every document for one query, one thread, median over queries.
double search_time(const MultiVectorSet& documents, const MultiVectorSet& queries, VectorCode code, std::size_t count);

}  // namespace marginmerge::lab
