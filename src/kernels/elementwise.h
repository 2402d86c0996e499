#pragma once

#include <span>

namespace marginmerge {

// Functions of every element, in float32. Relative error at most 1e-6 against the double-precision
// function unless said otherwise. `in` and `out` have the same size and may be the same span.

/// e^x; 0 below -87.3, infinite above 88.7.
void exp_of(std::span<const float> in, std::span<float> out);
/// Natural logarithm; absolute error near 1 within 1e-6. Positive finite arguments.
void log_of(std::span<const float> in, std::span<float> out);
/// The error function; absolute error within 1e-6.
void erf_of(std::span<const float> in, std::span<float> out);
/// GELU in its exact form x * (1 + erf(x / sqrt 2)) / 2; absolute error within 1e-6.
void gelu_of(std::span<const float> in, std::span<float> out);
/// The hyperbolic tangent; absolute error within 1e-6.
void tanh_of(std::span<const float> in, std::span<float> out);

/// Coverage of a page by its prototypes: out[i] = exp(max((x[i] - best) / tau, -50)).
void coverage_of(std::span<const float> x, float best, float tau, std::span<float> out);

}  // namespace marginmerge
