#include "kernels/page_rows.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/page_rows.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/contrib/math/math-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

// At most eight lanes, so that eight partial sums are whole vectors at every level.
using Tag8 = hn::CappedTag<float, 8>;
using Vec8 = hn::Vec<Tag8>;
using DoubleTag8 = hn::CappedTag<double, 8>;
using DoubleVec8 = hn::Vec<DoubleTag8>;
constexpr std::size_t partial_sums = 8;

/// Calls f(column, numbers) for the vectors of a row of m numbers; the last one may hold fewer.
template <class F>
HWY_INLINE void ForColumns(std::size_t m, const F& f) {
    for (std::size_t t = 0; t < m; t += Lanes()) f(t, std::min(Lanes(), m - t));
}

HWY_INLINE FloatVec LoadSome(const float* p, std::size_t count) {
    if (count == Lanes()) return hn::LoadU(FloatTag(), p);
    HWY_ALIGN float part[Lanes()] = {};
    std::copy_n(p, count, part);
    return hn::Load(FloatTag(), part);
}

HWY_INLINE void StoreSome(const FloatVec& x, std::size_t count, float* p) {
    if (count == Lanes()) return hn::StoreU(x, FloatTag(), p);
    HWY_ALIGN float part[Lanes()];
    hn::Store(x, FloatTag(), part);
    std::copy_n(part, count, p);
}

void ClampResponses(MutMatrix responses, float* HWY_RESTRICT best) {
    const FloatTag df;
    std::fill_n(best, responses.cols, -1.0f);
    for (std::size_t i = 0; i < responses.rows; ++i) {
        float* HWY_RESTRICT row = responses.row(i);
        ForColumns(responses.cols, [&](std::size_t t, std::size_t count) HWY_ATTR {
            const FloatVec x = hn::Min(hn::Max(LoadSome(row + t, count), hn::Set(df, -1.0f)), hn::Set(df, 1.0f));
            StoreSome(x, count, row + t);
            StoreSome(hn::Max(LoadSome(best + t, count), x), count, best + t);
        });
    }
}

void CoverageOfResponses(ConstMatrix responses, const float* HWY_RESTRICT best, float scale, MutMatrix coverage) {
    const FloatTag df;
    for (std::size_t i = 0; i < responses.rows; ++i) {
        const float* HWY_RESTRICT row = responses.row(i);
        float* HWY_RESTRICT out = coverage.row(i);
        ForColumns(responses.cols, [&](std::size_t t, std::size_t count) HWY_ATTR {
            const FloatVec gap = hn::Sub(LoadSome(row + t, count), LoadSome(best + t, count));
            const FloatVec x = hn::Max(hn::Mul(gap, hn::Set(df, scale)), hn::Set(df, -50.0f));
            StoreSome(hn::Exp(df, x), count, out + t);
        });
    }
}

