// The register tile of the int8 scan: as tile-inl.h, with 32-bit words that hold four numbers of
// the dimension.
#if defined(MARGINMERGE_KERNELS_INT_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_INT_TILE_INL_H_
#undef MARGINMERGE_KERNELS_INT_TILE_INL_H_
#else
#define MARGINMERGE_KERNELS_INT_TILE_INL_H_
#endif

#include <cstring>

#include "kernels/int_tile_avx2-inl.h"
#include "kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

// A word holds four codes of the document, unsigned because 128 was added to them, and four of the
// query, signed. 128 times the sum of the query's codes is taken off at the start. Words are multiplied two at
// a time.
constexpr std::size_t word_numbers = 4;
constexpr std::size_t step_words = 2;
constexpr std::int32_t document_shift = 128;

// Whether a word is one instruction.
#undef MARGINMERGE_DOT_WORDS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3_DL
#define MARGINMERGE_DOT_WORDS 1
#else
#define MARGINMERGE_DOT_WORDS 0
#endif

#if MARGINMERGE_DOT_WORDS
/// sum += x . q for the four products of every lane. Written out because Highway 1.0.3 does not tell the compiler that
/// this level has the instruction.
HWY_INLINE void MulAddWord(IntVec& sum, const IntVec& x, const IntVec& q) {
    auto raw = sum.raw;
    asm("vpdpbusd %2, %1, %0" : "+v"(raw) : "v"(x.raw), "v"(q.raw));
    sum.raw = raw;
}
#endif

