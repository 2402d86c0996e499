// Vectors of stored numbers to float32 and back, for the level at hand.
#if defined(MARGINMERGE_KERNELS_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_CONVERT_INL_H_
#undef MARGINMERGE_KERNELS_CONVERT_INL_H_
#else
#define MARGINMERGE_KERNELS_CONVERT_INL_H_
#endif

#include <cstring>

#include "kernels/tile-inl.h"
#include "marginmerge/core/matrix.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

using HalfTag = hn::Rebind<std::uint16_t, FloatTag>;
using WordTag = hn::RebindToUnsigned<FloatTag>;

/// Half to float, every value exactly: the bits moved into place are the value times 2^-112.
HWY_INLINE FloatVec FromHalf(const std::uint16_t* p) {
    const FloatTag df;
#if HWY_TARGET <= HWY_AVX2 && HWY_ARCH_X86
    const hn::Rebind<hwy::float16_t, FloatTag> dh;
    return hn::PromoteTo(df, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(p)));
#else
    const WordTag dw;
    const auto bits = hn::PromoteTo(dw, hn::LoadU(HalfTag(), p));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(dw, 0x8000U)));
    const auto magnitude = hn::And(bits, hn::Set(dw, 0x7FFFU));
    const auto scaled = hn::Mul(hn::BitCast(df, hn::ShiftLeft<13>(magnitude)), hn::Set(df, 0x1.0p112f));
    const auto special = hn::IfThenElseZero(hn::Gt(hn::BitCast(IntTag(), magnitude), hn::Set(IntTag(), 0x7BFF)),
                                            hn::Set(IntTag(), 0x7F800000));
    return hn::BitCast(df, hn::Or(hn::Or(hn::BitCast(dw, scaled), hn::BitCast(dw, special)), sign));
#endif
}

HWY_INLINE FloatVec FromBrain(const std::uint16_t* p) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(WordTag(), hn::LoadU(HalfTag(), p))));
}

template <ScalarType type>
HWY_INLINE FloatVec Widen(const std::uint16_t* p) {
    return type == ScalarType::f16 ? FromHalf(p) : FromBrain(p);
}

/// `count` stored numbers of `type` to floats.
template <ScalarType type>
HWY_INLINE void ToFloats(const void* in, std::size_t count, float* HWY_RESTRICT out) {
    if constexpr (type == ScalarType::f32) {
        std::memcpy(out, in, count * sizeof(float));
    } else {
        const auto* p = static_cast<const std::uint16_t*>(in);
        const FloatTag df;
        std::size_t i = 0;
        for (; i + Lanes() <= count; i += Lanes()) hn::StoreU(Widen<type>(p + i), df, out + i);
        if (i == count) return;
        HWY_ALIGN std::uint16_t rest[Lanes()] = {};
        HWY_ALIGN float values[Lanes()];
        std::memcpy(rest, p + i, (count - i) * sizeof(rest[0]));
        hn::Store(Widen<type>(rest), df, values);
        std::memcpy(out + i, values, (count - i) * sizeof(float));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();
#endif  // MARGINMERGE_KERNELS_CONVERT_INL_H_
