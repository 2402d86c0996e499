#pragma once

#include <cstdint>
#include <span>

#include "bank/lloyd.h"

namespace marginmerge {

struct SeedingOptions {
    std::size_t count = 128;  ///< centres wanted
    std::size_t trials = 6;   ///< points drawn for each
    std::uint64_t seed = 42;
    std::size_t threads = 0;
};

/// Greedy k-means++: for each new centre some points are drawn by weight times `distance`, and the one that leaves
/// the least cost is taken. `distance` holds each point's squared distance to the centres there are (infinite: there
/// are none) and is brought up to date. Returns `count` rows, fewer when every point is a centre.
Matrix seed_centres(const WeightedPoints& points, const SeedingOptions& options, std::span<float> distance);

}  // namespace marginmerge
