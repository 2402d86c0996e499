#pragma once

#include <span>

#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// out = (features - mean) / deviation, [n,15].
void standardise(ConstMatrix features, const FeatureScaling& scaling, Matrix& out);

/// Residuals h_i = clip(g_theta(x_i), -clip, clip) of standardised features [n,15]. `hidden` is
/// scratch.
void network_residual(const Network& network, ConstMatrix standardised, double clip, Matrix& hidden,
                      std::span<float> out);

}  // namespace marginmerge
