// Kernels that work on single rows; declared in products.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/level.h"
#include "kernels/products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rows.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/convert-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

template <ScalarType type>
using Number = std::conditional_t<type == ScalarType::f32, float, std::uint16_t>;

/// A vector of stored numbers as floats.
template <ScalarType type>
HWY_INLINE FloatVec LoadStored(const Number<type>* p) {
    if constexpr (type == ScalarType::f32) {
        return hn::LoadU(FloatTag(), p);
    } else {
        return Widen<type>(p);
    }
}

/// The last d % lanes numbers with zeros behind them.
template <ScalarType type = ScalarType::f32>
HWY_INLINE FloatVec LoadRest(const Number<type>* p, std::size_t count) {
    HWY_ALIGN Number<type> rest[Lanes()] = {};
    std::memcpy(rest, p, count * sizeof(rest[0]));
    return LoadStored<type>(rest);
}

/// Halves added to halves until one number is left.
template <class D>
HWY_INLINE float SumHalves(D, hn::Vec<D> x) {
#if HWY_TARGET == HWY_SCALAR
    return hn::GetLane(x);
#else
    if constexpr (hn::MaxLanes(D()) == 1) {
        return hn::GetLane(x);
    } else {
        const hn::Half<D> half;
        return SumHalves(half, hn::Add(hn::LowerHalf(half, x), hn::UpperHalf(half, x)));
    }
#endif
}

/// out[r] = x . row r for R rows `d` apart. Number j goes to partial sum j % 32, whatever the vector length; then
/// halves are added to halves.
template <std::size_t R, ScalarType type = ScalarType::f32>
HWY_INLINE void Dots(const float* HWY_RESTRICT x, const Number<type>* HWY_RESTRICT rows, std::size_t d,
                     float* HWY_RESTRICT out) {
    const FloatTag df;
    constexpr std::size_t parts = 32 / Lanes();
    FloatVec sum[R][parts];
    HWY_UNROLL(2)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(8)
        for (std::size_t p = 0; p < parts; ++p) sum[r][p] = hn::Zero(df);
    }
    std::size_t j = 0;
    for (; j + 32 <= d; j += 32) {
        HWY_UNROLL(8)
        for (std::size_t p = 0; p < parts; ++p) {
            const FloatVec value = hn::LoadU(df, x + j + p * Lanes());
            HWY_UNROLL(2)
            for (std::size_t r = 0; r < R; ++r)
                sum[r][p] = hn::MulAdd(value, LoadStored<type>(rows + r * d + j + p * Lanes()), sum[r][p]);
        }
    }
    HWY_UNROLL(8)
    for (std::size_t p = 0; p < parts; ++p, j += Lanes()) {
        if (j >= d) break;
        HWY_UNROLL(2)
        for (std::size_t r = 0; r < R; ++r) {
            const Number<type>* row = rows + r * d;
            if (j + Lanes() <= d) {
                sum[r][p] = hn::MulAdd(hn::LoadU(df, x + j), LoadStored<type>(row + j), sum[r][p]);
            } else {
                sum[r][p] = hn::MulAdd(LoadRest(x + j, d - j), LoadRest<type>(row + j, d - j), sum[r][p]);
            }
        }
    }
    HWY_UNROLL(2)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(8)
        for (std::size_t half = parts / 2; half > 0; half /= 2) {
            HWY_UNROLL(8)
            for (std::size_t p = 0; p < half; ++p) sum[r][p] = hn::Add(sum[r][p], sum[r][p + half]);
        }
        out[r] = SumHalves(df, sum[r][0]);
    }
}

float Dot(const float* a, const float* b, std::size_t d) {
    float out;
    Dots<1>(a, b, d, &out);
    return out;
}

void DotRows(const float* x, const float* rows, std::size_t count, std::size_t d, float* out) {
    std::size_t r = 0;
    for (; r + 2 <= count; r += 2) Dots<2>(x, rows + r * d, d, out + r);
    if (r < count) Dots<1>(x, rows + r * d, d, out + r);
}

template <ScalarType type = ScalarType::f32>
HWY_INLINE void AddScaledRow(float factor, const Number<type>* HWY_RESTRICT x, float* HWY_RESTRICT y, std::size_t d) {
    const FloatTag df;
    const FloatVec w = hn::Set(df, factor);
    std::size_t j = 0;
    for (; j + Lanes() <= d; j += Lanes())
        hn::StoreU(hn::MulAdd(w, LoadStored<type>(x + j), hn::LoadU(df, y + j)), df, y + j);
    if (j == d) return;
    HWY_ALIGN float rest[Lanes()];
    hn::Store(hn::MulAdd(w, LoadRest<type>(x + j, d - j), LoadRest(y + j, d - j)), df, rest);
    std::memcpy(y + j, rest, (d - j) * sizeof(float));
}

