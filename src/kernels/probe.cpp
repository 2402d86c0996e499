#include "kernels/probe.h"

#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/probe.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/int_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

double FmaBurst(std::size_t rounds) {
    const FloatTag df;
    constexpr std::size_t chains = 12;
    FloatVec sum[chains];
    HWY_UNROLL(12)
    for (std::size_t i = 0; i < chains; ++i) sum[i] = hn::Set(df, static_cast<float>(i));
    const FloatVec x = hn::Set(df, 0.5f);
    const FloatVec q = hn::Set(df, 0.25f);
    for (std::size_t r = 0; r < rounds; ++r) {
        HWY_UNROLL(12)
        for (std::size_t i = 0; i < chains; ++i) MulAddTo(sum[i], x, q);
    }
    FloatVec all = sum[0];
    for (std::size_t i = 1; i < chains; ++i) all = hn::Add(all, sum[i]);
    volatile float sink = hn::GetLane(all);
    (void)sink;
    return static_cast<double>(rounds * chains * Lanes()) * 2.0;
}

double Int8Burst(std::size_t rounds) {
    const IntTag di;
    constexpr std::size_t chains = 10;
    IntVec sum[chains];
    HWY_UNROLL(10)
    for (std::size_t i = 0; i < chains; ++i) sum[i] = hn::Set(di, static_cast<std::int32_t>(i));
    const IntVec x = hn::Set(di, 0x01020304);
    const IntVec q = hn::Set(di, 0x03010201);
    for (std::size_t r = 0; r < rounds; ++r) {
        HWY_UNROLL(10)
        for (std::size_t i = 0; i < chains; ++i) {
            IntVec x0 = x;
            IntVec x1 = x;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
            // New words each time, as far as the compiler can tell: else it multiplies once for all.
            asm volatile("" : "+v"(x0.raw), "+v"(x1.raw));
#endif
            MulAddWords(sum[i], x0, q, x1, q);
        }
    }
    IntVec all = sum[0];
    for (std::size_t i = 1; i < chains; ++i) all = hn::Add(all, sum[i]);
    volatile std::int32_t sink = hn::GetLane(all);
    (void)sink;
    return static_cast<double>(rounds * chains * Lanes() * word_numbers * step_words) * 2.0;
}

float ReadBurst(const float* memory, std::size_t count) {
    const FloatTag df;
    constexpr std::size_t step = 4 * Lanes();
    FloatVec a = hn::Zero(df);
    FloatVec b = a;
    FloatVec c = a;
    FloatVec e = a;
    for (std::size_t i = 0; i + step <= count; i += step) {
        hwy::Prefetch(memory + i + 1024);
        a = hn::Add(a, hn::LoadU(df, memory + i));
        b = hn::Add(b, hn::LoadU(df, memory + i + Lanes()));
        c = hn::Add(c, hn::LoadU(df, memory + i + 2 * Lanes()));
        e = hn::Add(e, hn::LoadU(df, memory + i + 3 * Lanes()));
    }
    return hn::GetLane(hn::SumOfLanes(df, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(FmaBurst);
HWY_EXPORT(Int8Burst);
HWY_EXPORT(ReadBurst);

double fma_burst(std::size_t rounds) { return MARGINMERGE_DISPATCH(FmaBurst)(rounds); }
double int8_burst(std::size_t rounds) { return MARGINMERGE_DISPATCH(Int8Burst)(rounds); }
float read_burst(std::span<const float> memory) {
    return MARGINMERGE_DISPATCH(ReadBurst)(memory.data(), memory.size());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
