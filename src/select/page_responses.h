#pragma once

#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// How a page answers the prototype bank, patch by patch. Matrices are [n,M], the transpose of the
/// paper's notation, so that everything about one patch is contiguous. Reused from page to page.
struct PageResponses {
    std::vector<float> omega;      ///< omega_t [M], prototype weights
    Matrix responses;              ///< z_t . v_i, clamped to [-1,1]
    Matrix coverage;               ///< C_ti = exp(-(b_t - z_t . v_i) / tau_c), exponent not below -50
    std::vector<float> best;       ///< b_t [M], best response of the page
    std::vector<float> relevance;  ///< s_i = sum_t omega_t C_ti [n]
};

/// Fills everything but omega, which the caller has set. v [n,d], z [M,d].
void compute_responses(ConstMatrix v, ConstMatrix z, double tau_c, PageResponses& out);

}  // namespace marginmerge
