#pragma once

#include <cstddef>
#include <numeric>
#include <span>

#include "core/random.h"

namespace marginmerge {

/// An index drawn with chances in proportion to `weights`, none of them negative; their number when all are zero.
inline std::size_t draw_in_proportion(std::span<const float> weights, Random& random) {
    const double target = random.uniform() * std::accumulate(weights.begin(), weights.end(), 0.0);
    double sum = 0;
    std::size_t last = weights.size();
    for (std::size_t i = 0; i < weights.size(); ++i) {
        if (!(weights[i] > 0)) continue;
        last = i;
        sum += weights[i];
        if (sum > target) break;
    }
    return last;
}

}  // namespace marginmerge