void AddScaled(float factor, const float* x, float* y, std::size_t d) { AddScaledRow(factor, x, y, d); }

/// Calls f(row number, the row) for every row that has a cluster. Pages come from memory, which the processor alone
/// does not ask for early enough.
template <ScalarType type, class F>
HWY_INLINE void ForClustered(VectorsView v, const std::int32_t* cluster, const F& f) {
    constexpr std::size_t ahead = 2048 / sizeof(Number<type>);
    constexpr std::size_t line = 64 / sizeof(Number<type>);
    const auto* row = static_cast<const Number<type>*>(v.data);
    for (std::size_t i = 0; i < v.rows; ++i, row += v.dim) {
        for (std::size_t j = 0; j < v.dim; j += line) hwy::Prefetch(row + ahead + j);
        if (cluster[i] >= 0) f(i, row);
    }
}

template <ScalarType type>
HWY_INLINE void AddToClustersOf(VectorsView v, const std::int32_t* cluster, const float* weight, MutMatrix sums) {
    ForClustered<type>(v, cluster, [&](std::size_t i, const Number<type>* row) HWY_ATTR {
        AddScaledRow<type>(weight[i], row, sums.row(static_cast<std::size_t>(cluster[i])), v.dim);
    });
}

void AddToClusters(VectorsView v, const std::int32_t* cluster, const float* weight, MutMatrix sums) {
    switch (v.type) {
        case ScalarType::f32: return AddToClustersOf<ScalarType::f32>(v, cluster, weight, sums);
        case ScalarType::f16: return AddToClustersOf<ScalarType::f16>(v, cluster, weight, sums);
        case ScalarType::bf16: return AddToClustersOf<ScalarType::bf16>(v, cluster, weight, sums);
    }
}

template <ScalarType type>
HWY_INLINE void DotClustersOf(VectorsView v, const std::int32_t* cluster, ConstMatrix rows, float* out) {
    ForClustered<type>(v, cluster, [&](std::size_t i, const Number<type>* row) HWY_ATTR {
        Dots<1, type>(rows.row(static_cast<std::size_t>(cluster[i])), row, v.dim, out + i);
    });
}

void DotClusters(VectorsView v, const std::int32_t* cluster, ConstMatrix rows, float* out) {
    std::fill_n(out, v.rows, 0.0f);
    switch (v.type) {
        case ScalarType::f32: return DotClustersOf<ScalarType::f32>(v, cluster, rows, out);
        case ScalarType::f16: return DotClustersOf<ScalarType::f16>(v, cluster, rows, out);
        case ScalarType::bf16: return DotClustersOf<ScalarType::bf16>(v, cluster, rows, out);
    }
}

void NormaliseRows(MutMatrix m) {
    const FloatTag df;
    for (std::size_t i = 0; i < m.rows; ++i) {
        float* p = m.row(i);
        const float norm = std::sqrt(Dot(p, p, m.cols));
        if (norm < 1e-12f) continue;
        const FloatVec divisor = hn::Set(df, norm);
        std::size_t j = 0;
        for (; j + Lanes() <= m.cols; j += Lanes()) hn::StoreU(hn::Div(hn::LoadU(df, p + j), divisor), df, p + j);
        for (; j < m.cols; ++j) p[j] /= norm;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(Dot);
HWY_EXPORT(DotRows);
HWY_EXPORT(AddScaled);
HWY_EXPORT(AddToClusters);
HWY_EXPORT(DotClusters);
HWY_EXPORT(NormaliseRows);

float dot(const float* a, const float* b, std::size_t d) { return MARGINMERGE_DISPATCH(Dot)(a, b, d); }

void dot_rows(const float* x, const float* rows, std::size_t count, std::size_t d, float* out) {
    MARGINMERGE_DISPATCH(DotRows)(x, rows, count, d, out);
}

void add_scaled(float factor, const float* x, float* y, std::size_t d) {
    MARGINMERGE_DISPATCH(AddScaled)(factor, x, y, d);
}

void add_to_clusters(VectorsView v, std::span<const std::int32_t> cluster, std::span<const float> weight,
                     MutMatrix sums) {
    MARGINMERGE_DISPATCH(AddToClusters)(v, cluster.data(), weight.data(), sums);
}

void dot_clusters(VectorsView v, std::span<const std::int32_t> cluster, ConstMatrix rows, std::span<float> out) {
    MARGINMERGE_DISPATCH(DotClusters)(v, cluster.data(), rows, out.data());
}

void normalise_rows(MutMatrix m) { MARGINMERGE_DISPATCH(NormaliseRows)(m); }

}  // namespace marginmerge
#endif  // HWY_ONCE
