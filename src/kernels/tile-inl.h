// The register tile all float matrix work is made of: R rows, read number by number and broadcast,
// against C vectors of "lanes" rows stored transposed. One accumulator per pair of rows, summed over
// the dimension in order: the result of a pair does not depend on tile, block or neighbour.
#if defined(MARGINMERGE_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_TILE_INL_H_
#undef MARGINMERGE_KERNELS_TILE_INL_H_
#else
#define MARGINMERGE_KERNELS_TILE_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "kernels/tile_avx2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using IntTag = hn::RebindToSigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
using IntVec = hn::Vec<IntTag>;

/// Floats in a vector.
HWY_INLINE constexpr std::size_t Lanes() { return HWY_LANES(float); }

/// Rows of a tile C vectors wide: as many accumulators as the register file holds beside the
/// C loaded vectors and the broadcast one.
template <std::size_t C>
constexpr std::size_t TileRows() {
    constexpr std::size_t accumulators = HWY_CAP_GE512 ? 24 : 12;
    return accumulators / C;
}

/// Rows handled together between two passes over the packed side; a multiple of every TileRows().
constexpr std::size_t row_block = HWY_CAP_GE512 ? 24 : 12;

/// Width of the next panel when `rest` vectors are left: threes, and twos where threes do not fit.
HWY_INLINE constexpr std::size_t PanelWidth(std::size_t rest) { return rest == 1 ? 1 : rest == 2 || rest == 4 ? 2 : 3; }

/// Calls f(integral_constant<C>, first vector) for every panel of `vectors` packed vectors.
template <class F>
HWY_INLINE void ForPanels(std::size_t vectors, F&& f) {
    for (std::size_t v = 0; v < vectors;) {
        const std::size_t width = PanelWidth(vectors - v);
        if (width == 3) {
            f(std::integral_constant<std::size_t, 3>(), v);
        } else if (width == 2) {
            f(std::integral_constant<std::size_t, 2>(), v);
        } else {
            f(std::integral_constant<std::size_t, 1>(), v);
        }
        v += width;
    }
}

/// Vectors that hold `count` lanes.
HWY_INLINE constexpr std::size_t VectorsFor(std::size_t count) { return (count + Lanes() - 1) / Lanes(); }

/// Whether the last vector of a query may hold the same four tokens twice, to be multiplied by two rows at once.
/// Elsewhere tokens fill vectors of four anyway, or the blends would cost as much as they save.
constexpr bool half_panels = HWY_TARGET == HWY_AVX2;

/// Vectors of a query's last panel when that is such a one, else 0.
HWY_INLINE constexpr std::size_t HalfPanel(std::size_t tokens) {
    if constexpr (half_panels) {
        const std::size_t rest = tokens % Lanes();
        const std::size_t vectors = VectorsFor(tokens);
        if (rest != 0 && rest <= Lanes() / 2 && vectors > 1) return vectors == 2 || vectors == 4 ? 2 : 3;
    }
    return 0;
}

/// As ForPanels, for the tokens of a query: f(integral_constant<C>, first vector, is it a half panel).
template <class F>
HWY_INLINE void ForTokenPanels(std::size_t tokens, F&& f) {
    const std::size_t vectors = VectorsFor(tokens);
    const std::size_t last = HalfPanel(tokens);
    for (std::size_t v = 0; v < vectors;) {
        const bool half = v + last == vectors;
        const std::size_t width = half ? last : PanelWidth(vectors - last - v);
        if (width == 3) {
            f(std::integral_constant<std::size_t, 3>(), v, half);
        } else if (width == 2) {
            f(std::integral_constant<std::size_t, 2>(), v, half);
        } else {
            f(std::integral_constant<std::size_t, 1>(), v, false);
        }
        v += width;
    }
}

/// Packs one panel, [d][C * lanes]: lane l holds row source(l) of `rows` [.,d], zeros when that is negative.
template <std::size_t C, class Source>
HWY_INLINE void PackPanel(const float* HWY_RESTRICT rows, std::size_t d, float* HWY_RESTRICT panel,
                          const Source& source) {
    constexpr std::size_t span = C * Lanes();
    for (std::size_t lane = 0; lane < span; ++lane) {
        const std::ptrdiff_t row = source(lane);
        const float* from = rows + row * static_cast<std::ptrdiff_t>(d);
        for (std::size_t k = 0; k < d; ++k) panel[k * span + lane] = row < 0 ? 0.0f : from[k];
    }
}

