// Four numbers of the dimension for the tiles of AVX2, written out: they need all sixteen registers, and GCC's
// own choice spills (4 x 3 then reaches 92% of the FMA peak, written out all of it). Rows are addressed from every
// fourth one; two temporaries take the broadcasts in turn where there is room.
#if defined(MARGINMERGE_KERNELS_TILE_AVX2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MARGINMERGE_KERNELS_TILE_AVX2_INL_H_
#undef MARGINMERGE_KERNELS_TILE_AVX2_INL_H_
#else
#define MARGINMERGE_KERNELS_TILE_AVX2_INL_H_
#endif

#include <cstddef>

#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX2 && HWY_ARCH_X86

#ifndef MARGINMERGE_TILE_AVX2_MACROS_
#define MARGINMERGE_TILE_AVX2_MACROS_

#define MM_LOAD(at, q) "vmovaps " #at "(%[panel]), %%ymm" #q "\n\t"
#define MM_SET(row, x) "vbroadcastss " row ", %%ymm" #x "\n\t"
#define MM_FMA(sum, x, q) "vfmadd231ps %%ymm" #q ", %%ymm" #x ", %[" #sum "]\n\t"
/// x = lower half of x, upper half of y.
#define MM_PAIR(x, y) "vblendps $0xf0, %%ymm" #y ", %%ymm" #x ", %%ymm" #x "\n\t"

