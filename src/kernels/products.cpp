#include "kernels/products.h"

#include <algorithm>
#include <limits>

#include "core/fail.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/products.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/scan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

/// out[lane][i] = staged[i][lane] for i < n and lane < lanes; four by four.
HWY_INLINE void StoreTransposed(const float* HWY_RESTRICT staged, std::size_t width, std::size_t n, std::size_t lanes,
                                float* HWY_RESTRICT out, std::size_t stride) {
    std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
    const hn::CappedTag<float, 4> dq;
    for (; i + 4 <= n; i += 4) {
        const float* p = staged + i * width;
        std::size_t lane = 0;
        for (; lane + 4 <= lanes; lane += 4) {
            const auto a = hn::LoadU(dq, p + lane);
            const auto b = hn::LoadU(dq, p + width + lane);
            const auto c = hn::LoadU(dq, p + 2 * width + lane);
            const auto d = hn::LoadU(dq, p + 3 * width + lane);
            const auto ac_low = hn::InterleaveLower(dq, a, c);
            const auto bd_low = hn::InterleaveLower(dq, b, d);
            const auto ac_high = hn::InterleaveUpper(dq, a, c);
            const auto bd_high = hn::InterleaveUpper(dq, b, d);
            float* q = out + lane * stride + i;
            hn::StoreU(hn::InterleaveLower(dq, ac_low, bd_low), dq, q);
            hn::StoreU(hn::InterleaveUpper(dq, ac_low, bd_low), dq, q + stride);
            hn::StoreU(hn::InterleaveLower(dq, ac_high, bd_high), dq, q + 2 * stride);
            hn::StoreU(hn::InterleaveUpper(dq, ac_high, bd_high), dq, q + 3 * stride);
        }
        for (; lane < lanes; ++lane)
            for (std::size_t r = 0; r < 4; ++r) out[lane * stride + i + r] = p[r * width + lane];
    }
#endif
    for (; i < n; ++i)
        for (std::size_t lane = 0; lane < lanes; ++lane) out[lane * stride + i] = staged[i * width + lane];
}

void PackMatrix(ConstMatrix rows, PackedRows& packed) {
    packed.rows = rows.rows;
    packed.dim = rows.cols;
    packed.layout = HWY_TARGET;
    const std::size_t need = VectorsFor(rows.rows) * Lanes() * rows.cols;
    if (packed.lanes.size() < need) packed.lanes = AlignedArray<float>(need);
    ForPanels(VectorsFor(rows.rows), [&](auto width, std::size_t v) HWY_ATTR {
        constexpr std::size_t span = width() * Lanes();
        const std::size_t first = v * Lanes(), inside = std::min(span, rows.rows - first);
        float* panel = packed.lanes.data() + first * rows.cols;
        StoreTransposed(rows.row(first), rows.cols, inside, rows.cols, panel, span);
        // Repeating the last row keeps an argmax honest and costs the products nothing.
        for (std::size_t k = 0; inside < span && k < rows.cols; ++k)
            std::fill_n(panel + k * span + inside, span - inside, panel[k * span + inside - 1]);
    });
}

/// Writes tiles as they are: out[row, lane], the lane side being b.
struct StoreRows {
    MutMatrix out;
    std::size_t first_row;
    std::size_t first_lane;

    template <std::size_t R, std::size_t C>
    HWY_INLINE void operator()(const FloatVec (&acc)[R][C], std::size_t row) const {
        const FloatTag df;
        // Loops unrolled in full: the sums must not be indexed at run time, or they live in memory.
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) {
            const std::size_t lane = first_lane + c * Lanes();
            if (lane >= out.cols) break;
            const std::size_t inside = std::min(Lanes(), out.cols - lane);
            HWY_UNROLL(24)
            for (std::size_t r = 0; r < R; ++r) {
                float* p = out.row(first_row + row + r) + lane;
                if (HWY_LIKELY(inside == Lanes())) {
                    hn::StoreU(acc[r][c], df, p);
                } else {
                    StorePart(acc[r][c], inside, p);
                }
            }
        }
    }

    static HWY_INLINE void StorePart(const FloatVec& x, std::size_t count, float* p) {
        HWY_ALIGN float part[Lanes()];
        hn::Store(x, FloatTag(), part);
        std::copy_n(part, count, p);
    }
};

/// Stages tiles of one panel, [block rows][C * lanes], to be written transposed afterwards.
struct Stage {
    float* staged;