/// The token in a lane of a packed query, or -1: past the last token comes nothing, but the last vector of a half
/// panel repeats its lower half.
HWY_INLINE std::ptrdiff_t TokenOfLane(std::size_t lane, std::size_t tokens) {
    const std::size_t half = Lanes() / 2;
    if (lane >= tokens && HalfPanel(tokens) > 0 && lane % Lanes() >= half) lane -= half;
    return lane < tokens ? static_cast<std::ptrdiff_t>(lane) : -1;
}

/// sum += x * q. Written out for x86: left to itself, GCC picks forms that overwrite x or q and pays
/// with copies and spills in a tile that needs every register.
HWY_INLINE void MulAddTo(FloatVec& sum, const FloatVec& x, const FloatVec& q) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
    auto raw = sum.raw;
    asm("vfmadd231ps %2, %1, %0" : "+v"(raw) : "v"(x.raw), "v"(q.raw));
    sum.raw = raw;
#else
    sum = hn::MulAdd(x, q, sum);
#endif
}

/// R rows `stride` numbers apart. A tall tile of AVX-512 addresses them from every fourth one: GCC would keep an offset
/// for each, more than there are registers, and load most of them again in the innermost loop. It must not see where
/// the addresses come from, or it would go back to that.
template <std::size_t R, class T>
struct TileRowsAt {
    static constexpr bool from_fourths = HWY_ARCH_X86 && HWY_CAP_GE512 && R > 4;
    static constexpr std::size_t bases = from_fourths ? (R + 3) / 4 : 1;
    std::size_t stride;
    std::size_t three;
    const T* base[bases];

    HWY_INLINE TileRowsAt(const T* rows, std::size_t row_stride) {
        stride = row_stride;
        base[0] = rows;
#if HWY_ARCH_X86 && HWY_CAP_GE512
        if constexpr (from_fourths) {
            std::size_t triple = 3 * stride;
            asm("" : "+r"(triple));
            three = triple;
            HWY_UNROLL(6)
            for (std::size_t i = 1; i < bases; ++i) {
                rows += 4 * stride;
                asm("" : "+r"(rows));
                base[i] = rows;
            }
        }
#endif
    }
    HWY_INLINE const T* operator[](std::size_t r) const {
        if constexpr (!from_fourths) return base[0] + r * stride;
        return base[r / 4] + (r % 4 == 3 ? three : r % 4 * stride);
    }
};

/// Number k of the dimension for the whole tile.
template <std::size_t R, std::size_t C>
HWY_INLINE void TileStep(const TileRowsAt<R, float>& rows, std::size_t k, const float* HWY_RESTRICT panel,
                         FloatVec (&sum)[R][C]) {
    const FloatTag df;
    FloatVec q[C];
    HWY_UNROLL(3)
    for (std::size_t c = 0; c < C; ++c) q[c] = hn::Load(df, panel + c * Lanes());
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        const FloatVec x = hn::Set(df, rows[r][k]);
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) MulAddTo(sum[r][c], x, q[c]);
    }
}

/// Four numbers; AVX2 has its own for the tiles it uses.
template <std::size_t R, std::size_t C>
HWY_INLINE void FourSteps(const float* HWY_RESTRICT rows, std::size_t stride, const float* HWY_RESTRICT panel,
                          FloatVec (&sum)[R][C]) {
    const TileRowsAt<R, float> at(rows, stride);
    HWY_UNROLL(4)
    for (std::size_t k = 0; k < 4; ++k) TileStep(at, k, panel + k * C * Lanes(), sum);
}

template <std::size_t R, std::size_t C>
HWY_INLINE void OneStep(const float* HWY_RESTRICT rows, std::size_t stride, const float* HWY_RESTRICT panel,
                        FloatVec (&sum)[R][C]) {
    TileStep(TileRowsAt<R, float>(rows, stride), 0, panel, sum);
}

