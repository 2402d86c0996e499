#pragma once

#include <cstdint>
#include <vector>

namespace marginmerge {

/// Which items (documents or queries, by index) are on which side. Each list ascends, except that
/// `evaluation` keeps the order in which the items were drawn.
struct Split {
    std::vector<std::int64_t> evaluation;
    std::vector<std::int64_t> validation;
    std::vector<std::int64_t> train;
};

/// Moves max(1, floor(share * n)) of `items` to validation: NumPy's RandomState(seed).shuffle of the
/// items in the given order, the first ones taken. No items: nothing on either side.
Split split_validation(std::vector<std::int64_t> items, double share = 0.1, std::uint32_t seed = 42);

/// The paper's split of n documents: RandomState(0) permutes them, the first max(1, round(0.3 n))
/// (halves to even) are the evaluation side, a tenth of the rest is validation.
Split split_documents(std::int64_t n, double evaluation_share = 0.3, std::uint32_t evaluation_seed = 0,
                      double validation_share = 0.1, std::uint32_t validation_seed = 42);

}  // namespace marginmerge
