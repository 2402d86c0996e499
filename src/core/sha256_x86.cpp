#include "core/sha256_blocks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#else
#include "core/fail.h"
#endif

namespace marginmerge {

#if defined(__x86_64__)

bool has_sha_instructions() {
    static const bool has = [] {
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
        constexpr unsigned sha = 1U << 29;
        return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
    }();
    return has;
}

// The instructions keep the state as (a,b,e,f) and (c,d,g,h), do two rounds at a time and make four words of the
// message schedule at a time from the sixteen before.
__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_x86(Sha256State& state, const std::uint8_t* bytes,
                                                                   std::size_t count, const std::uint32_t* constants) {
    const auto load = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
    const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
    const __m128i cdab = _mm_shuffle_epi32(load(state.data()), 0xB1);
    const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; count > 0; --count, bytes += 64) {
        const __m128i abef_before = abef, cdgh_before = cdgh;
        __m128i w[4];
        for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(bytes + 16 * i), big_endian);
#pragma GCC unroll 16
        for (int i = 0; i < 16; ++i) {
            __m128i& now = w[i % 4];
            if (i >= 4) {
                const __m128i shifted = _mm_alignr_epi8(w[(i + 3) % 4], w[(i + 2) % 4], 4);
                now = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(now, w[(i + 1) % 4]), shifted),
                                           w[(i + 3) % 4]);
            }
            const __m128i sum = _mm_add_epi32(now, load(constants + 4 * i));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool has_sha_instructions() { return false; }

void sha256_blocks_x86(Sha256State&, const std::uint8_t*, std::size_t, const std::uint32_t*) {
    fail(ErrorCode::internal, "SHA instructions: expected on x86-64 only");
}

#endif

}  // namespace marginmerge