#if HWY_TARGET == HWY_AVX2
/// A number of a half panel: C whole vectors, and one whose lower half belongs to the even row of a pair and whose
/// upper half to the odd one.
template <std::size_t R, std::size_t C, std::size_t pairs>
HWY_INLINE void OneStep(const float* HWY_RESTRICT rows, std::size_t stride, const float* HWY_RESTRICT panel,
                        FloatVec (&sum)[R][C], FloatVec (&half)[pairs]) {
    const FloatTag df;
    OneStep(rows, stride, panel, sum);
    const FloatVec tokens = hn::Load(df, panel + C * Lanes());
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < pairs; ++i) {
        const FloatVec even = hn::Set(df, rows[2 * i * stride]);
        const FloatVec odd = hn::Set(df, rows[(2 * i + 1) * stride]);
        MulAddTo(half[i], hn::ConcatUpperLower(df, odd, even), tokens);
    }
}
#endif

template <std::size_t R, std::size_t C>
HWY_INLINE void Clear(FloatVec (&sum)[R][C]) {
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) sum[r][c] = hn::Zero(FloatTag());
    }
}

template <std::size_t pairs>
HWY_INLINE void Clear(FloatVec (&half)[pairs]) {
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < pairs; ++i) half[i] = hn::Zero(FloatTag());
}

/// sum[r][c] = sum_k rows[r][k] * panel[k][c] for R rows and a panel `width` floats wide; the sums are one array, or
/// two for a half panel. Every 16 numbers beside(k) may do something that uses other parts of the core: fetch memory,
/// convert the next rows. (No lambdas in here: GCC would keep the sums in memory.)
template <std::size_t R, std::size_t width, class Beside, class... Sums>
HWY_INLINE void Tile(const float* rows, std::size_t stride, const float* panel, std::size_t d, const Beside& beside,
                     Sums&... sums) {
    (Clear(sums), ...);
    std::size_t k = 0;
    for (; k + 16 <= d; k += 16) {
        beside.template Step<R>(k);
        for (std::size_t i = 0; i < 16; i += 4) {
            FourSteps(rows, stride, panel, sums...);
            rows += 4;
            panel += 4 * width;
        }
    }
    if (k == d) return;
    beside.template Rest<R>(k, d);
    for (; k < d; ++k) {
        OneStep(rows, stride, panel, sums...);
        ++rows;
        panel += width;
    }
}

/// Nothing beside the tile.
struct Alone {
    HWY_INLINE Alone At(std::size_t, std::size_t) const { return {}; }
    template <std::size_t R>
    HWY_INLINE void Step(std::size_t) const {}
    template <std::size_t R>
    HWY_INLINE void Rest(std::size_t, std::size_t) const {}
};

/// Fetches the rows that come one block later: R cache lines for every 16 floats of R rows.
struct FetchFloats {
    const float* ahead;

    HWY_INLINE FetchFloats At(std::size_t row, std::size_t d) const { return {ahead + row * d}; }
    template <std::size_t R>
    HWY_INLINE void Step(std::size_t k) const {
        HWY_UNROLL(24)
        for (std::size_t r = 0; r < R; ++r) hwy::Prefetch(ahead + k * R + r * 16);
    }
    template <std::size_t R>
    HWY_INLINE void Rest(std::size_t, std::size_t) const {}
};

/// Where the tile after the one at row r begins, n after the last. When n >= R is no multiple of R the last tile
/// overlaps the one before, so a row may be seen twice.
template <std::size_t R>
HWY_INLINE constexpr std::size_t NextTile(std::size_t r, std::size_t n) {
    return r + R >= n ? n : r + 2 * R <= n ? r + R : n - R;
}

/// Runs tiles over rows [0,n) of a block against one panel and hands each to epilogue(acc, first row), which
/// must not mind seeing a row twice. Fewer rows than a tile are done one by one; nothing comes after them, so
/// nothing is done beside.
template <std::size_t C, class Beside, class Epilogue>
HWY_INLINE void TilesOver(const float* rows, std::size_t n, std::size_t d, const float* panel, const Beside& beside,
                          const Epilogue& epilogue) {
    constexpr std::size_t R = TileRows<C>();
    if (n < R) {
        for (std::size_t r = 0; r < n; ++r) {
            FloatVec acc[1][C];
            Tile<1, C * Lanes()>(rows + r * d, d, panel, d, Alone(), acc);
            epilogue(acc, r);
        }
        return;
    }
    for (std::size_t r = 0; r < n; r = NextTile<R>(r, n)) {
        FloatVec acc[R][C];
        Tile<R, C * Lanes()>(rows + r * d, d, panel, d, beside.At(r, d), acc);
        epilogue(acc, r);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();
#endif  // MARGINMERGE_KERNELS_TILE_INL_H_