    template <std::size_t R, std::size_t C>
    HWY_INLINE void operator()(const FloatVec (&acc)[R][C], std::size_t row) const {
        const FloatTag df;
        HWY_UNROLL(24)
        for (std::size_t r = 0; r < R; ++r) {
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < C; ++c) hn::Store(acc[r][c], df, staged + ((row + r) * C + c) * Lanes());
        }
    }
};

/// Calls f(first row, rows) for blocks of v that stay in the first-level cache.
template <class F>
HWY_INLINE void ForBlocks(ConstMatrix v, F&& f) {
    const std::size_t block_rows = BlockRows(v.cols * sizeof(float), 16384);
    for (std::size_t row = 0; row < v.rows; row += block_rows) f(row, std::min(block_rows, v.rows - row));
}

/// out[i, lane] = v_i . packed_lane.
void ProductRows(const PackedRows& packed, ConstMatrix v, MutMatrix out) {
    if (packed.layout != HWY_TARGET) fail(ErrorCode::internal, "rows packed for another kernel level");
    ForBlocks(v, [&](std::size_t row, std::size_t n) HWY_ATTR {
        ForPanels(VectorsFor(packed.rows), [&](auto width, std::size_t p) HWY_ATTR {
            if (p * Lanes() >= out.cols) return;
            const float* panel = packed.lanes.data() + p * Lanes() * v.cols;
            TilesOver<width()>(v.row(row), n, v.cols, panel, Alone(), StoreRows{out, row, p * Lanes()});
        });
    });
}

/// out[lane, i] = v_i . packed_lane; with `best`, clamped to [-1,1], best[lane] = max_i.
void ProductLanes(const PackedRows& packed, ConstMatrix v, MutMatrix out, float* best) {
    if (packed.layout != HWY_TARGET) fail(ErrorCode::internal, "rows packed for another kernel level");
    const FloatTag df;
    const std::size_t padded = VectorsFor(packed.rows) * Lanes();
    float* staged = scratch_floats<1>(max_block * 3 * Lanes());
    float* tops = scratch_floats<2>(padded);
    std::fill_n(tops, padded, -1.0f);
    ForBlocks(v, [&](std::size_t row, std::size_t n) HWY_ATTR {
        ForPanels(VectorsFor(packed.rows), [&](auto width, std::size_t p) HWY_ATTR {
            constexpr std::size_t C = width();
            const std::size_t lane = p * Lanes();
            TilesOver<C>(v.row(row), n, v.cols, packed.lanes.data() + lane * v.cols, FetchFloats{v.row(row + n)},
                         Stage{staged});
            if (best != nullptr) {
                const FloatVec one = hn::Set(df, 1.0f);
                const FloatVec minus = hn::Set(df, -1.0f);
                FloatVec top[C];
                for (std::size_t c = 0; c < C; ++c) top[c] = hn::Load(df, tops + lane + c * Lanes());
                for (std::size_t i = 0; i < n; ++i) {
                    for (std::size_t c = 0; c < C; ++c) {
                        float* s = staged + (i * C + c) * Lanes();
                        const FloatVec x = hn::Min(hn::Max(hn::Load(df, s), minus), one);
                        top[c] = hn::Max(top[c], x);
                        hn::Store(x, df, s);
                    }
                }
                for (std::size_t c = 0; c < C; ++c) hn::Store(top[c], df, tops + lane + c * Lanes());
            }
            StoreTransposed(staged, C * Lanes(), n, std::min(C * Lanes(), packed.rows - lane), out.row(lane) + row,
                            out.cols);
        });
    });
    if (best != nullptr) std::copy_n(tops, packed.rows, best);
}

/// Best centre of every row, lane by lane; `winner` counts vectors of centres.
struct Champions {
    float* best;           ///< [block rows][lanes]
    std::int32_t* winner;  ///< the same
    std::size_t vector;    ///< first vector of the panel

    template <std::size_t R, std::size_t C>
    HWY_INLINE void operator()(const FloatVec (&acc)[R][C], std::size_t row) const {
        const FloatTag df;
        const IntTag di;
        HWY_UNROLL(24)
        for (std::size_t r = 0; r < R; ++r) {
            float* b = best + (row + r) * Lanes();
            std::int32_t* w = winner + (row + r) * Lanes();
            FloatVec top = hn::Load(df, b);
            IntVec where = hn::Load(di, w);
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < C; ++c) {
                const auto better = hn::Gt(acc[r][c], top);
                top = hn::IfThenElse(better, acc[r][c], top);
                where = hn::IfThenElse(hn::RebindMask(di, better), hn::Set(di, static_cast<std::int32_t>(vector + c)),
                                       where);
            }
            hn::Store(top, df, b);
            hn::Store(where, di, w);
        }
    }
};

