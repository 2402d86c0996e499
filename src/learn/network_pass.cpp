#include "learn/network_pass.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "learn/network_pass.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// One lane per patch, at most patch_block lanes, so that a block always divides the padding.
using Tag = hn::CappedTag<float, patch_block>;
using Vec = hn::Vec<Tag>;

// Functions of N vectors, one operation after the other for all of them: a single chain of operations would leave the
// processor waiting for each result.
constexpr std::size_t chains = 4;
using Vecs = Vec[chains];

template <class F>
HWY_INLINE void each(const F& f) {
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < chains; ++i) f(i);
}

// p = (...(c[0] x + c[1]) x + ...) x + c[last].
template <std::size_t N>
HWY_INLINE void polynomial(const float (&c)[N], const Vecs& x, Vecs& p) {
    const Tag d;
    each([&](std::size_t i) HWY_ATTR { p[i] = hn::MulAdd(hn::Set(d, c[0]), x[i], hn::Set(d, c[1])); });
    HWY_UNROLL(8)
    for (std::size_t k = 2; k < N; ++k) {
        const Vec constant = hn::Set(d, c[k]);
        each([&](std::size_t i) HWY_ATTR { p[i] = hn::MulAdd(p[i], x[i], constant); });
    }
}

// exp(-x^2/2) with an absolute error below 1e-7. It is 2^y for a y that is never positive, which needs less care than a
// general exponential: y = k + f with k whole, a polynomial for 2^f, and k goes straight into the exponent.
HWY_INLINE void bell(const Vecs& x, Vecs& e) {
    const Tag d;
    const hn::RebindToSigned<Tag> di;
    constexpr float power[] = {1.5345811e-4F, 1.3399931e-3F, 9.6184891e-3F, 5.5503286e-2F,
                               2.4022646e-1F, 6.9314718e-1F, 1.0F};
    // Adding 1.5 * 2^23 leaves the whole number in the low bits.
    const Vec shift = hn::Set(d, 12582912.0F);
    Vecs y, shifted;
    each([&](std::size_t i) HWY_ATTR {
        y[i] = hn::Max(hn::Mul(hn::Mul(x[i], x[i]), hn::Set(d, -0.72134752F)), hn::Set(d, -126.0F));
        shifted[i] = hn::Add(y[i], shift);
        y[i] = hn::Sub(y[i], hn::Sub(shifted[i], shift));
    });
    polynomial(power, y, e);
    each([&](std::size_t i) HWY_ATTR {
        e[i] = hn::BitCast(d, hn::Add(hn::BitCast(di, e[i]), hn::ShiftLeft<23>(hn::BitCast(di, shifted[i]))));
    });
}

// gelu(x) = x Phi(x) and, where asked for, its slope Phi(x) + x phi(x). Phi comes from the complementary error
// function as a polynomial in t = 1/(1 + p|x|/sqrt 2) times exp(-x^2/2) (Abramowitz and Stegun
// 7.1.26, absolute error below 1.5e-7), which shares its exponential with phi.
template <bool with_slope>
HWY_INLINE void gelu(const Vecs& x, Vecs& value, Vecs& slope) {
    const Tag d;
    constexpr float tails[] = {0.5F * 1.061405429F, 0.5F * -1.453152027F, 0.5F * 1.421413741F, 0.5F * -0.284496736F,
                               0.5F * 0.254829592F};
    const Vec one = hn::Set(d, 1.0F);
    Vecs e, t, tail;
    bell(x, e);
    each([&](std::size_t i)
             HWY_ATTR { t[i] = hn::Div(one, hn::MulAdd(hn::Abs(x[i]), hn::Set(d, 0.3275911F * 0.70710678F), one)); });
    polynomial(tails, t, tail);
    each([&](std::size_t i) HWY_ATTR {
        tail[i] = hn::Mul(tail[i], hn::Mul(t[i], e[i]));  // 1 - Phi(|x|)
        const Vec below = hn::IfThenElse(hn::Lt(x[i], hn::Zero(d)), tail[i], hn::Sub(one, tail[i]));
        if constexpr (with_slope) slope[i] = hn::MulAdd(x[i], hn::Mul(e[i], hn::Set(d, 0.39894228F)), below);
        value[i] = hn::Mul(x[i], below);
    });
}

// A block of patches is `across` vectors; units are worked on a few at a time, so that loads are shared and sums do
// not wait for each other. The sum of a unit still runs over its inputs in order.
constexpr std::size_t vector_lanes = HWY_MIN(HWY_LANES(float), patch_block);
constexpr std::size_t across = patch_block / vector_lanes;
constexpr std::size_t units_together = HWY_MAX(std::size_t{1}, 8 / across);

