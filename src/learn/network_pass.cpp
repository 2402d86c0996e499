#include "learn/network_pass.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/network_pass.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format off
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One lane per patch, at most patch_block lanes, so that a block always divides the padding.
using Tag = hn::CappedTag<float, patch_block>;
using Vec = hn::Vec<Tag>;

// gelu(x) = x Phi(x) and its slope Phi(x) + x phi(x). Phi comes from the complementary error
// function as a polynomial in t = 1/(1 + p|x|/sqrt 2) times exp(-x^2/2) (Abramowitz and Stegun
// 7.1.26, absolute error below 1.5e-7), which shares its exponential with phi.
HWY_INLINE Vec gelu(Tag d, Vec x, Vec& slope) {
    const Vec one = hn::Set(d, 1.0F);
    const Vec half = hn::Set(d, 0.5F);
    const Vec size = hn::Abs(x);
    const Vec e = hn::Exp(d, hn::Mul(hn::Mul(x, x), hn::Set(d, -0.5F)));
    const Vec t = hn::Div(one, hn::MulAdd(size, hn::Set(d, 0.3275911F * 0.70710678F), one));
    Vec c = hn::Set(d, 1.061405429F);
    c = hn::MulAdd(c, t, hn::Set(d, -1.453152027F));
    c = hn::MulAdd(c, t, hn::Set(d, 1.421413741F));
    c = hn::MulAdd(c, t, hn::Set(d, -0.284496736F));
    c = hn::MulAdd(c, t, hn::Set(d, 0.254829592F));
    const Vec tail = hn::Mul(half, hn::Mul(hn::Mul(c, t), e));  // 1 - Phi(|x|)
    const Vec phi_cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail));
    slope = hn::MulAdd(x, hn::Mul(e, hn::Set(d, 0.39894228F)), phi_cdf);
    return hn::Mul(x, phi_cdf);
}

void forward(const Network& network, ConstMatrix features, NetworkTrace* trace, float* out) {
    const Tag d;
    const std::size_t lanes = hn::Lanes(d);
    const float* theta = network.parameters.data();
    const std::size_t padded = features.cols;
    HWY_ALIGN float a1[hidden_1 * patch_block];
    HWY_ALIGN float a2[hidden_2 * patch_block];
    for (std::size_t at = 0; at < padded; at += lanes) {
        for (std::size_t o = 0; o < hidden_1; ++o) {
            Vec z = hn::Set(d, theta[Network::b1 + o]);
            const float* w = theta + Network::w1 + o * feature_count;
            for (std::size_t i = 0; i < feature_count; ++i) {
                z = hn::MulAdd(hn::Set(d, w[i]), hn::LoadU(d, features.row(i) + at), z);
            }
            Vec slope;
            const Vec a = gelu(d, z, slope);
            hn::Store(a, d, a1 + o * lanes);
            if (trace != nullptr) {
                hn::StoreU(a, d, trace->a1.row(o) + at);
                hn::StoreU(slope, d, trace->slope1.row(o) + at);
            }
        }
        Vec h = hn::Set(d, theta[Network::b3]);
        for (std::size_t o = 0; o < hidden_2; ++o) {
            Vec z = hn::Set(d, theta[Network::b2 + o]);
            const float* w = theta + Network::w2 + o * hidden_1;
            for (std::size_t i = 0; i < hidden_1; ++i) z = hn::MulAdd(hn::Set(d, w[i]), hn::Load(d, a1 + i * lanes), z);
            Vec slope;
            const Vec a = gelu(d, z, slope);
            hn::Store(a, d, a2 + o * lanes);
            if (trace != nullptr) {
                hn::StoreU(a, d, trace->a2.row(o) + at);
                hn::StoreU(slope, d, trace->slope2.row(o) + at);
            }
            h = hn::MulAdd(hn::Set(d, theta[Network::w3 + o]), a, h);
        }
        hn::StoreU(h, d, out + at);
    }
}

