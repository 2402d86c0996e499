#pragma once

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Effective rank of a page, (sum s^2)^2 / sum s^4 over its singular values; needs no decomposition,
/// since it equals (tr G)^2 / |G|_F^2 for G = V^T V or V V^T. 0 for a page without vectors.
double effective_rank(ConstMatrix v);

}  // namespace marginmerge
