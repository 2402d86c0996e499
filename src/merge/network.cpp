#include "merge/network.h"

#include <algorithm>
#include <array>

#include "kernels/elementwise.h"
#include "kernels/page_rows.h"

namespace marginmerge {

namespace {

constexpr std::size_t block_rows = 64;  // activations of a block stay in the first-level cache

template <std::size_t inputs, std::size_t outputs>
std::array<float, inputs * outputs> transpose(const float* weights) {
    std::array<float, inputs * outputs> out;
    for (std::size_t o = 0; o < outputs; ++o)
        for (std::size_t i = 0; i < inputs; ++i) out[i * outputs + o] = weights[o * inputs + i];
    return out;
}

}  // namespace

void standardise(ConstMatrix features, const FeatureScaling& scaling, Matrix& out) {
    out.reshape(features.rows, feature_count);
    for (std::size_t i = 0; i < features.rows; ++i)
        for (std::size_t f = 0; f < feature_count; ++f)
            out(i, f) = (features(i, f) - scaling.mean[f]) / scaling.deviation[f];
}

void network_residual(const Network& network, ConstMatrix standardised, double clip, Matrix& hidden,
                      std::span<float> out) {
    const float* theta = network.parameters.data();
    const auto w1 = transpose<feature_count, hidden_1>(theta + Network::w1);
    const auto w2 = transpose<hidden_1, hidden_2>(theta + Network::w2);
    hidden.reshape(block_rows, hidden_1 + hidden_2);
    float* first = hidden.data();
    float* second = first + block_rows * hidden_1;
    const auto limit = static_cast<float>(clip);
    for (std::size_t begin = 0; begin < standardised.rows; begin += block_rows) {
        const std::size_t rows = std::min(block_rows, standardised.rows - begin);
        dense_layer(standardised.row(begin), rows, feature_count, w1.data(), theta + Network::b1, hidden_1, first);
        gelu_of({first, rows * hidden_1}, {first, rows * hidden_1});
        dense_layer(first, rows, hidden_1, w2.data(), theta + Network::b2, hidden_2, second);
        gelu_of({second, rows * hidden_2}, {second, rows * hidden_2});
        for (std::size_t r = 0; r < rows; ++r) {
            float sum = theta[Network::b3];
            for (std::size_t j = 0; j < hidden_2; ++j) sum += theta[Network::w3 + j] * second[r * hidden_2 + j];
            out[begin + r] = std::clamp(sum, -limit, limit);
        }
    }
}

}  // namespace marginmerge
