#pragma once

#include <memory>
#include <string>
#include <vector>

#include "learn/objectives.h"

namespace marginmerge::test {

/// The reference training set: twelve pages, twenty queries, their negatives and the start.
struct TrainOracle {
    std::vector<Matrix> vectors;
    std::vector<TrainingPage> pages;
    std::vector<PreparedQuery> queries;
    Matrix full_scores;
    std::vector<std::int32_t> gold;
    std::vector<std::int32_t> negatives;  ///< [20, 8]
    Parameters start;

    TrainOracle();
    TrainingExample example(std::size_t query) const;
};

Network load_network(const std::string& folder);

}  // namespace marginmerge::test