#define MM_ROW1(k, row, x, a) MM_SET(#k row, x) MM_FMA(a, x, 15)
#define MM_ROW2(k, row, a, b) MM_SET(#k row, 13) MM_FMA(a, 13, 14) MM_FMA(b, 13, 15)
#define MM_ROW3(k, row, a, b, c) MM_SET(#k row, 12) MM_FMA(a, 12, 13) MM_FMA(b, 12, 14) MM_FMA(c, 12, 15)
// Formatting does not settle on these.
// clang-format off
#define MM_PAIR1(k, row, next, a, b, h) \
    MM_SET(#k row, 12) \
    MM_SET(#k next, 13) \
    MM_FMA(a, 12, 14) \
    MM_FMA(b, 13, 14) \
    MM_PAIR(12, 13) \
    MM_FMA(h, 12, 15)
#define MM_PAIR2(k, row, next, a, b, c, d, h) \
    MM_SET(#k row, 11) \
    MM_SET(#k next, 12) \
    MM_FMA(a, 11, 13) \
    MM_FMA(b, 11, 14) \
    MM_FMA(c, 12, 13) \
    MM_FMA(d, 12, 14) \
    MM_PAIR(11, 12) \
    MM_FMA(h, 11, 15)
// One number: k bytes into the rows, p bytes into the panel.
#define MM_STEP_12X1(k, p) \
    MM_LOAD(p, 15) \
    MM_ROW1(k, "(%[r0])", 12, a0) \
    MM_ROW1(k, "(%[r0],%[s])", 13, a1) \
    MM_ROW1(k, "(%[r0],%[s],2)", 14, a2) \
    MM_ROW1(k, "(%[r0],%[t])", 12, a3) \
    MM_ROW1(k, "(%[r4])", 13, a4) \
    MM_ROW1(k, "(%[r4],%[s])", 14, a5) \
    MM_ROW1(k, "(%[r4],%[s],2)", 12, a6) \
    MM_ROW1(k, "(%[r4],%[t])", 13, a7) \
    MM_ROW1(k, "(%[r8])", 14, a8) \
    MM_ROW1(k, "(%[r8],%[s])", 12, a9) \
    MM_ROW1(k, "(%[r8],%[s],2)", 13, a10) \
    MM_ROW1(k, "(%[r8],%[t])", 14, a11)
#define MM_STEP_6X2(k, p) \
    MM_LOAD(p, 14) \
    MM_LOAD(p + 32, 15) \
    MM_ROW2(k, "(%[r0])", a0, a1) \
    MM_ROW2(k, "(%[r0],%[s])", a2, a3) \
    MM_ROW2(k, "(%[r0],%[s],2)", a4, a5) \
    MM_ROW2(k, "(%[r0],%[t])", a6, a7) \
    MM_ROW2(k, "(%[r4])", a8, a9) \
    MM_ROW2(k, "(%[r4],%[s])", a10, a11)
#define MM_STEP_4X3(k, p) \
    MM_LOAD(p, 13) \
    MM_LOAD(p + 32, 14) \
    MM_LOAD(p + 64, 15) \
    MM_ROW3(k, "(%[r0])", a0, a1, a2) \
    MM_ROW3(k, "(%[r0],%[s])", a3, a4, a5) \
    MM_ROW3(k, "(%[r0],%[s],2)", a6, a7, a8) \
    MM_ROW3(k, "(%[r0],%[t])", a9, a10, a11)
#define MM_STEP_6X1_HALF(k, p) \
    MM_LOAD(p, 14) \
    MM_LOAD(p + 32, 15) \
    MM_PAIR1(k, "(%[r0])", "(%[r0],%[s])", a0, a1, h0) \
    MM_PAIR1(k, "(%[r0],%[s],2)", "(%[r0],%[t])", a2, a3, h1) \
    MM_PAIR1(k, "(%[r4])", "(%[r4],%[s])", a4, a5, h2)
#define MM_STEP_4X2_HALF(k, p) \
    MM_LOAD(p, 13) \
    MM_LOAD(p + 32, 14) \
    MM_LOAD(p + 64, 15) \
    MM_PAIR2(k, "(%[r0])", "(%[r0],%[s])", a0, a1, a2, a3, h0) \
    MM_PAIR2(k, "(%[r0],%[s],2)", "(%[r0],%[t])", a4, a5, a6, a7, h1)
// clang-format on

#define MM_SUM(name, vector) [name] "+x"(vector.raw)

#endif  // MARGINMERGE_TILE_AVX2_MACROS_

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

using Sum8 = hwy::HWY_NAMESPACE::Vec<hwy::HWY_NAMESPACE::ScalableTag<float>>;

// Arguments as in TileStep. [s] is the stride in bytes and [t] three of them. Memory is named as clobbered because it
// is read through pointers.

HWY_INLINE void FourSteps(const float* rows, std::size_t stride, const float* panel, Sum8 (&a)[12][1]) {
    asm(MM_STEP_12X1(0, 0) MM_STEP_12X1(4, 32) MM_STEP_12X1(8, 64) MM_STEP_12X1(12, 96)
        : MM_SUM(a0, a[0][0]), MM_SUM(a1, a[1][0]), MM_SUM(a2, a[2][0]), MM_SUM(a3, a[3][0]), MM_SUM(a4, a[4][0]),
          MM_SUM(a5, a[5][0]), MM_SUM(a6, a[6][0]), MM_SUM(a7, a[7][0]), MM_SUM(a8, a[8][0]), MM_SUM(a9, a[9][0]),
          MM_SUM(a10, a[10][0]), MM_SUM(a11, a[11][0])
        : [r0] "r"(rows), [r4] "r"(rows + 4 * stride), [r8] "r"(rows + 8 * stride), [panel] "r"(panel),
          [s] "r"(4 * stride), [t] "r"(12 * stride)
        : "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

HWY_INLINE void FourSteps(const float* rows, std::size_t stride, const float* panel, Sum8 (&a)[6][2]) {
    asm(MM_STEP_6X2(0, 0) MM_STEP_6X2(4, 64) MM_STEP_6X2(8, 128) MM_STEP_6X2(12, 192)
        : MM_SUM(a0, a[0][0]), MM_SUM(a1, a[0][1]), MM_SUM(a2, a[1][0]), MM_SUM(a3, a[1][1]), MM_SUM(a4, a[2][0]),
          MM_SUM(a5, a[2][1]), MM_SUM(a6, a[3][0]), MM_SUM(a7, a[3][1]), MM_SUM(a8, a[4][0]), MM_SUM(a9, a[4][1]),
          MM_SUM(a10, a[5][0]), MM_SUM(a11, a[5][1])
        : [r0] "r"(rows), [r4] "r"(rows + 4 * stride), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride)
        : "xmm13", "xmm14", "xmm15", "memory");
}

HWY_INLINE void FourSteps(const float* rows, std::size_t stride, const float* panel, Sum8 (&a)[4][3]) {
    asm(MM_STEP_4X3(0, 0) MM_STEP_4X3(4, 96) MM_STEP_4X3(8, 192) MM_STEP_4X3(12, 288)
        : MM_SUM(a0, a[0][0]), MM_SUM(a1, a[0][1]), MM_SUM(a2, a[0][2]), MM_SUM(a3, a[1][0]), MM_SUM(a4, a[1][1]),
          MM_SUM(a5, a[1][2]), MM_SUM(a6, a[2][0]), MM_SUM(a7, a[2][1]), MM_SUM(a8, a[2][2]), MM_SUM(a9, a[3][0]),
          MM_SUM(a10, a[3][1]), MM_SUM(a11, a[3][2])
        : [r0] "r"(rows), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride)
        : "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

HWY_INLINE void FourSteps(const float* rows, std::size_t stride, const float* panel, Sum8 (&a)[6][1], Sum8 (&half)[3]) {
    asm(MM_STEP_6X1_HALF(0, 0) MM_STEP_6X1_HALF(4, 64) MM_STEP_6X1_HALF(8, 128) MM_STEP_6X1_HALF(12, 192)
        : MM_SUM(a0, a[0][0]), MM_SUM(a1, a[1][0]), MM_SUM(a2, a[2][0]), MM_SUM(a3, a[3][0]), MM_SUM(a4, a[4][0]),
          MM_SUM(a5, a[5][0]), MM_SUM(h0, half[0]), MM_SUM(h1, half[1]), MM_SUM(h2, half[2])
        : [r0] "r"(rows), [r4] "r"(rows + 4 * stride), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride)
        : "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

HWY_INLINE void FourSteps(const float* rows, std::size_t stride, const float* panel, Sum8 (&a)[4][2], Sum8 (&half)[2]) {
    asm(MM_STEP_4X2_HALF(0, 0) MM_STEP_4X2_HALF(4, 96) MM_STEP_4X2_HALF(8, 192) MM_STEP_4X2_HALF(12, 288)
        : MM_SUM(a0, a[0][0]), MM_SUM(a1, a[0][1]), MM_SUM(a2, a[1][0]), MM_SUM(a3, a[1][1]), MM_SUM(a4, a[2][0]),
          MM_SUM(a5, a[2][1]), MM_SUM(a6, a[3][0]), MM_SUM(a7, a[3][1]), MM_SUM(h0, half[0]), MM_SUM(h1, half[1])
        : [r0] "r"(rows), [panel] "r"(panel), [s] "r"(4 * stride), [t] "r"(12 * stride)
        : "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory");
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#endif  // HWY_AVX2
#endif  // MARGINMERGE_KERNELS_TILE_AVX2_INL_H_
