#include "kernels/reference.h"

#include <cmath>
#include <limits>
#include <string_view>

#include "kernels/maxsim.h"

namespace marginmerge::reference {

namespace {

constexpr float lowest = -std::numeric_limits<float>::infinity();

float multiply_add(float a, float b, float sum, bool fused) { return fused ? std::fma(a, b, sum) : sum + a * b; }

}  // namespace

bool fused_level() {
    const std::string_view name = kernel_name();
    return name.starts_with("AVX");
}

float inner_product(const float* a, const float* b, std::size_t d, bool fused) {
    float sum = 0.0f;
    for (std::size_t t = 0; t < d; ++t) sum = multiply_add(a[t], b[t], sum, fused);
    return sum;
}

float interleaved_sum(std::span<const float> values, std::size_t parts) {
    std::vector<float> part(parts, 0.0f);
    for (std::size_t i = 0; i < values.size(); ++i) part[i % parts] += values[i];
    for (std::size_t half = parts / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

void winners(ConstMatrix query, ConstMatrix document, bool fused, std::span<float> best,
             std::span<std::int32_t> winner) {
    for (std::size_t i = 0; i < query.rows; ++i) {
        best[i] = lowest;
        winner[i] = -1;
        for (std::size_t j = 0; j < document.rows; ++j) {
            const float s = inner_product(query.row(i), document.row(j), query.cols, fused);
            if (s > best[i]) {
                best[i] = s;
                winner[i] = static_cast<std::int32_t>(j);
            }
        }
    }
}

float maxsim(ConstMatrix query, ConstMatrix document, bool fused) {
    if (document.rows == 0) return lowest;
    std::vector<float> best(query.rows);
    std::vector<std::int32_t> winner(query.rows);
    winners(query, document, fused, best, winner);
    return interleaved_sum(best, 16);
}

float maxsim(const PreparedInt8Query& query, Int8View document) {
    if (document.rows == 0) return lowest;
    const Int8View u = query.rows();
    std::vector<float> best(u.rows, lowest);
    for (std::size_t i = 0; i < u.rows; ++i) {
        for (std::size_t j = 0; j < document.rows; ++j) {
            std::int32_t total = 0;
            for (std::size_t t = 0; t < u.dim; ++t) total += u.codes[i * u.dim + t] * document.codes[j * u.dim + t];
            best[i] = std::max(best[i], static_cast<float>(total) * document.scales[j]);
        }
        best[i] *= u.scales[i];
    }
    return interleaved_sum(best, 16);
}

float maxsim(const PreparedBitsQuery& query, BitsView document) {
    if (document.rows == 0) return lowest;
    const std::size_t stride = bit_row_bytes(query.dim());
    std::vector<float> best(query.tokens(), lowest);
    for (std::size_t i = 0; i < query.tokens(); ++i) {
        const std::int16_t* u = query.values().data() + i * query.dim();
        for (std::size_t j = 0; j < document.rows; ++j) {
            std::int32_t total = 0;
            for (std::size_t t = 0; t < query.dim(); ++t) {
                const bool positive = (document.codes[j * stride + t / 8] >> (t % 8)) & 1U;
                total += positive ? u[t] : -u[t];
            }
            best[i] = std::max(best[i], static_cast<float>(total) * document.scales[j]);
        }
        best[i] *= query.scales()[i];
    }
    return interleaved_sum(best, 16);
}

float dot(const float* a, const float* b, std::size_t d, bool fused) {
    constexpr std::size_t parts = 32;
    float part[parts] = {};
    for (std::size_t t = 0; t < d; ++t) part[t % parts] = multiply_add(a[t], b[t], part[t % parts], fused);
    return interleaved_sum(part, parts);
}

}  // namespace marginmerge::reference