/// sum += x0 . q0 + x1 . q1 for the eight products of every lane, exactly: x is at most 255, and the query's
/// codes are such that any four of them that meet in 16 bits (see PreparedInt8Query) sum to at most 128.
HWY_INLINE void MulAddWords(IntVec& sum, const IntVec& x0, const IntVec& q0, const IntVec& x1, const IntVec& q1) {
#if MARGINMERGE_DOT_WORDS
    MulAddWord(sum, x0, q0);
    MulAddWord(sum, x1, q1);
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
    auto raw = sum.raw;
#if HWY_TARGET == HWY_AVX3
    const auto pairs = _mm512_add_epi16(_mm512_maddubs_epi16(x0.raw, q0.raw), _mm512_maddubs_epi16(x1.raw, q1.raw));
    raw = _mm512_add_epi32(raw, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
#elif HWY_TARGET == HWY_AVX2
    const auto pairs = _mm256_add_epi16(_mm256_maddubs_epi16(x0.raw, q0.raw), _mm256_maddubs_epi16(x1.raw, q1.raw));
    raw = _mm256_add_epi32(raw, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#else
    const auto pairs = _mm_add_epi16(_mm_maddubs_epi16(x0.raw, q0.raw), _mm_maddubs_epi16(x1.raw, q1.raw));
    raw = _mm_add_epi32(raw, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
#endif
    asm("" : "+v"(raw));  // left to itself, GCC regroups the additions and spills
    sum.raw = raw;
#else
    const auto products = [](const IntVec& x, const IntVec& q) HWY_ATTR {
        const IntVec byte = hn::Set(IntTag(), 255);
        const auto a = hn::Mul(hn::And(x, byte), hn::ShiftRight<24>(hn::ShiftLeft<24>(q)));
        const auto b = hn::Mul(hn::And(hn::ShiftRight<8>(x), byte), hn::ShiftRight<24>(hn::ShiftLeft<16>(q)));
        const auto c = hn::Mul(hn::And(hn::ShiftRight<16>(x), byte), hn::ShiftRight<24>(hn::ShiftLeft<8>(q)));
        const auto d = hn::Mul(hn::And(hn::ShiftRight<24>(x), byte), hn::ShiftRight<24>(q));
        return hn::Add(hn::Add(a, b), hn::Add(c, d));
    };
    sum = hn::Add(sum, hn::Add(products(x0, q0), products(x1, q1)));
#endif
}

/// Words of a row.
HWY_INLINE constexpr std::size_t RowWords(std::size_t d) {
    constexpr std::size_t step = word_numbers * step_words;
    return (d + step - 1) / step * step_words;
}

/// Rows of a tile. Integer additions have no latency to hide, but products that take several instructions need
/// more registers.
template <std::size_t C>
constexpr std::size_t IntTileRows() {
    if (MARGINMERGE_DOT_WORDS) return TileRows<C>();
    return (C == 1 ? 6 : 6 - C) * (HWY_CAP_GE512 ? 2 : 1);
}

/// `count` codes made unsigned.
HWY_INLINE void ShiftCodes(const std::int8_t* HWY_RESTRICT from, std::size_t count, std::uint8_t* HWY_RESTRICT to) {
    const hn::ScalableTag<std::uint8_t> db;
    constexpr std::size_t step = HWY_LANES(std::uint8_t);
    const std::size_t whole = count / step * step;
    for (std::size_t i = 0; i < whole; i += step) {
        const auto codes = hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(from) + i);
        hn::StoreU(hn::Xor(codes, hn::Set(db, std::uint8_t{128})), db, to + i);
    }
    for (std::size_t i = whole; i < count; ++i) to[i] = static_cast<std::uint8_t>(from[i] + document_shift);
}

/// Shifts the block that comes next while this one is multiplied (rows of whole words only).
struct ShiftNext {
    const std::int8_t* from;
    std::uint8_t* to;
    std::size_t count;      ///< codes in the next block; 0: there is nothing to do
    std::size_t first = 0;  ///< where the rows of the current tile begin

    HWY_INLINE ShiftNext At(std::size_t row, std::size_t d) const { return {from, to, count, row * d}; }
    /// Sixteen words of R rows.
    template <std::size_t R>
    HWY_INLINE void Step(std::size_t word) const {
        constexpr std::size_t piece = R * 16 * word_numbers;
        const std::size_t at = first + word * word_numbers * R;
        if (at >= count) return;
        HWY_UNROLL(12)
        for (std::size_t line = 0; line < (piece + 63) / 64; ++line) hwy::Prefetch(from + at + 4096 + line * 64);
        if (at + piece > count) return Shift(at, count - at);
        const hn::ScalableTag<std::uint8_t> db;
        HWY_UNROLL(24)
        for (std::size_t i = 0; i < piece; i += HWY_LANES(std::uint8_t)) {
            const auto codes = hn::LoadU(db, reinterpret_cast<const std::uint8_t*>(from) + at + i);
            hn::StoreU(hn::Xor(codes, hn::Set(db, std::uint8_t{128})), db, to + at + i);
        }
    }
    template <std::size_t R>
    HWY_INLINE void Rest(std::size_t word, std::size_t words) const {
        const std::size_t at = first + word * word_numbers * R;
        if (at < count) Shift(at, std::min(count - at, (words - word) * word_numbers * R));
    }
    HWY_NOINLINE void Shift(std::size_t at, std::size_t codes) const { ShiftCodes(from + at, codes, to + at); }
};

/// Two words, w and w + 1, for the whole tile; one after the other where that saves registers and costs nothing.
template <std::size_t R, std::size_t C>
HWY_INLINE void IntTileStep(const TileRowsAt<R, std::int32_t>& rows, std::size_t w,
                            const std::int32_t* HWY_RESTRICT panel, IntVec (&sum)[R][C]) {
    const IntTag di;
#if MARGINMERGE_DOT_WORDS
    HWY_UNROLL(2)
    for (std::size_t i = 0; i < step_words; ++i) {
        IntVec q[C];
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) q[c] = hn::Load(di, panel + (i * C + c) * Lanes());
        HWY_UNROLL(24)
        for (std::size_t r = 0; r < R; ++r) {
            const IntVec x = hn::Set(di, rows[r][w + i]);
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < C; ++c) MulAddWord(sum[r][c], x, q[c]);
        }
    }
#else
    IntVec q0[C];
    IntVec q1[C];
    HWY_UNROLL(3)
    for (std::size_t c = 0; c < C; ++c) {
        q0[c] = hn::Load(di, panel + c * Lanes());
        q1[c] = hn::Load(di, panel + (C + c) * Lanes());
    }
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        const IntVec x0 = hn::Set(di, rows[r][w]);
        const IntVec x1 = hn::Set(di, rows[r][w + 1]);
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) MulAddWords(sum[r][c], x0, q0[c], x1, q1[c]);
    }
