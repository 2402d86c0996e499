#pragma once

#include "merge/registry.h"

namespace marginmerge {

/// Spherical k-means of a page from the recipe's anchors, eight rounds or until nothing moves.
/// centres [k,d] are unit vectors in pick order, mean_norm[c] is the norm of the mean of the
/// members of c (1 for a centre without members), owner is the assignment the centres are means of.
void page_kmeans(const RepresentativeRequest& request, PageWorkspace& w, Matrix& centres, std::vector<float>& mean_norm,
                 std::vector<std::int32_t>& owner);

}  // namespace marginmerge