void NearestRows(ConstMatrix v, const PackedRows& centres, std::int32_t* index, float* similarity) {
    if (centres.layout != HWY_TARGET) fail(ErrorCode::internal, "rows packed for another kernel level");
    const FloatTag df;
    const IntTag di;
    float* best = scratch_floats<1>(2 * max_block * Lanes());
    auto* winner = reinterpret_cast<std::int32_t*>(best + max_block * Lanes());
    ForBlocks(v, [&](std::size_t row, std::size_t n) HWY_ATTR {
        std::fill_n(best, n * Lanes(), -std::numeric_limits<float>::infinity());
        std::fill_n(winner, n * Lanes(), 0);
        ForPanels(VectorsFor(centres.rows), [&](auto width, std::size_t p) HWY_ATTR {
            const float* panel = centres.lanes.data() + p * Lanes() * v.cols;
            const Champions champions{best, winner, p};
            if (p == 0) {
                TilesOver<width()>(v.row(row), n, v.cols, panel, FetchFloats{v.row(row + n)}, champions);
            } else {
                TilesOver<width()>(v.row(row), n, v.cols, panel, Alone(), champions);
            }
        });
        for (std::size_t i = 0; i < n; ++i) {
            const FloatVec top = hn::Load(df, best + i * Lanes());
            const FloatVec highest = hn::MaxOfLanes(df, top);
            const IntVec lane = hn::Iota(di, 0);
            const IntVec centre =
                hn::Add(hn::ShiftLeft<hwy::FloorLog2(Lanes())>(hn::Load(di, winner + i * Lanes())), lane);
            const IntVec candidate = hn::IfThenElse(hn::RebindMask(di, hn::Eq(top, highest)), centre,
                                                    hn::Set(di, std::numeric_limits<std::int32_t>::max()));
            // Not-a-number rows answer no centre; the first stands in. Repeated padding never wins.
            const std::int32_t found = hn::GetLane(hn::MinOfLanes(di, candidate));
            index[row + i] = static_cast<std::size_t>(found) < centres.rows ? found : 0;
            similarity[row + i] = hn::GetLane(highest);
        }
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(PackMatrix);
HWY_EXPORT(ProductRows);
HWY_EXPORT(ProductLanes);
HWY_EXPORT(NearestRows);

namespace {

/// Packing space that a thread keeps from call to call.
PackedRows& packed_here(ConstMatrix rows) {
    thread_local PackedRows packed{ConstMatrix()};
    MARGINMERGE_DISPATCH(PackMatrix)(rows, packed);
    return packed;
}

}  // namespace

PackedRows::PackedRows(ConstMatrix source) { MARGINMERGE_DISPATCH(PackMatrix)(source, *this); }

void product(ConstMatrix a, ConstMatrix b, MutMatrix out) {
    if (a.rows == 0 || b.rows == 0) return;
    if (b.rows <= a.rows) {
        MARGINMERGE_DISPATCH(ProductRows)(packed_here(b), a, out);
    } else {
        MARGINMERGE_DISPATCH(ProductLanes)(packed_here(a), b, out, nullptr);
    }
}

void product(ConstMatrix a, const PackedRows& b, MutMatrix out) {
    if (a.rows == 0 || b.rows == 0) return;
    MARGINMERGE_DISPATCH(ProductRows)(b, a, out);
}

void responses(ConstMatrix z, ConstMatrix v, MutMatrix out, std::span<float> best) {
    responses(packed_here(z), v, out, best);
}

void responses(const PackedRows& z, ConstMatrix v, MutMatrix out, std::span<float> best) {
    MARGINMERGE_DISPATCH(ProductLanes)(z, v, out, best.data());
}

void nearest(ConstMatrix v, ConstMatrix centres, std::span<std::int32_t> index, std::span<float> similarity) {
    nearest(v, packed_here(centres), index, similarity);
}

void nearest(ConstMatrix v, const PackedRows& centres, std::span<std::int32_t> index, std::span<float> similarity) {
    if (centres.rows == 0 && v.rows > 0) fail(ErrorCode::invalid_argument, "nearest: expected centres, found none");
    MARGINMERGE_DISPATCH(NearestRows)(v, centres, index.data(), similarity.data());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
