#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// The members of each cluster, and their vectors side by side. Reused from page to page.
struct ClusterLists {
    std::vector<std::int32_t> begin;    ///< [k+1]: cluster c is positions begin[c] .. begin[c+1]
    std::vector<std::int32_t> members;  ///< [n] patch at each position, ascending inside a cluster
    Matrix vectors;                     ///< [n,d] rows of V in that order

    std::size_t clusters() const { return begin.size() - 1; }
    std::size_t first(std::size_t c) const { return static_cast<std::size_t>(begin[c]); }
    std::size_t size(std::size_t c) const { return static_cast<std::size_t>(begin[c + 1] - begin[c]); }
    std::size_t patch(std::size_t position) const { return static_cast<std::size_t>(members[position]); }
};

/// Groups patches by `assign` (every value in [0,k)).
void group_clusters(ConstMatrix v, std::span<const std::int32_t> assign, std::size_t k, ClusterLists& out);

/// Scratch of assign_to_anchors.
struct AnchorRows {
    std::vector<std::int32_t> order;   ///< clusters by ascending anchor
    std::vector<std::int32_t> number;  ///< cluster of an anchor's patch [n]
    Matrix vectors;                    ///< [k,d] in that order
};

/// What is known of the nearest anchors beforehand: among the first `anchors` of them, as a patch number, lowest on a
/// tie, and its similarity, for every patch.
struct KnownNearest {
    std::size_t anchors = 0;
    std::span<const std::int32_t> patch;
    std::span<const float> similarity;
};

/// Nearest anchor of every patch (number in `anchors`); on a tie the anchor with the lower patch
/// number, whatever the order of the picks. An anchor always owns itself.
void assign_to_anchors(ConstMatrix v, std::span<const std::int32_t> anchors, const KnownNearest& known,
                       AnchorRows& rows, std::vector<std::int32_t>& assign, std::vector<float>& similarity);

/// out[c] = unit( sum_{i in c} weight[i] v_i ), weights by patch; an empty span means 1. A sum that
/// vanishes is replaced by the vector of the cluster's first patch.
void cluster_centroids(const ClusterLists& lists, std::span<const float> weight, MutMatrix out);

}  // namespace marginmerge
