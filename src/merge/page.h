#pragma once

#include <cstdint>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// One page on its way through the construction: what comes in.
struct PageInput {
    ConstMatrix vectors;       ///< V [n,d], unit rows
    PatchGrid grid;            ///< zero when unknown
    std::uint64_t seed = 42;   ///< of this page: mix_seed(recipe.seed, page index)
    ConstMatrix remembered{};  ///< [m,d] what judged queries asked of it, see Memory; heeded by `fitted` alone
};

/// What the clusters of a page look like to the weighting network (frozen during training).
struct PageClusters {
    std::vector<std::int32_t> anchors;  ///< [k] in pick order
    std::vector<std::int32_t> assign;   ///< [n] cluster of each patch; an anchor owns itself
    std::vector<float> relevance;       ///< s_i [n]
    std::vector<float> anchor_cosine;   ///< v_i . v_a(c(i)) [n]
    std::vector<float> base_weight;     ///< exp(anchor_cosine/tau_a) (s_i+eps)^p [n]
    Matrix features;                    ///< raw, [n,15]
};

/// What comes out, in pick order where the method has one.
struct CompressedPage {
    Matrix representatives;           ///< [k,d]
    std::vector<std::int32_t> owner;  ///< [n] representative of each original vector, -1 for none
};

}  // namespace marginmerge
