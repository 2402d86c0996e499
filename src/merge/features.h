#pragma once

#include "merge/workspace.h"

namespace marginmerge {

/// The fifteen raw features of every patch into `out` [n,15], in the paper's order: anchor
/// similarity, similarity to the uniform and to the response centroid, prototype relevance, log(1+size),
/// size/n, rank by falling anchor similarity / max(size-1,1), column, row, anchor indicator, local
/// redundancy, weighted mean response, maximal response, weighted standard deviation of the
/// responses, weighted coverage (= relevance).
///
/// Reads w.clusters (anchors, assign, relevance, anchor_cosine, base_weight), w.responses and
/// w.lists; fills w.uniform_centroids and w.response_centroids. The two coordinates are cell centres in
/// (0,1) when `use_grid` and the grid is known, and 0 for vectors past the grid or without one.
void compute_features(const PageInput& page, bool use_grid, PageWorkspace& w, Matrix& out);

}  // namespace marginmerge