void backward(const Network& network, ConstMatrix features, const NetworkTrace& trace, const float* d_out,
              float* gradient) {
    const Tag d;
    const std::size_t lanes = hn::Lanes(d);
    const float* theta = network.parameters.data();
    // Each parameter's gradient as one vector of lane sums, added up at the end.
    thread_local Matrix sums_storage;
    sums_storage.reshape(Network::parameter_count, lanes);
    float* sums = sums_storage.data();
    for (std::size_t i = 0; i < sums_storage.size(); ++i) sums[i] = 0;
    const auto add = [&](std::size_t parameter, Vec a, Vec b) {
        float* s = sums + parameter * lanes;
        hn::StoreU(hn::MulAdd(a, b, hn::LoadU(d, s)), d, s);
    };
    const Vec one = hn::Set(d, 1.0F);
    HWY_ALIGN float d_a1[hidden_1 * patch_block];
    for (std::size_t at = 0; at < features.cols; at += lanes) {
        const Vec dh = hn::LoadU(d, d_out + at);
        if (hn::AllTrue(d, hn::Eq(dh, hn::Zero(d)))) continue;
        for (std::size_t i = 0; i < hidden_1; ++i) hn::Store(hn::Zero(d), d, d_a1 + i * lanes);
        add(Network::b3, dh, one);
        for (std::size_t o = 0; o < hidden_2; ++o) {
            add(Network::w3 + o, dh, hn::LoadU(d, trace.a2.row(o) + at));
            const Vec dz =
                hn::Mul(hn::Mul(dh, hn::Set(d, theta[Network::w3 + o])), hn::LoadU(d, trace.slope2.row(o) + at));
            add(Network::b2 + o, dz, one);
            const std::size_t w = Network::w2 + o * hidden_1;
            for (std::size_t i = 0; i < hidden_1; ++i) {
                add(w + i, dz, hn::LoadU(d, trace.a1.row(i) + at));
                hn::Store(hn::MulAdd(dz, hn::Set(d, theta[w + i]), hn::Load(d, d_a1 + i * lanes)), d, d_a1 + i * lanes);
            }
        }
        for (std::size_t o = 0; o < hidden_1; ++o) {
            const Vec dz = hn::Mul(hn::Load(d, d_a1 + o * lanes), hn::LoadU(d, trace.slope1.row(o) + at));
            add(Network::b1 + o, dz, one);
            const std::size_t w = Network::w1 + o * feature_count;
            for (std::size_t i = 0; i < feature_count; ++i) add(w + i, dz, hn::LoadU(d, features.row(i) + at));
        }
    }
    for (std::size_t p = 0; p < Network::parameter_count; ++p) {
        gradient[p] += hn::GetLane(hn::SumOfLanes(d, hn::LoadU(d, sums + p * lanes)));
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(forward);
HWY_EXPORT(backward);

Matrix standardise_by_feature(ConstMatrix raw_features, const FeatureScaling& scaling) {
    Matrix out(feature_count, padded_patches(raw_features.rows));
    for (std::size_t f = 0; f < feature_count; ++f) {
        float* row = out.row(f);
        for (std::size_t i = 0; i < raw_features.rows; ++i) {
            row[i] = (raw_features(i, f) - scaling.mean[f]) / scaling.deviation[f];
        }
    }
    return out;
}

void network_forward(const Network& network, ConstMatrix features, NetworkTrace* trace, std::span<float> out) {
    if (trace != nullptr) {
        trace->padded = features.cols;
        trace->a1.reshape(hidden_1, features.cols);
        trace->slope1.reshape(hidden_1, features.cols);
        trace->a2.reshape(hidden_2, features.cols);
        trace->slope2.reshape(hidden_2, features.cols);
    }
    HWY_DYNAMIC_DISPATCH(forward)(network, features, trace, out.data());
}

void network_backward(const Network& network, ConstMatrix features, const NetworkTrace& trace,
                      std::span<const float> d_out, std::span<float> gradient) {
    HWY_DYNAMIC_DISPATCH(backward)(network, features, trace, d_out.data(), gradient.data());
}

}  // namespace marginmerge
#endif
