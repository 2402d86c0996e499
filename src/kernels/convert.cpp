#include "kernels/convert.h"

#include <bit>
#include <cstring>

namespace marginmerge {

float half_to_float(std::uint16_t h) {
    const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000U) << 16;
    std::uint32_t exponent = (h >> 10) & 0x1FU;
    std::uint32_t mantissa = h & 0x3FFU;
    if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13));
    if (exponent == 0) {
        if (mantissa == 0) return std::bit_cast<float>(sign);
        exponent = 113;  // subnormal: shift until the hidden bit appears
        while ((mantissa & 0x400U) == 0) {
            mantissa <<= 1;
            --exponent;
        }
        return std::bit_cast<float>(sign | (exponent << 23) | ((mantissa & 0x3FFU) << 13));
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

std::uint16_t float_to_half(float f) {
    const auto bits = std::bit_cast<std::uint32_t>(f);
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude >= 0x7F800000U)
        return static_cast<std::uint16_t>(sign | (magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U));
    if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
    if (magnitude < 0x38800000U) {  // subnormal half: let float addition do the rounding
        const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
    }
    const std::uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13));
}

void to_float(VectorsView in, float* out) {
    const std::size_t n = in.rows * in.dim;
    if (n == 0) return;
    if (in.type == ScalarType::f32) {
        std::memcpy(out, in.data, n * sizeof(float));
        return;
    }
    const auto* p = static_cast<const std::uint16_t*>(in.data);
    if (in.type == ScalarType::f16) {
        for (std::size_t i = 0; i < n; ++i) out[i] = half_to_float(p[i]);
    } else {
        for (std::size_t i = 0; i < n; ++i) out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(p[i]) << 16);
    }
}

Matrix to_float(VectorsView in) {
    Matrix m;
    m.reshape(in.rows, in.dim);
    to_float(in, m.data());
    return m;
}

void from_float(std::span<const float> in, ScalarType type, void* out) {
    if (type == ScalarType::f32) {
        if (!in.empty()) std::memcpy(out, in.data(), in.size_bytes());
        return;
    }
    auto* p = static_cast<std::uint16_t*>(out);
    for (std::size_t i = 0; i < in.size(); ++i) {
        if (type == ScalarType::f16) {
            p[i] = float_to_half(in[i]);
        } else {
            const auto bits = std::bit_cast<std::uint32_t>(in[i]);
            p[i] = static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
        }
    }
}

}  // namespace marginmerge
