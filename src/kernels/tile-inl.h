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

/// Packs rows [count,d] for the lane side: panel by panel, [d][width * lanes]. Lanes past the last
/// row repeat it when `repeat` is set (an argmax then never prefers them), else they are zero.
/// `packed` has VectorsFor(count) * lanes * d numbers.
HWY_INLINE void PackLanes(const float* HWY_RESTRICT rows, std::size_t count, std::size_t d, bool repeat,
                          float* HWY_RESTRICT packed) {
    ForPanels(VectorsFor(count), [&](auto width, std::size_t v) HWY_ATTR {
        constexpr std::size_t span = width() * Lanes();
        float* panel = packed + v * Lanes() * d;
        for (std::size_t lane = 0; lane < span; ++lane) {
            std::size_t row = v * Lanes() + lane;
            const bool inside = row < count;
            if (!inside && repeat) row = count - 1;
            for (std::size_t k = 0; k < d; ++k) panel[k * span + lane] = inside || repeat ? rows[row * d + k] : 0.0f;
        }
    });
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

/// One number of the dimension for the whole tile.
template <std::size_t R, std::size_t C>
HWY_INLINE void TileStep(const float* HWY_RESTRICT rows, std::size_t stride, const float* HWY_RESTRICT panel,
                         FloatVec (&sum)[R][C]) {
    const FloatTag df;
    FloatVec q[C];
    HWY_UNROLL(3)
    for (std::size_t c = 0; c < C; ++c) q[c] = hn::Load(df, panel + c * Lanes());
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        const FloatVec x = hn::Set(df, rows[r * stride]);
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) MulAddTo(sum[r][c], x, q[c]);
    }
}

/// sum[r][c] = sum_k rows[r][k] * panel[k][c]. Every 16 numbers of the dimension beside(k) may do
/// something that uses other parts of the core: fetch memory, convert the next rows.
template <std::size_t R, std::size_t C, class Beside>
HWY_INLINE void Tile(const float* HWY_RESTRICT rows, std::size_t stride, const float* HWY_RESTRICT panel, std::size_t d,
                     const Beside& beside, FloatVec (&sum)[R][C]) {
    const FloatTag df;
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) sum[r][c] = hn::Zero(df);
    }
    constexpr std::size_t width = C * Lanes();
    std::size_t k = 0;
    for (; k + 16 <= d; k += 16) {
        beside.template Step<R>(k);
        for (std::size_t i = 0; i < 16; i += 4) {
            TileStep<R, C>(rows, stride, panel, sum);
            TileStep<R, C>(rows + 1, stride, panel + width, sum);
            TileStep<R, C>(rows + 2, stride, panel + 2 * width, sum);
            TileStep<R, C>(rows + 3, stride, panel + 3 * width, sum);
            rows += 4;
            panel += 4 * width;
        }
    }
    if (k == d) return;
    beside.template Rest<R>(k, d);
    for (; k < d; ++k) {
        TileStep<R, C>(rows, stride, panel, sum);
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

/// Runs tiles over rows [0,n) of a block against one panel and hands each to
/// epilogue(acc, first row). When n is no multiple of the tile the last tile overlaps the one before,
/// so an epilogue must not mind seeing a row twice; fewer rows than a tile are done one by one.
template <std::size_t C, class Beside, class Epilogue>
HWY_INLINE void TilesOver(const float* rows, std::size_t n, std::size_t d, const float* panel, const Beside& beside,
                          const Epilogue& epilogue) {
    constexpr std::size_t R = TileRows<C>();
    if (n < R) {
        for (std::size_t r = 0; r < n; ++r) {
            FloatVec acc[1][C];
            Tile<1, C>(rows + r * d, d, panel, d, beside.At(r, d), acc);
            epilogue(acc, r);
        }
        return;
    }
    for (std::size_t r = 0;;) {
        FloatVec acc[R][C];
        Tile<R, C>(rows + r * d, d, panel, d, beside.At(r, d), acc);
        epilogue(acc, r);
        if (r + R >= n) return;
        r = r + 2 * R <= n ? r + R : n - R;
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();
#endif  // MARGINMERGE_KERNELS_TILE_INL_H_
