#include "learn/split.h"

#include <algorithm>
#include <cmath>

#include "core/numpy_random.h"

namespace marginmerge {

Split split_validation(std::vector<std::int64_t> items, double share, std::uint32_t seed) {
    Split split;
    if (items.empty()) return split;
    NumpyRandom(seed).shuffle(items);
    const auto taken = std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(items.size())));
    split.validation.assign(items.begin(), items.begin() + taken);
    split.train.assign(items.begin() + taken, items.end());
    std::sort(split.validation.begin(), split.validation.end());
    std::sort(split.train.begin(), split.train.end());
    return split;
}

Split split_documents(std::int64_t n, double evaluation_share, std::uint32_t evaluation_seed, double validation_share,
                      std::uint32_t validation_seed) {
    const std::vector<std::int64_t> order = NumpyRandom(evaluation_seed).permutation(n);
    // nearbyint rounds halves to even, as Python's round does.
    const auto count =
        std::min(n, std::max<std::int64_t>(1, std::llrint(std::nearbyint(evaluation_share * static_cast<double>(n)))));
    std::vector<std::int64_t> rest(order.begin() + count, order.end());
    std::sort(rest.begin(), rest.end());
    Split split = split_validation(std::move(rest), validation_share, validation_seed);
    split.evaluation.assign(order.begin(), order.begin() + count);
    return split;
}

}  // namespace marginmerge
