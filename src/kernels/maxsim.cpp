#include "kernels/maxsim.h"

#include <cstring>

#include "core/fail.h"
#include "kernels/convert.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/maxsim.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/convert-inl.h"
#include "kernels/scan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

void PackQuery(ConstMatrix rows, PackedTokens& packed) {
    packed.tokens = rows.rows;
    packed.dim = rows.cols;
    packed.padded = VectorsFor(rows.rows) * Lanes();
    packed.layout = HWY_TARGET;
    packed.lanes = AlignedArray<float>(packed.padded * rows.cols);
    ForTokenPanels(rows.rows, [&](auto width, std::size_t v, bool) HWY_ATTR {
        PackPanel<width()>(rows.data, rows.cols, packed.lanes.data() + v * Lanes() * rows.cols,
                           [&](std::size_t lane) { return TokenOfLane(v * Lanes() + lane, rows.rows); });
    });
}

// Unrolled where a conversion is one instruction.
#undef MARGINMERGE_UNROLL_CONVERSION
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
#define MARGINMERGE_UNROLL_CONVERSION HWY_UNROLL(24)
#else
#define MARGINMERGE_UNROLL_CONVERSION
#endif

/// What is done beside the tiles: floats that are needed next are fetched; of stored halves, the block that comes next
/// is converted and the one after fetched. One type for all, told apart at run time, because every tile is compiled
/// for each.
struct Ahead {
    const void* from;       ///< f32: what to fetch; else the next block
    ScalarType type;        ///< of `from`
    float* to;              ///< [rows][d]
    std::size_t count;      ///< numbers in the next block
    std::size_t fetch;      ///< numbers from there to the block after
    std::size_t first = 0;  ///< where the rows of the current tile begin

    static Ahead Fetch(const float* next) { return {next, ScalarType::f32, nullptr, 0, 0}; }
    HWY_INLINE Ahead At(std::size_t row, std::size_t d) const { return {from, type, to, count, fetch, row * d}; }

    template <std::size_t R>
    HWY_INLINE void Step(std::size_t k) const {
        const std::size_t at = first + k * R;
        if (type == ScalarType::f32) {
            const auto* next = static_cast<const float*>(from) + at;
            HWY_UNROLL(24)
            for (std::size_t r = 0; r < R; ++r) hwy::Prefetch(next + r * 16);
            return;
        }
        const auto* next = static_cast<const std::uint16_t*>(from) + at;
        HWY_UNROLL(12)
        for (std::size_t line = 0; line < (R + 1) / 2; ++line) hwy::Prefetch(next + fetch + line * 32);
        if (at + R * 16 > count) {
            if (at < count) Convert(at, count - at);
        } else if (type == ScalarType::f16) {
            float* p = Apart(to + at);
            MARGINMERGE_UNROLL_CONVERSION
            for (std::size_t i = 0; i < R * 16; i += Lanes()) hn::StoreU(FromHalf(next + i), FloatTag(), p + i);
        } else {
            float* p = Apart(to + at);
            MARGINMERGE_UNROLL_CONVERSION
            for (std::size_t i = 0; i < R * 16; i += Lanes()) hn::StoreU(FromBrain(next + i), FloatTag(), p + i);
        }
    }
    /// The same pointer; GCC does not see that, and so does not compute the addresses of both branches beforehand.
    static HWY_INLINE float* Apart(float* p) {
        asm("" : "+r"(p));
        return p;
    }
    template <std::size_t R>
    HWY_INLINE void Rest(std::size_t k, std::size_t d) const {
        const std::size_t at = first + k * R;
        if (at < count) Convert(at, std::min(count - at, (d - k) * R));
    }
    HWY_NOINLINE void Convert(std::size_t at, std::size_t numbers) const {
        const auto* next = static_cast<const std::uint16_t*>(from) + at;
        if (type == ScalarType::f16) ToFloats<ScalarType::f16>(next, numbers, to + at);
        if (type == ScalarType::bf16) ToFloats<ScalarType::bf16>(next, numbers, to + at);
    }
};

