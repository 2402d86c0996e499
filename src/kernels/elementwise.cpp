#include "kernels/elementwise.h"

#include <cstring>

#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/contrib/math/math-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

template <class F>
HWY_INLINE void Each(const float* in, std::size_t count, float* out, const F& f) {
    const FloatTag df;
    std::size_t i = 0;
    for (; i + Lanes() <= count; i += Lanes()) hn::StoreU(f(hn::LoadU(df, in + i)), df, out + i);
    if (i == count) return;
    HWY_ALIGN float rest[Lanes()];
    for (std::size_t l = 0; l < Lanes(); ++l) rest[l] = 1.0f;  // a harmless argument for every function
    std::memcpy(rest, in + i, (count - i) * sizeof(float));
    hn::Store(f(hn::Load(df, rest)), df, rest);
    std::memcpy(out + i, rest, (count - i) * sizeof(float));
}

/// erfc(x) for x >= 0: exp(-x^2) times a polynomial in t = 1 / (1 + 0.44 x) without constant term,
/// fitted to exp(x^2) erfc(x) with a relative error of 2e-8 on the whole half line where it matters.
HWY_INLINE FloatVec Erfc(const FloatVec& x) {
    const FloatTag df;
    const auto constant = [&](float c) HWY_ATTR { return hn::Set(df, c); };
    const FloatVec t = hn::Div(constant(1.0f), hn::MulAdd(constant(0.44f), x, constant(1.0f)));
    FloatVec p = constant(-0.04060116782784462f);
    p = hn::MulAdd(p, t, constant(0.19989770650863647f));
    p = hn::MulAdd(p, t, constant(-0.3486213684082031f));
    p = hn::MulAdd(p, t, constant(0.2132519632577896f));
    p = hn::MulAdd(p, t, constant(-0.05400717630982399f));
    p = hn::MulAdd(p, t, constant(0.13717207312583923f));
    p = hn::MulAdd(p, t, constant(0.17180563509464264f));
    p = hn::MulAdd(p, t, constant(0.22463658452033997f));
    p = hn::MulAdd(p, t, constant(0.24822191894054413f));
    p = hn::MulAdd(p, t, constant(0.24824383854866028f));
    return hn::Mul(hn::Mul(p, t), hn::Exp(df, hn::Neg(hn::Mul(x, x))));
}

void ExpAll(const float* in, std::size_t count, float* out) {
    Each(in, count, out, [](const FloatVec& x) HWY_ATTR { return hn::Exp(FloatTag(), x); });
}

void LogAll(const float* in, std::size_t count, float* out) {
    Each(in, count, out, [](const FloatVec& x) HWY_ATTR { return hn::Log(FloatTag(), x); });
}

void TanhAll(const float* in, std::size_t count, float* out) {
    Each(in, count, out, [](const FloatVec& x) HWY_ATTR { return hn::Tanh(FloatTag(), x); });
}

void ErfAll(const float* in, std::size_t count, float* out) {
    Each(in, count, out, [](const FloatVec& x) HWY_ATTR {
        const FloatTag df;
        return hn::CopySign(hn::Sub(hn::Set(df, 1.0f), Erfc(hn::Abs(x))), x);
    });
}

void GeluAll(const float* in, std::size_t count, float* out) {
    Each(in, count, out, [](const FloatVec& x) HWY_ATTR {
        const FloatTag df;
        // Phi(-|x|), so that the negative side keeps its digits.
        const FloatVec tail = hn::Mul(hn::Set(df, 0.5f), Erfc(hn::Mul(hn::Abs(x), hn::Set(df, 0.70710678f))));
        const FloatVec below = hn::Mul(x, tail);
        return hn::IfThenElse(hn::Lt(x, hn::Zero(df)), below, hn::Sub(x, below));
    });
}

void CoverageAll(const float* in, std::size_t count, float best, float tau, float* out) {
    const FloatTag df;
    const FloatVec top = hn::Set(df, best);
    const FloatVec scale = hn::Set(df, tau);
    const FloatVec floor = hn::Set(df, -50.0f);
    Each(in, count, out,
         [&](const FloatVec& x) HWY_ATTR { return hn::Exp(df, hn::Max(hn::Div(hn::Sub(x, top), scale), floor)); });
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(ExpAll);
HWY_EXPORT(LogAll);
HWY_EXPORT(TanhAll);
HWY_EXPORT(ErfAll);
HWY_EXPORT(GeluAll);
HWY_EXPORT(CoverageAll);

void exp_of(std::span<const float> in, std::span<float> out) {
    MARGINMERGE_DISPATCH(ExpAll)(in.data(), in.size(), out.data());
}

void log_of(std::span<const float> in, std::span<float> out) {
    MARGINMERGE_DISPATCH(LogAll)(in.data(), in.size(), out.data());
}

void erf_of(std::span<const float> in, std::span<float> out) {
    MARGINMERGE_DISPATCH(ErfAll)(in.data(), in.size(), out.data());
}

void gelu_of(std::span<const float> in, std::span<float> out) {
    MARGINMERGE_DISPATCH(GeluAll)(in.data(), in.size(), out.data());
}

void tanh_of(std::span<const float> in, std::span<float> out) {
    MARGINMERGE_DISPATCH(TanhAll)(in.data(), in.size(), out.data());
}

void coverage_of(std::span<const float> x, float best, float tau, std::span<float> out) {
    MARGINMERGE_DISPATCH(CoverageAll)(x.data(), x.size(), best, tau, out.data());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
