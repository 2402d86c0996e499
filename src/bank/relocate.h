#pragma once

#include <cstdint>
#include <functional>

#include "bank/lloyd.h"

namespace marginmerge {

struct RelocateOptions {
    std::size_t rounds = 12;     ///< at most
    std::size_t iterations = 8;  ///< of Lloyd's in a round, at most
    std::size_t trials = 16;     ///< points tried for each new centre; with few of them most rounds fail on real tokens
    std::uint64_t seed = 42;
    std::size_t threads = 0;
    Cluster* cluster = nullptr;
    std::function<void()> step;  ///< called once a round; may be empty
};

/// Leaves a local minimum of Lloyd's iterations: a round merges the pairs of clusters whose union costs least, seeds as
/// many centres anew where the cost is, iterates, and is taken back unless the inertia fell. A round that failed is
/// followed by one with half as many pairs, down to one. `assignment` belongs to `centres` before and after.
void relocate_centres(const WeightedPoints& points, const RelocateOptions& options, Matrix& centres,
                      Assignment& assignment);

}  // namespace marginmerge