double CoverageGain(const float* HWY_RESTRICT coverage, const float* HWY_RESTRICT covered,
                    const double* HWY_RESTRICT omega, std::size_t m) {
    const DoubleTag8 dd;
    const hn::Rebind<float, DoubleTag8> df;
    constexpr std::size_t lanes = HWY_MIN(HWY_LANES(double), partial_sums);
    constexpr std::size_t parts = partial_sums / lanes;
    DoubleVec8 sum[parts];
    HWY_UNROLL(8)
    for (std::size_t p = 0; p < parts; ++p) sum[p] = hn::Zero(dd);
    std::size_t t = 0;
    for (; t + partial_sums <= m; t += partial_sums) {
        HWY_UNROLL(8)
        for (std::size_t p = 0; p < parts; ++p) {
            const std::size_t at = t + p * lanes;
            const DoubleVec8 more = hn::Sub(hn::PromoteTo(dd, hn::LoadU(df, coverage + at)),
                                            hn::PromoteTo(dd, hn::LoadU(df, covered + at)));
            sum[p] = hn::Add(sum[p], hn::Mul(hn::LoadU(dd, omega + at), hn::Max(more, hn::Zero(dd))));
        }
    }
    HWY_ALIGN double part[partial_sums];
    for (std::size_t p = 0; p < parts; ++p) hn::StoreU(sum[p], dd, part + p * lanes);
    for (std::size_t p = 0; t < m; ++t, ++p)
        part[p] += omega[t] * std::max(0.0, static_cast<double>(coverage[t]) - static_cast<double>(covered[t]));
    for (std::size_t half = partial_sums / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

HWY_INLINE float SumOf(float* part) {
    for (std::size_t half = partial_sums / 2; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

ResponseStatistics Statistics(const float* HWY_RESTRICT response, const float* HWY_RESTRICT omega, std::size_t m) {
    const Tag8 df;
    constexpr std::size_t lanes = HWY_MIN(HWY_LANES(float), partial_sums);
    constexpr std::size_t parts = partial_sums / lanes;
    const std::size_t whole = m / partial_sums * partial_sums;
    HWY_ALIGN float part[partial_sums];
    HWY_ALIGN float tops[partial_sums];
    Vec8 sum[parts], high[parts];
    for (std::size_t p = 0; p < parts; ++p) sum[p] = hn::Zero(df), high[p] = hn::Set(df, -1.0f);
    for (std::size_t t = 0; t < whole; t += partial_sums) {
        HWY_UNROLL(8)
        for (std::size_t p = 0; p < parts; ++p) {
            const Vec8 r = hn::LoadU(df, response + t + p * lanes);
            sum[p] = hn::Add(sum[p], hn::Mul(hn::LoadU(df, omega + t + p * lanes), r));
            high[p] = hn::Max(high[p], r);
        }
    }
    for (std::size_t p = 0; p < parts; ++p) {
        hn::StoreU(sum[p], df, part + p * lanes);
        hn::StoreU(high[p], df, tops + p * lanes);
    }
    for (std::size_t t = whole; t < m; ++t) {
        part[t - whole] += omega[t] * response[t];
        tops[0] = std::max(tops[0], response[t]);
    }
    ResponseStatistics out;
    out.mean = SumOf(part);
    out.high = *std::max_element(tops, tops + partial_sums);

    // A second pass about the mean: responses are often nearly equal, and E[x^2]-E[x]^2 would cancel.
    const Vec8 mean = hn::Set(df, out.mean);
    for (std::size_t p = 0; p < parts; ++p) sum[p] = hn::Zero(df);
    for (std::size_t t = 0; t < whole; t += partial_sums) {
        HWY_UNROLL(8)
        for (std::size_t p = 0; p < parts; ++p) {
            const Vec8 gap = hn::Sub(hn::LoadU(df, response + t + p * lanes), mean);
            sum[p] = hn::Add(sum[p], hn::Mul(hn::LoadU(df, omega + t + p * lanes), hn::Mul(gap, gap)));
        }
    }
    for (std::size_t p = 0; p < parts; ++p) hn::StoreU(sum[p], df, part + p * lanes);
    for (std::size_t t = whole; t < m; ++t) {
        const float gap = response[t] - out.mean;
        part[t - whole] += omega[t] * (gap * gap);
    }
    out.deviation = std::sqrt(SumOf(part));
    return out;
}

/// Columns in lanes; a new number goes down the list of the largest so far, no branches.
void NeighbourMeans(const float* HWY_RESTRICT similarity, std::size_t members, std::size_t columns, std::size_t first,
                    float* HWY_RESTRICT out) {
    const FloatTag df;
    const IntTag di;
    const FloatVec lowest = hn::Set(df, -3.0e38f);
    const std::size_t used = std::min(neighbours, members - 1);
    for (std::size_t c = 0; c < columns; c += Lanes()) {
        const std::size_t inside = std::min(Lanes(), columns - c);
        FloatVec top[neighbours];
        HWY_UNROLL(5)
        for (std::size_t t = 0; t < neighbours; ++t) top[t] = lowest;
        const auto add = [&](FloatVec x, std::size_t member) HWY_ATTR {
            // The lane whose own row this is; none in most rows.
            const IntVec own = hn::Iota(di, static_cast<std::int32_t>(first + c));
            const auto skip = hn::Eq(own, hn::Set(di, static_cast<std::int32_t>(member)));
            x = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::RebindMask(df, skip)), lowest, x);
            HWY_UNROLL(5)
            for (std::size_t t = 0; t < neighbours; ++t) {
                const FloatVec less = hn::Min(top[t], x);
                top[t] = hn::Max(top[t], x);
                x = less;
            }
        };
        HWY_ALIGN float part[Lanes()] = {};
        const float* p = similarity + c;
        if (inside == Lanes()) {
            for (std::size_t j = 0; j < members; ++j, p += columns) add(hn::LoadU(df, p), j);
        } else {
            for (std::size_t j = 0; j < members; ++j, p += columns) {
                std::copy_n(p, inside, part);
                add(hn::Load(df, part), j);
            }
        }
        FloatVec sum = hn::Zero(df);
        HWY_UNROLL(5)
        for (std::size_t t = 0; t < neighbours; ++t)
            if (t < used) sum = hn::Add(sum, top[t]);
        if (used > 0) sum = hn::Div(sum, hn::Set(df, static_cast<float>(used)));
        hn::Store(sum, df, part);
        std::copy_n(part, inside, out + c);
    }
}

// Rows together share each load of the weights and keep several sums in flight.
template <std::size_t outputs, std::size_t rows>
HWY_INLINE void LayerRows(const float* HWY_RESTRICT x, std::size_t inputs, const float* HWY_RESTRICT weight,
                          const float* HWY_RESTRICT bias, float* HWY_RESTRICT out) {
    const FloatTag df;
    constexpr std::size_t vectors = outputs / Lanes();
    FloatVec sum[rows][vectors];
    HWY_UNROLL(8)
    for (std::size_t r = 0; r < rows; ++r) {
        HWY_UNROLL(8)
        for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::LoadU(df, bias + v * Lanes());
    }
    for (std::size_t i = 0; i < inputs; ++i) {
        HWY_UNROLL(8)
        for (std::size_t r = 0; r < rows; ++r) {
            const FloatVec value = hn::Set(df, x[r * inputs + i]);
            HWY_UNROLL(8)
            for (std::size_t v = 0; v < vectors; ++v)
                sum[r][v] = hn::MulAdd(value, hn::LoadU(df, weight + i * outputs + v * Lanes()), sum[r][v]);
        }
    }
    HWY_UNROLL(8)
    for (std::size_t r = 0; r < rows; ++r) {
        HWY_UNROLL(8)
        for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sum[r][v], df, out + r * outputs + v * Lanes());
    }
}

template <std::size_t outputs>
HWY_INLINE void Layer(const float* x, std::size_t rows, std::size_t inputs, const float* weight, const float* bias,
                      float* out) {
    constexpr std::size_t vectors = outputs / Lanes();
    constexpr std::size_t together = HWY_MAX(std::size_t{1}, 8 / vectors);
    std::size_t r = 0;
    for (; r + together <= rows; r += together)
        LayerRows<outputs, together>(x + r * inputs, inputs, weight, bias, out + r * outputs);
    for (; r < rows; ++r) LayerRows<outputs, 1>(x + r * inputs, inputs, weight, bias, out + r * outputs);
}

void DenseLayer(const float* x, std::size_t rows, std::size_t inputs, const float* weight, const float* bias,
                std::size_t outputs, float* out) {
    if (outputs == 32)
        Layer<32>(x, rows, inputs, weight, bias, out);
    else
        Layer<16>(x, rows, inputs, weight, bias, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(ClampResponses);
HWY_EXPORT(CoverageOfResponses);
HWY_EXPORT(CoverageGain);
HWY_EXPORT(Statistics);
HWY_EXPORT(NeighbourMeans);
HWY_EXPORT(DenseLayer);

void clamp_responses(MutMatrix responses, float* best) { MARGINMERGE_DISPATCH(ClampResponses)(responses, best); }

void coverage_of_responses(ConstMatrix responses, const float* best, float scale, MutMatrix coverage) {
    MARGINMERGE_DISPATCH(CoverageOfResponses)(responses, best, scale, coverage);
}

double coverage_gain(const float* coverage, const float* covered, const double* omega, std::size_t m) {
    return MARGINMERGE_DISPATCH(CoverageGain)(coverage, covered, omega, m);
}

ResponseStatistics response_statistics(const float* response, const float* omega, std::size_t m) {
    return MARGINMERGE_DISPATCH(Statistics)(response, omega, m);
}

void neighbour_means(const float* similarity, std::size_t members, std::size_t columns, std::size_t first, float* out) {
    MARGINMERGE_DISPATCH(NeighbourMeans)(similarity, members, columns, first, out);
}

void dense_layer(const float* x, std::size_t rows, std::size_t inputs, const float* weight, const float* bias,
                 std::size_t outputs, float* out) {
    if (outputs != 16 && outputs != 32)
        fail(ErrorCode::internal, "dense layer of {} outputs: expected 16 or 32", outputs);
    MARGINMERGE_DISPATCH(DenseLayer)(x, rows, inputs, weight, bias, outputs, out);
}

}  // namespace marginmerge
#endif  // HWY_ONCE
