#pragma once

#include <cstdint>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "merge/workspace.h"

namespace marginmerge {

/// One step of a tree: the cluster of patch b joins the cluster of patch a. Both are the lowest of their clusters.
struct WardMerge {
    double height;
    std::int32_t a, b;
};

/// Pages of more vectors than this work from centroids: n^2 distances of a larger one would fill 64 MB a thread.
constexpr std::size_t ward_distance_rows = 4096;

/// The whole Ward tree of v [n,d], n-1 merges in no particular order.
/// @param distance_rows pages up to this many rows keep all distances, which is several times as fast
std::vector<WardMerge> ward_tree(ConstMatrix v, PageWorkspace& w, std::size_t distance_rows = ward_distance_rows);

}  // namespace marginmerge
