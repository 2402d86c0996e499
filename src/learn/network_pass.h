#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// Patches are worked on in blocks of lanes; the arrays below are padded to a multiple of this.
inline constexpr std::size_t patch_block = 16;
constexpr std::size_t padded_patches(std::size_t n) { return (n + patch_block - 1) / patch_block * patch_block; }

/// Standardised features, feature-major: out [15, padded n], padding zero.
Matrix standardise_by_feature(ConstMatrix raw_features, const FeatureScaling& scaling);

/// What the forward pass keeps for the backward pass: activations and GELU slopes, unit-major
/// [32|16, padded n].
struct NetworkTrace {
    std::size_t padded = 0;
    Matrix a1, slope1, a2, slope2;
};

/// h = W3 gelu(W2 gelu(W1 x + b1) + b2) + b3 for every patch, exact (erf) GELU, before clipping.
/// features [15, padded n]; out has padded n entries. `trace` may be null when no gradient is wanted.
void network_forward(const Network& network, ConstMatrix features, NetworkTrace* trace, std::span<float> out);

/// Adds dL/dtheta to `gradient` (1,057 entries) for dL/dh given per patch (padded n, padding zero).
void network_backward(const Network& network, ConstMatrix features, const NetworkTrace& trace,
                      std::span<const float> d_out, std::span<float> gradient);

}  // namespace marginmerge
