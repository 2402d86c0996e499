#include "kernels/convert.h"

#include <bit>
#include <cstring>

#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

void WidenAll(const void* in, ScalarType type, std::size_t count, float* out) {
    switch (type) {
        case ScalarType::f32: return ToFloats<ScalarType::f32>(in, count, out);
        case ScalarType::f16: return ToFloats<ScalarType::f16>(in, count, out);
        case ScalarType::bf16: return ToFloats<ScalarType::bf16>(in, count, out);
    }
}

/// Returns how many numbers were done; the caller rounds the rest one by one.
std::size_t NarrowAll(const float* HWY_RESTRICT in, ScalarType type, std::size_t count,
                      std::uint16_t* HWY_RESTRICT out) {
    const FloatTag df;
    const std::size_t whole = count / Lanes() * Lanes();
    if (type == ScalarType::bf16) {
        const WordTag dw;
        for (std::size_t i = 0; i < whole; i += Lanes()) {
            const auto bits = hn::BitCast(dw, hn::LoadU(df, in + i));
            const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(dw, 1U));
            const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(dw, 0x7FFFU))));
            const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(dw, 0x40U));
            const auto nan = hn::RebindMask(dw, hn::Ne(hn::BitCast(df, bits), hn::BitCast(df, bits)));
            const auto result = hn::BitCast(IntTag(), hn::IfThenElse(nan, quiet, rounded));
            hn::StoreU(hn::DemoteTo(HalfTag(), result), HalfTag(), out + i);
        }
        return whole;
    }
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, FloatTag> dh;
    for (std::size_t i = 0; i < whole; i += Lanes())
        hn::StoreU(hn::DemoteTo(dh, hn::LoadU(df, in + i)), dh, reinterpret_cast<hwy::float16_t*>(out + i));
    return whole;
#else
    return 0;
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(WidenAll);
HWY_EXPORT(NarrowAll);

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

namespace {

std::uint16_t float_to_brain(float f) {
    const auto bits = std::bit_cast<std::uint32_t>(f);
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace

void to_float(VectorsView in, float* out) {
    const std::size_t count = in.rows * in.dim;
    if (count > 0) MARGINMERGE_DISPATCH(WidenAll)(in.data, in.type, count, out);
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
    const std::size_t done = MARGINMERGE_DISPATCH(NarrowAll)(in.data(), type, in.size(), p);
    for (std::size_t i = done; i < in.size(); ++i)
        p[i] = type == ScalarType::f16 ? float_to_half(in[i]) : float_to_brain(in[i]);
}

}  // namespace marginmerge
#endif  // HWY_ONCE