/// Scores the rows of a block panel by panel.
struct FloatBlock {
    const PackedTokens& query;
    VectorsView vectors;
    std::size_t end;  ///< rows of the scan end here
    std::size_t block_rows;
    float* converted;  ///< two blocks, this and the next, [block rows][d] each; unused for f32

    HWY_INLINE void operator()(std::size_t row, std::size_t n, const Slots& slots) {
        const std::size_t d = query.dim;
        if (vectors.type == ScalarType::f32) {
            const float* rows = static_cast<const float*>(vectors.data) + row * d;
            Panels(rows, n, slots, Ahead::Fetch(rows + n * d));
            return;
        }
        const auto* next = static_cast<const std::uint16_t*>(vectors.data) + (row + n) * d;
        float* now = odd_ ? converted + block_rows * d : converted;
        float* other = odd_ ? converted : converted + block_rows * d;
        if (fresh_) Ahead{next - n * d, vectors.type, now, 0, 0}.Convert(0, n * d);
        const std::size_t count = std::min(end - row - n, block_rows) * d;
        Panels(now, n, slots, Ahead{next, vectors.type, other, count, n * d});
        fresh_ = false;
        odd_ = !odd_;
    }

    HWY_INLINE void Panels(const float* rows, std::size_t n, const Slots& slots, const Ahead& ahead) const {
        const std::size_t d = query.dim;
        ForTokenPanels(query.tokens, [&](auto width, std::size_t v, [[maybe_unused]] bool half) HWY_ATTR {
            constexpr std::size_t C = width();
            const float* panel = query.lanes.data() + v * Lanes() * d;
            // The first panel works for the next block, the others fetch the panel that follows, the last one the
            // first.
            const bool last = (v + C) * Lanes() == query.padded;
            const Ahead beside = v == 0 ? ahead : Ahead::Fetch(last ? query.lanes.data() : panel + C * Lanes() * d);
#if HWY_TARGET == HWY_AVX2
            if constexpr (C > 1) {
                constexpr std::size_t R = TileRows<C>();
                if (half && n >= R) {
                    for (std::size_t r = 0; r < n; r = NextTile<R>(r, n)) {
                        FloatVec acc[R][C - 1];
                        FloatVec paired[R / 2];
                        Tile<R, C * Lanes()>(rows + r * d, d, panel, d, beside.At(r, d), acc, paired);
                        slots.Raise(acc, r, v);
                        slots.RaiseHalf(paired, r, v + C - 1);
                    }
                    return;
                }
            }
#endif
            TilesOver<C>(rows, n, d, panel, beside,
                         [&](const auto& acc, std::size_t r) HWY_ATTR { slots.Raise(acc, r, v); });
        });
    }

    bool fresh_ = true;
    bool odd_ = false;
};

void Scan(const PackedTokens& query, std::span<const std::uint32_t> begins, VectorsView vectors,
          std::span<const std::int64_t> offsets, float* out) {
    if (query.layout != HWY_TARGET) fail(ErrorCode::internal, "query prepared for another kernel level");
    const bool floats = vectors.type == ScalarType::f32;
    const std::size_t block_rows = BlockRows(query.dim * sizeof(float), floats ? 16384 : 8192);
    float* converted = floats ? nullptr : scratch_floats<1>(2 * block_rows * query.dim);
    ScanDocuments({begins, nullptr, query.padded}, offsets, block_rows, out,
                  FloatBlock{query, vectors, static_cast<std::size_t>(offsets.back()), block_rows, converted});
}

/// Keeps the best response and its row for every token.
struct Winners {
    float* best;
    std::int32_t* winner;
    std::int32_t first;

    template <std::size_t R, std::size_t C>
    HWY_INLINE void operator()(const FloatVec (&acc)[R][C], std::size_t row) const {
        const FloatTag df;
        const IntTag di;
        for (std::size_t c = 0; c < C; ++c) {
            FloatVec top = hn::Load(df, best + c * Lanes());
            IntVec where = hn::Load(di, winner + c * Lanes());
            HWY_UNROLL(24)
            for (std::size_t r = 0; r < R; ++r) {
                const auto better = hn::Gt(acc[r][c], top);
                top = hn::IfThenElse(better, acc[r][c], top);
                where = hn::IfThenElse(hn::RebindMask(di, better),
                                       hn::Set(di, first + static_cast<std::int32_t>(row + r)), where);
            }
            hn::Store(top, df, best + c * Lanes());
            hn::Store(where, di, winner + c * Lanes());
        }
    }
};

