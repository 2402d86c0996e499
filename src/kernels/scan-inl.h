// What every MaxSim scan shares: walking ragged documents in blocks of rows, keeping the best
// response of every token for every document, and adding the tokens up.
#if defined(MARGINMERGE_KERNELS_SCAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_SCAN_INL_H_
#undef MARGINMERGE_KERNELS_SCAN_INL_H_
#else
#define MARGINMERGE_KERNELS_SCAN_INL_H_
#endif

#include <algorithm>
#include <limits>
#include <span>

#include "kernels/scratch.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

/// Most rows a block can have.
constexpr std::size_t max_block = 240;

/// Rows of a block that fit `bytes`: a multiple of every tile's rows.
HWY_INLINE std::size_t BlockRows(std::size_t row_bytes, std::size_t bytes) {
    const std::size_t fitting = bytes / (row_block * std::max<std::size_t>(row_bytes, 1));
    return row_block * std::clamp<std::size_t>(fitting, 1, max_block / row_block);
}

/// Where the rows of a block keep their documents' best responses.
struct Slots {
    float* best;                  ///< [slots][width]
    std::size_t width;            ///< floats a slot: tokens padded to whole vectors
    std::uint32_t of[max_block];  ///< slot of each row of the block

    /// Raises the best responses of vectors v.. of the tokens by the rows of a tile.
    template <std::size_t R, std::size_t C>
    HWY_INLINE void Raise(const FloatVec (&acc)[R][C], std::size_t row, std::size_t v) const {
        const FloatTag df;
        if (of[row] == of[row + R - 1]) {
            float* p = best + of[row] * width + v * Lanes();
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < C; ++c) {
                FloatVec top = hn::Load(df, p + c * Lanes());
                HWY_UNROLL(24)
                for (std::size_t r = 0; r < R; ++r) top = hn::Max(top, acc[r][c]);
                hn::Store(top, df, p + c * Lanes());
            }
            return;
        }
        HWY_UNROLL(24)
        for (std::size_t r = 0; r < R; ++r) {
            float* p = best + of[row + r] * width + v * Lanes();
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < C; ++c)
                hn::Store(hn::Max(hn::Load(df, p + c * Lanes()), acc[r][c]), df, p + c * Lanes());
        }
    }

#if HWY_TARGET == HWY_AVX2
    /// The same for the last vector, v, of a half panel: half[i] holds rows row + 2i and row + 2i + 1.
    template <std::size_t pairs>
    HWY_INLINE void RaiseHalf(const FloatVec (&half)[pairs], std::size_t row, std::size_t v) const {
        const FloatTag df;
        float* at = best + v * Lanes();
        const auto raise = [&](std::size_t slot, const FloatVec& x) HWY_ATTR {
            hn::Store(hn::Max(hn::Load(df, at + slot * width), x), df, at + slot * width);
        };
        if (of[row] == of[row + 2 * pairs - 1]) {
            FloatVec top = half[0];
            HWY_UNROLL(4)
            for (std::size_t i = 1; i < pairs; ++i) top = hn::Max(top, half[i]);
            raise(of[row], hn::Max(top, hn::SwapAdjacentBlocks(top)));
            return;
        }
        HWY_UNROLL(4)
        for (std::size_t i = 0; i < pairs; ++i) {
            raise(of[row + 2 * i], hn::ConcatLowerLower(df, half[i], half[i]));
            raise(of[row + 2 * i + 1], hn::ConcatUpperUpper(df, half[i], half[i]));
        }
    }
#endif
};