// Units first .. first+units_together of a layer over one block: a = gelu(bias + w x), inputs [inputs][stride].
template <bool with_slopes>
HWY_INLINE void layer_units(const float* HWY_RESTRICT weight, const float* HWY_RESTRICT bias, std::size_t first,
                            std::size_t inputs, const float* HWY_RESTRICT x, std::size_t stride,
                            float* HWY_RESTRICT out, float* HWY_RESTRICT slopes, std::size_t out_stride) {
    const Tag d;
    static_assert(units_together * across % chains == 0);
    Vec z[units_together][across];
    HWY_UNROLL(8)
    for (std::size_t u = 0; u < units_together; ++u) {
        HWY_UNROLL(16)
        for (std::size_t v = 0; v < across; ++v) z[u][v] = hn::Set(d, bias[first + u]);
    }
    for (std::size_t i = 0; i < inputs; ++i) {
        Vec value[across];
        HWY_UNROLL(16)
        for (std::size_t v = 0; v < across; ++v) value[v] = hn::LoadU(d, x + i * stride + v * vector_lanes);
        HWY_UNROLL(8)
        for (std::size_t u = 0; u < units_together; ++u) {
            const Vec w = hn::Set(d, weight[(first + u) * inputs + i]);
            HWY_UNROLL(16)
            for (std::size_t v = 0; v < across; ++v) z[u][v] = hn::MulAdd(w, value[v], z[u][v]);
        }
    }
    HWY_UNROLL(16)
    for (std::size_t done = 0; done < units_together * across; done += chains) {
        Vecs sums, value, slope;
        each([&](std::size_t i) HWY_ATTR { sums[i] = z[(done + i) / across][(done + i) % across]; });
        gelu<with_slopes>(sums, value, slope);
        each([&](std::size_t i) HWY_ATTR {
            const std::size_t at = (first + (done + i) / across) * out_stride + (done + i) % across * vector_lanes;
            hn::StoreU(value[i], d, out + at);
            if constexpr (with_slopes) hn::StoreU(slope[i], d, slopes + at);
        });
    }
}

// With or without what backward needs, which then goes to `trace`.
template <bool traced>
HWY_INLINE void forward_blocks(const Network& network, ConstMatrix features, NetworkTrace* trace, float* out) {
    const Tag d;
    const float* theta = network.parameters.data();
    const std::size_t padded = features.cols;
    HWY_ALIGN float own_a1[hidden_1 * patch_block];
    HWY_ALIGN float own_a2[hidden_2 * patch_block];
    const std::size_t stride = traced ? padded : patch_block;
    for (std::size_t at = 0; at < padded; at += patch_block) {
        // Features come from memory, a line of each row at a time.
        for (std::size_t f = 0; f < feature_count; ++f)
            hwy::Prefetch(features.data + f * padded + at + 2 * patch_block);
        float* a1 = traced ? trace->a1.data() + at : own_a1;
        float* a2 = traced ? trace->a2.data() + at : own_a2;
        float* slope1 = traced ? trace->slope1.data() + at : nullptr;
        float* slope2 = traced ? trace->slope2.data() + at : nullptr;
        for (std::size_t o = 0; o < hidden_1; o += units_together)
            layer_units<traced>(theta + Network::w1, theta + Network::b1, o, feature_count, features.data + at, padded,
                                a1, slope1, stride);
        for (std::size_t o = 0; o < hidden_2; o += units_together)
            layer_units<traced>(theta + Network::w2, theta + Network::b2, o, hidden_1, a1, stride, a2, slope2, stride);
        for (std::size_t v = 0; v < patch_block; v += vector_lanes) {
            Vec h = hn::Set(d, theta[Network::b3]);
            for (std::size_t o = 0; o < hidden_2; ++o)
                h = hn::MulAdd(hn::Set(d, theta[Network::w3 + o]), hn::LoadU(d, a2 + o * stride + v), h);
            hn::StoreU(h, d, out + at + v);
        }
    }
}

void forward(const Network& network, ConstMatrix features, NetworkTrace* trace, float* out) {
    if (trace != nullptr) {
        forward_blocks<true>(network, features, trace, out);
    } else {
        forward_blocks<false>(network, features, trace, out);
    }
}

