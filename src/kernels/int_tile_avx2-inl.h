// Two words of the half panels of AVX2 (see HalfPanel), written out as in tile_avx2-inl.h: four rows against one or two
// whole vectors of tokens and a half one that meets two rows at a time. Products are limited by two multipliers that
// every pair of words needs three times; this keeps them busy 97% of the time.
#if defined(MARGINMERGE_KERNELS_INT_TILE_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_INT_TILE_AVX2_INL_H_
#undef MARGINMERGE_KERNELS_INT_TILE_AVX2_INL_H_
#else
#define MARGINMERGE_KERNELS_INT_TILE_AVX2_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

#ifndef MARGINMERGE_INT_TILE_AVX2_MACROS_
#define MARGINMERGE_INT_TILE_AVX2_MACROS_

#define MM_WORD(row, x) "vpbroadcastd " row ", %%ymm" #x "\n\t"
#define MM_TOKENS(at, q) "vmovdqa " #at "(%[panel]), %%ymm" #q "\n\t"
#define MM_AT(at) #at "(%[panel])"
/// x = lower half of x, upper half of y.
#define MM_WORDS(x, y) "vpblendd $0xf0, %%ymm" #y ", %%ymm" #x ", %%ymm" #x "\n\t"
// Formatting does not settle on these.
// clang-format off
/// sum += x . q + y . p, the products of both words in t and u on the way; these may be x and y.
#define MM_DOT(sum, x, y, q, p, t, u) \
    "vpmaddubsw " q ", %%ymm" #x ", %%ymm" #t "\n\t" \
    "vpmaddubsw " p ", %%ymm" #y ", %%ymm" #u "\n\t" \
    "vpaddw %%ymm" #u ", %%ymm" #t ", %%ymm" #t "\n\t" \
    "vpmaddwd %[ones], %%ymm" #t ", %%ymm" #t "\n\t" \
    "vpaddd %%ymm" #t ", %[" #sum "], %[" #sum "]\n\t"
// Two rows; a panel of 16 lanes is in registers, of one of 24 no more than the operands are.
#define MM_ROWS_1_HALF(row, next, a, b, h) \
    MM_WORD(row, 11) \
    MM_WORD("4" row, 12) \
    MM_DOT(a, 11, 12, "%%ymm7", "%%ymm8", 14, 15) \
    MM_WORD(next, 13) \
    MM_WORD("4" next, 14) \
    MM_WORDS(11, 13) \
    MM_WORDS(12, 14) \
    MM_DOT(h, 11, 12, "%%ymm9", "%%ymm10", 11, 12) \
    MM_DOT(b, 13, 14, "%%ymm7", "%%ymm8", 11, 12)
#define MM_ROWS_2_HALF(row, next, a, b, c, d, h) \
    MM_WORD(row, 11) \
    MM_WORD("4" row, 12) \
    MM_DOT(a, 11, 12, MM_AT(0), MM_AT(96), 14, 15) \
    MM_DOT(b, 11, 12, MM_AT(32), MM_AT(128), 14, 15) \
    MM_WORD(next, 13) \
    MM_WORD("4" next, 14) \
    MM_WORDS(11, 13) \
    MM_WORDS(12, 14) \
    MM_DOT(h, 11, 12, MM_AT(64), MM_AT(160), 11, 12) \
    MM_DOT(c, 13, 14, MM_AT(0), MM_AT(96), 11, 12) \
    MM_DOT(d, 13, 14, MM_AT(32), MM_AT(128), 11, 12)
// clang-format on

#define MM_SUM32(name, vector) [name] "+x"(vector.raw)

#endif  // MARGINMERGE_INT_TILE_AVX2_MACROS_

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

using IntSum8 = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<std::int32_t>>;

// Arguments as in TwoWords of int_tile-inl.h; half[i] belongs to rows 2i and 2i + 1. [s] is the stride in
// bytes and [t] three of them.

HWY_INLINE void TwoWords(const std::int32_t* rows, std::size_t stride, const std::int32_t* panel, IntSum8 (&sum)[4][1],
                         IntSum8 (&half)[2]) {
    asm(MM_TOKENS(0, 7) MM_TOKENS(64, 8) MM_TOKENS(32, 9) MM_TOKENS(96, 10) MM_ROWS_1_HALF(
            "(%[r])", "(%[r],%[s])", a0, a1, h0) MM_ROWS_1_HALF("(%[r],%[s],2)", "(%[r],%[t])", a2, a3, h1)
        : MM_SUM32(a0, sum[0][0]), MM_SUM32(a1, sum[1][0]), MM_SUM32(a2, sum[2][0]), MM_SUM32(a3, sum[3][0]),
          MM_SUM32(h0, half[0]), MM_SUM32(h1, half[1])
        : [r] "r"(rows), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride), [ones] "x"(_mm256_set1_epi16(1))
        : "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

HWY_INLINE void TwoWords(const std::int32_t* rows, std::size_t stride, const std::int32_t* panel, IntSum8 (&sum)[4][2],
                         IntSum8 (&half)[2]) {
    asm(MM_ROWS_2_HALF("(%[r])", "(%[r],%[s])", a0, a1, a2, a3, h0)
            MM_ROWS_2_HALF("(%[r],%[s],2)", "(%[r],%[t])", a4, a5, a6, a7, h1)
        : MM_SUM32(a0, sum[0][0]), MM_SUM32(a1, sum[0][1]), MM_SUM32(a2, sum[1][0]), MM_SUM32(a3, sum[1][1]),
          MM_SUM32(a4, sum[2][0]), MM_SUM32(a5, sum[2][1]), MM_SUM32(a6, sum[3][0]), MM_SUM32(a7, sum[3][1]),
          MM_SUM32(h0, half[0]), MM_SUM32(h1, half[1])
        : [r] "r"(rows), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride), [ones] "x"(_mm256_set1_epi16(1))
        : "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

template <std::size_t C>
HWY_INLINE void FourWords(const std::int32_t* rows, std::size_t stride, const std::int32_t* panel, IntSum8 (&sum)[4][C],
                          IntSum8 (&half)[2]) {
    constexpr std::size_t lanes = 8;
    TwoWords(rows, stride, panel, sum, half);
    TwoWords(rows + 2, stride, panel + 2 * (C + 1) * lanes, sum, half);
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#endif  // HWY_AVX2
#endif  // MARGINMERGE_KERNELS_INT_TILE_AVX2_INL_H_