void FindWinners(const PackedTokens& query, VectorsView document, float* best, std::int32_t* winner) {
    if (query.layout != HWY_TARGET) fail(ErrorCode::internal, "query prepared for another kernel level");
    const std::size_t d = query.dim;
    const std::size_t block_rows = BlockRows(d * sizeof(float), 16384);
    float* tops = scratch_floats<0>(2 * query.padded);
    auto* where = reinterpret_cast<std::int32_t*>(tops + query.padded);
    std::fill_n(tops, query.padded, -std::numeric_limits<float>::infinity());
    std::fill_n(where, query.padded, -1);
    float* converted = scratch_floats<1>(block_rows * d);
    for (std::size_t row = 0; row < document.rows; row += block_rows) {
        const std::size_t n = std::min(block_rows, document.rows - row);
        const VectorsView block = document.middle_rows(row, n);
        const auto* rows = static_cast<const float*>(block.data);
        if (document.type != ScalarType::f32) {
            Ahead{block.data, document.type, converted, 0, 0}.Convert(0, n * d);
            rows = converted;
        }
        ForTokenPanels(query.tokens, [&](auto width, std::size_t v, bool) HWY_ATTR {
            const Winners winners{tops + v * Lanes(), where + v * Lanes(), static_cast<std::int32_t>(row)};
            TilesOver<width()>(rows, n, d, query.lanes.data() + v * Lanes() * d, Alone(), winners);
        });
    }
    std::copy_n(tops, query.tokens, best);
    std::copy_n(where, query.tokens, winner);
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(PackQuery);
HWY_EXPORT(Scan);
HWY_EXPORT(FindWinners);

PreparedQuery::PreparedQuery(VectorsView query) : rows_(to_float(query)) {
    MARGINMERGE_DISPATCH(PackQuery)(rows_.view(), packed_);
}

PreparedBatch::PreparedBatch(std::span<const VectorsView> queries) : begins_{0} {
    for (const VectorsView& query : queries) begins_.push_back(begins_.back() + static_cast<std::uint32_t>(query.rows));
    Matrix rows;
    rows.reshape(begins_.back(), queries.empty() ? 0 : queries.front().dim);
    for (std::size_t q = 0; q < queries.size(); ++q) to_float(queries[q], rows.row(begins_[q]));
    MARGINMERGE_DISPATCH(PackQuery)(rows.view(), packed_);
}

float maxsim(const PreparedQuery& query, VectorsView document) {
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(document.rows)};
    float score = 0.0f;
    maxsim_many(query, document, offsets, {&score, 1});
    return score;
}

void maxsim_many(const PreparedQuery& query, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    if (offsets.size() < 2) return;
    const std::uint32_t begins[] = {0, static_cast<std::uint32_t>(query.tokens())};
    MARGINMERGE_DISPATCH(Scan)(query.packed(), std::span<const std::uint32_t>(begins), vectors, offsets, out.data());
}

void maxsim_many(const PreparedBatch& batch, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    if (offsets.size() < 2) return;
    MARGINMERGE_DISPATCH(Scan)(batch.packed(), batch.begins(), vectors, offsets, out.data());
}

void maxsim_batch(const PreparedBatch& batch, VectorsView document, std::span<float> out) {
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(document.rows)};
    maxsim_many(batch, document, offsets, out);
}

PreparedBatch batch_of(std::span<const PreparedQuery* const> queries) {
    std::vector<VectorsView> views;
    for (const PreparedQuery* query : queries) views.emplace_back(query->rows());
    return PreparedBatch(views);
}

void maxsim_winners(const PreparedQuery& query, VectorsView document, std::span<float> best,
                    std::span<std::int32_t> winner) {
    MARGINMERGE_DISPATCH(FindWinners)(query.packed(), document, best.data(), winner.data());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
