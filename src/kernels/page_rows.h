#pragma once

#include <cstddef>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

// Small loops over patches that the construction of a page runs thousands of times.

/// Clamps the responses of a page [n,m] to [-1,1]; best[t] is the largest of column t, at least -1.
void clamp_responses(MutMatrix responses, float* best);

/// coverage[i,t] = exp(max((responses[i,t] - best[t]) scale, -50)).
void coverage_of_responses(ConstMatrix responses, const float* best, float scale, MutMatrix coverage);

/// sum_t omega_t max(0, coverage_t - covered_t) in float64, over m prototypes. Number t goes to
/// partial sum t % 8 and nothing is fused, so every level gives the same bits, and the result never
/// rises when a covered_t does: rounding is monotone.
double coverage_gain(const float* coverage, const float* covered, const double* omega, std::size_t m);

/// Weighted mean, maximum (at least -1) and weighted population deviation about the mean of one
/// patch's responses, in eight partial sums.
struct ResponseStatistics {
    float mean, high, deviation;
};
ResponseStatistics response_statistics(const float* response, const float* omega, std::size_t m);

/// For every column c of `similarity` [members, columns]: the mean of its up to `neighbours` largest numbers, largest
/// first, leaving out row first + c (the column's own) and what is not a number. 0 when there is only one member.
constexpr std::size_t neighbours = 5;
void neighbour_means(const float* similarity, std::size_t members, std::size_t columns, std::size_t first, float* out);

/// out[r,o] = bias[o] + sum_i x[r,i] weight[i,o] for a dense layer of 16 or 32 outputs; the weights are
/// [inputs, outputs], the transpose of how networks are stored.
void dense_layer(const float* x, std::size_t rows, std::size_t inputs, const float* weight, const float* bias,
                 std::size_t outputs, float* out);

}  // namespace marginmerge