/// sum_i best[i] (times scale[i] when given) in an order that does not depend on the vector length:
/// sixteen partial sums, number i going to partial i % 16, then halves added to halves.
HWY_INLINE float SumTokens(const float* HWY_RESTRICT best, const float* HWY_RESTRICT scale, std::size_t count) {
    const FloatTag df;
    constexpr std::size_t parts = 16 / Lanes();
    FloatVec sum[parts];
    for (std::size_t p = 0; p < parts; ++p) sum[p] = hn::Zero(df);
    for (std::size_t i = 0; i < count; i += 16) {
        for (std::size_t p = 0; p < parts; ++p) {
            const std::size_t first = i + p * Lanes();
            if (first >= count) break;
            const auto inside = hn::FirstN(df, std::min(count - first, Lanes()));
            FloatVec x = hn::IfThenElseZero(inside, hn::LoadU(df, best + first));
            if (scale != nullptr) x = hn::Mul(x, hn::IfThenElseZero(inside, hn::LoadU(df, scale + first)));
            sum[p] = hn::Add(sum[p], x);
        }
    }
    HWY_ALIGN float part[16];
    for (std::size_t p = 0; p < parts; ++p) hn::Store(sum[p], df, part + p * Lanes());
    for (std::size_t half = 8; half > 0; half /= 2)
        for (std::size_t i = 0; i < half; ++i) part[i] += part[i + half];
    return part[0];
}

/// The queries of a scan: tokens begins[q] .. begins[q+1] belong to query q.
struct TokenRanges {
    std::span<const std::uint32_t> begins;
    const float* scales = nullptr;  ///< of every token; null: one
    std::size_t padded = 0;         ///< tokens padded to whole vectors
};

/// Scores count = offsets.size()-1 documents: out[q * count + document]. block(first row, rows, slots)
/// must raise the slots of its rows by their responses. Empty documents score -infinity.
template <class Block>
HWY_INLINE void ScanDocuments(const TokenRanges& tokens, std::span<const std::int64_t> offsets, std::size_t block_rows,
                              float* out, Block block) {
    const std::size_t count = offsets.size() - 1;
    const std::size_t queries = tokens.begins.size() - 1;
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    // Sixteen floats past the end: sums load whole vectors.
    float* best = scratch_floats<0>((block_rows + 1) * tokens.padded + 16);
    Slots slots{best, tokens.padded, {}};
    std::size_t document = 0;
    bool open = false;  // slot 0 holds a document begun in the block before
    auto row = static_cast<std::size_t>(offsets[0]);
    const auto end = static_cast<std::size_t>(offsets[count]);
    const auto finish = [&](std::size_t slot) HWY_ATTR {
        const float* p = best + slot * tokens.padded;
        for (std::size_t q = 0; q < queries; ++q) {
            const std::size_t first = tokens.begins[q];
            out[q * count + document] = SumTokens(p + first, tokens.scales == nullptr ? nullptr : tokens.scales + first,
                                                  tokens.begins[q + 1] - first);
        }
    };
    while (row < end) {
        const std::size_t n = std::min(block_rows, end - row);
        const std::size_t first_document = document;
        std::size_t used = 0;
        std::size_t at = row;
        while (at < row + n) {
            const auto last = static_cast<std::size_t>(offsets[document + 1]);
            if (last == at && !open) {  // no vectors at all
                for (std::size_t q = 0; q < queries; ++q) out[q * count + document] = lowest;
                ++document;
                continue;
            }
            if (!(open && used == 0)) std::fill_n(best + used * tokens.padded, tokens.padded, lowest);
            const std::size_t stop = std::min(last, row + n);
            for (std::size_t r = at; r < stop; ++r) slots.of[r - row] = static_cast<std::uint32_t>(used);
            at = stop;
            ++used;
            open = stop < last;
            if (!open) ++document;
        }
        block(row, n, slots);
        const std::size_t next = document;
        std::size_t slot = 0;
        for (document = first_document; document < next; ++document)
            if (offsets[document + 1] > offsets[document]) finish(slot++);
        if (open && slot > 0) std::copy_n(best + slot * tokens.padded, tokens.padded, best);
        row += n;
    }
    for (; document < count; ++document)
        for (std::size_t q = 0; q < queries; ++q) out[q * count + document] = lowest;
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();
#endif  // MARGINMERGE_KERNELS_SCAN_INL_H_