// gradient[r * columns + c] += sum over patches of a[r] b[c], for R rows of a and C of b, [.][padded]; patch i goes to
// lane i % lanes of a vector of sums.
template <std::size_t R, std::size_t C>
HWY_INLINE void add_products(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, std::size_t padded,
                             std::size_t columns, float* HWY_RESTRICT gradient) {
    const Tag d;
    Vec sum[R][C];
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(2)
        for (std::size_t c = 0; c < C; ++c) sum[r][c] = hn::Zero(d);
    }
    for (std::size_t at = 0; at < padded; at += vector_lanes) {
        Vec y[C];
        HWY_UNROLL(2)
        for (std::size_t c = 0; c < C; ++c) y[c] = hn::LoadU(d, b + c * padded + at);
        HWY_UNROLL(4)
        for (std::size_t r = 0; r < R; ++r) {
            const Vec x = hn::LoadU(d, a + r * padded + at);
            HWY_UNROLL(2)
            for (std::size_t c = 0; c < C; ++c) sum[r][c] = hn::MulAdd(x, y[c], sum[r][c]);
        }
    }
    for (std::size_t r = 0; r < R; ++r) {
        for (std::size_t c = 0; c < C; ++c) gradient[r * columns + c] += hn::GetLane(hn::SumOfLanes(d, sum[r][c]));
    }
}

// The same for all rows of a (a multiple of four) and all of b.
HWY_INLINE void add_all_products(const float* a, std::size_t rows, const float* b, std::size_t columns,
                                 std::size_t padded, float* gradient) {
    for (std::size_t r = 0; r < rows; r += 4) {
        std::size_t c = 0;
        for (; c + 2 <= columns; c += 2)
            add_products<4, 2>(a + r * padded, b + c * padded, padded, columns, gradient + r * columns + c);
        if (c < columns)
            add_products<4, 1>(a + r * padded, b + c * padded, padded, columns, gradient + r * columns + c);
    }
}

void backward(const Network& network, ConstMatrix features, const NetworkTrace& trace, const float* d_out,
              float* gradient) {
    const Tag d;
    const float* theta = network.parameters.data();
    const std::size_t padded = features.cols;
    // Derivatives by the inputs of the GELUs, unit-major, and a row of ones for the biases.
    thread_local Matrix storage;
    storage.reshape(hidden_1 + hidden_2 + 1, padded);
    float* dz1 = storage.data();
    float* dz2 = dz1 + hidden_1 * padded;
    float* ones = dz2 + hidden_2 * padded;
    for (std::size_t at = 0; at < padded; at += vector_lanes) {
        hn::StoreU(hn::Set(d, 1.0F), d, ones + at);
        const Vec dh = hn::LoadU(d, d_out + at);
        for (std::size_t o = 0; o < hidden_2; ++o) {
            const Vec by_a2 = hn::Mul(dh, hn::Set(d, theta[Network::w3 + o]));
            hn::StoreU(hn::Mul(by_a2, hn::LoadU(d, trace.slope2.row(o) + at)), d, dz2 + o * padded + at);
        }
        constexpr std::size_t together = 8;
        for (std::size_t first = 0; first < hidden_1; first += together) {
            Vec by_a1[together];
            HWY_UNROLL(8)
            for (std::size_t i = 0; i < together; ++i) by_a1[i] = hn::Zero(d);
            for (std::size_t o = 0; o < hidden_2; ++o) {
                const Vec dz = hn::LoadU(d, dz2 + o * padded + at);
                const float* w = theta + Network::w2 + o * hidden_1 + first;
                HWY_UNROLL(8)
                for (std::size_t i = 0; i < together; ++i) by_a1[i] = hn::MulAdd(dz, hn::Set(d, w[i]), by_a1[i]);
            }
            HWY_UNROLL(8)
            for (std::size_t i = 0; i < together; ++i) {
                hn::StoreU(hn::Mul(by_a1[i], hn::LoadU(d, trace.slope1.row(first + i) + at)), d,
                           dz1 + (first + i) * padded + at);
            }
        }
    }
    add_products<1, 1>(d_out, ones, padded, 1, gradient + Network::b3);
    add_all_products(trace.a2.data(), hidden_2, d_out, 1, padded, gradient + Network::w3);
    add_all_products(dz2, hidden_2, ones, 1, padded, gradient + Network::b2);
    add_all_products(dz2, hidden_2, trace.a1.data(), hidden_1, padded, gradient + Network::w2);
    add_all_products(dz1, hidden_1, ones, 1, padded, gradient + Network::b1);
    add_all_products(dz1, hidden_1, features.data, feature_count, padded, gradient + Network::w1);
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
