#include "kernels/elementwise.h"

#include <algorithm>
#include <cmath>

namespace marginmerge {

namespace {
template <class F>
void each(std::span<const float> in, std::span<float> out, F f) {
    for (std::size_t i = 0; i < in.size(); ++i) out[i] = f(in[i]);
}
}  // namespace

void exp_of(std::span<const float> in, std::span<float> out) {
    each(in, out, [](float x) { return std::exp(x); });
}
void log_of(std::span<const float> in, std::span<float> out) {
    each(in, out, [](float x) { return std::log(x); });
}
void erf_of(std::span<const float> in, std::span<float> out) {
    each(in, out, [](float x) { return std::erf(x); });
}
void gelu_of(std::span<const float> in, std::span<float> out) {
    each(in, out, [](float x) { return 0.5f * x * (1.0f + std::erf(x * 0.70710678f)); });
}
void tanh_of(std::span<const float> in, std::span<float> out) {
    each(in, out, [](float x) { return std::tanh(x); });
}
void coverage_of(std::span<const float> x, float best, float tau, std::span<float> out) {
    each(x, out, [&](float v) { return std::exp(std::max((v - best) / tau, -50.0f)); });
}

}  // namespace marginmerge