#endif
}

template <std::size_t R, std::size_t C>
HWY_INLINE void TwoWords(const std::int32_t* rows, std::size_t stride, const std::int32_t* panel, IntVec (&sum)[R][C]) {
    IntTileStep(TileRowsAt<R, std::int32_t>(rows, stride), 0, panel, sum);
}

template <std::size_t R, std::size_t C>
HWY_INLINE void FourWords(const std::int32_t* rows, std::size_t stride, const std::int32_t* panel,
                          IntVec (&sum)[R][C]) {
    const TileRowsAt<R, std::int32_t> at(rows, stride);
    IntTileStep(at, 0, panel, sum);
    IntTileStep(at, 2, panel + 2 * C * Lanes(), sum);
}

/// Sums begin with `start`: of every token of a panel, or of its last vector.
template <std::size_t R, std::size_t C>
HWY_INLINE void Begin(const std::int32_t* HWY_RESTRICT start, std::size_t, IntVec (&sum)[R][C]) {
    HWY_UNROLL(24)
    for (std::size_t r = 0; r < R; ++r) {
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < C; ++c) sum[r][c] = hn::Load(IntTag(), start + c * Lanes());
    }
}

template <std::size_t pairs>
HWY_INLINE void Begin(const std::int32_t* HWY_RESTRICT start, std::size_t width, IntVec (&half)[pairs]) {
    HWY_UNROLL(4)
    for (std::size_t i = 0; i < pairs; ++i) half[i] = hn::Load(IntTag(), start + width - Lanes());
}

/// sum[r][c] = start[c] + sum over words of rows[r][w] . panel[w][c] for R rows and a panel `width` lanes wide; the
/// sums are one array, or two for a half panel.
template <std::size_t R, std::size_t width, class Beside, class... Sums>
HWY_INLINE void IntTile(const std::int32_t* rows, std::size_t words, const std::int32_t* panel,
                        const std::int32_t* start, const Beside& beside, Sums&... sums) {
    (Begin(start, width, sums), ...);
    std::size_t w = 0;
    const std::size_t stride = words;
    for (; w + 16 <= words; w += 16) {
        beside.template Step<R>(w);
        for (std::size_t i = 0; i < 16; i += 4) {
            FourWords(rows, stride, panel, sums...);
            rows += 4;
            panel += 4 * width;
        }
    }
    if (w == words) return;
    beside.template Rest<R>(w, words);
    for (; w < words; w += step_words) {
        TwoWords(rows, stride, panel, sums...);
        rows += step_words;
        panel += step_words * width;
    }
}

/// As TilesOver, for words. ShiftNext is the only thing ever done beside, so that every tile is compiled once.
template <std::size_t C, class Epilogue>
HWY_INLINE void IntTilesOver(const std::int32_t* rows, std::size_t n, std::size_t words, const std::int32_t* panel,
                             const std::int32_t* start, const ShiftNext& beside, const Epilogue& epilogue) {
    constexpr std::size_t R = IntTileRows<C>();
    const std::size_t d = words * word_numbers;
    if (n < R) {
        for (std::size_t r = 0; r < n; ++r) {
            IntVec sum[1][C];
            IntTile<1, C * Lanes()>(rows + r * words, words, panel, start, Alone(), sum);
            epilogue(sum, r);
        }
        return;
    }
    for (std::size_t r = 0; r < n; r = NextTile<R>(r, n)) {
        IntVec sum[R][C];
        IntTile<R, C * Lanes()>(rows + r * words, words, panel, start, beside.At(r, d), sum);
        epilogue(sum, r);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();
#endif  // MARGINMERGE_KERNELS_INT_TILE_INL_H_
