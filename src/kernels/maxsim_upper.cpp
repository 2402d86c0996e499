#include "kernels/maxsim_upper.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/fail.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/maxsim_upper.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/convert-inl.h"
#include "kernels/scan-inl.h"

#ifndef MARGINMERGE_KERNELS_MAXSIM_UPPER_ONCE
#define MARGINMERGE_KERNELS_MAXSIM_UPPER_ONCE
namespace marginmerge {
namespace {

constexpr std::size_t segment_numbers = 128;  // numbers whose products are summed in 16 bits
constexpr std::size_t segment_words = segment_numbers / 4;
constexpr float segment_norm = 175.0f;  // of 128 codes before rounding, which adds sqrt(128)/2 at most
constexpr float largest_code = 127.0f;
constexpr int page_shift = 128;           // page codes are stored unsigned
constexpr double smallest_error = 1e-17;  // what squares lose by underflow
constexpr float largest_square = 1e37f;   // beyond, numbers count as not finite
constexpr float smallest_scale = 1e-30f;  // below, a row counts as zero

constexpr std::size_t words_for(std::size_t d) { return (d + 3) / 4; }
constexpr std::size_t segments_for(std::size_t d) { return (d + segment_numbers - 1) / segment_numbers; }

/// How much larger than computed a norm over d numbers may be.
double inflation(std::size_t d) { return 1 + static_cast<double>(d + 8) * 0x1p-23; }

}  // namespace
}  // namespace marginmerge
#endif

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

constexpr std::size_t upper_vectors = 3;  // of tokens, side by side

// How products of bytes are summed: in the two 16-bit halves of a lane, or by an instruction of its own (VNNI) in 32
// bits. Some processors have that instruction but not all else that makes the level AVX3_DL.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3 && HWY_TARGET > HWY_AVX3_DL
constexpr ByteSums usual_sums = ByteSums::halves;
#else
constexpr ByteSums usual_sums = ByteSums::whole;
#endif

ByteSums BestSums() {
#if HWY_TARGET == HWY_AVX3
    return __builtin_cpu_supports("avx512vnni") ? ByteSums::whole : ByteSums::halves;
#else
    return usual_sums;
#endif
}

// As many sums as the registers hold beside the tokens, a word and, where a product is not added by its own
// instruction, the product.
template <ByteSums sums>
constexpr std::size_t upper_rows = !HWY_CAP_GE512             ? 3
                                   : sums == ByteSums::halves ? 6
                                                              : 8;

/// sum += x . q for the four products of every lane, x unsigned.
template <ByteSums sums>
HWY_INLINE void MulAddBytes(IntVec& sum, const IntVec& x, const IntVec& q) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
    auto raw = sum.raw;
#if HWY_TARGET <= HWY_AVX3
    if constexpr (sums == ByteSums::whole) {
        asm("vpdpbusd %2, %1, %0" : "+v"(raw) : "v"(x.raw), "v"(q.raw));
    } else {
        raw = _mm512_add_epi16(raw, _mm512_maddubs_epi16(x.raw, q.raw));
        asm("" : "+v"(raw));  // left to itself, GCC regroups the additions and spills
    }
#elif HWY_TARGET == HWY_AVX2
    raw = _mm256_add_epi16(raw, _mm256_maddubs_epi16(x.raw, q.raw));
    asm("" : "+v"(raw));
#else
    raw = _mm_add_epi16(raw, _mm_maddubs_epi16(x.raw, q.raw));
    asm("" : "+v"(raw));
#endif
    sum.raw = raw;
#else
    const IntVec byte = hn::Set(IntTag(), 255);
    const auto a = hn::Mul(hn::And(x, byte), hn::ShiftRight<24>(hn::ShiftLeft<24>(q)));
    const auto b = hn::Mul(hn::And(hn::ShiftRight<8>(x), byte), hn::ShiftRight<24>(hn::ShiftLeft<16>(q)));
    const auto c = hn::Mul(hn::And(hn::ShiftRight<16>(x), byte), hn::ShiftRight<24>(hn::ShiftLeft<8>(q)));
    const auto d = hn::Mul(hn::And(hn::ShiftRight<24>(x), byte), hn::ShiftRight<24>(q));
    sum = hn::Add(sum, hn::Add(hn::Add(a, b), hn::Add(c, d)));
#endif
}

/// The sums of a segment in 32 bits.
template <ByteSums sums>
HWY_INLINE IntVec WholeSums(const IntVec& sum) {
    if constexpr (sums == ByteSums::whole) return sum;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
    return IntVec{_mm512_madd_epi16(sum.raw, _mm512_set1_epi16(1))};
#elif HWY_TARGET == HWY_AVX2
    return IntVec{_mm256_madd_epi16(sum.raw, _mm256_set1_epi16(1))};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
    return IntVec{_mm_madd_epi16(sum.raw, _mm_set1_epi16(1))};
#else
    return sum;
#endif
}

/// Word w of R rows against one of the panel's tokens.
template <ByteSums sums, std::size_t R>
HWY_INLINE void UpperStep(const TileRowsAt<R, std::int32_t>& rows, std::size_t w,
                          const std::int32_t* HWY_RESTRICT panel, IntVec (&sum)[R][upper_vectors]) {
    const IntTag di;
    IntVec q[upper_vectors];
    HWY_UNROLL(3)
    for (std::size_t c = 0; c < upper_vectors; ++c) q[c] = hn::Load(di, panel + c * Lanes());
    HWY_UNROLL(8)
    for (std::size_t r = 0; r < R; ++r) {
        const IntVec x = hn::Set(di, rows[r][w]);
        HWY_UNROLL(3)
        for (std::size_t c = 0; c < upper_vectors; ++c) MulAddBytes<sums>(sum[r][c], x, q[c]);
    }
}

/// Raises best[lane] of a panel by u'.v' of R rows.
template <ByteSums sums, std::size_t R>
HWY_INLINE void UpperTile(const std::int32_t* HWY_RESTRICT rows, std::size_t words,
                          const std::int32_t* HWY_RESTRICT panel, const std::int32_t* HWY_RESTRICT start,
                          std::int32_t* HWY_RESTRICT best) {
    const IntTag di;
    constexpr std::size_t width = upper_vectors * Lanes();
    IntVec total[R][upper_vectors];
    for (std::size_t first = 0; first < words; first += segment_words, start += width) {
        IntVec sum[R][upper_vectors];
        HWY_UNROLL(8)
        for (std::size_t r = 0; r < R; ++r) {
            HWY_UNROLL(3)
            for (std::size_t c = 0; c < upper_vectors; ++c) sum[r][c] = hn::Load(di, start + c * Lanes());
        }
        const std::size_t count = std::min(segment_words, words - first);
        std::size_t w = 0;
        for (; w + 4 <= count; w += 4) {
            const TileRowsAt<R, std::int32_t> at(rows, words);
            UpperStep<sums, R>(at, 0, panel, sum);
            UpperStep<sums, R>(at, 1, panel + width, sum);
            UpperStep<sums, R>(at, 2, panel + 2 * width, sum);
            UpperStep<sums, R>(at, 3, panel + 3 * width, sum);
            rows += 4;
            panel += 4 * width;
        }
        for (; w < count; ++w, ++rows, panel += width)
            UpperStep<sums, R>(TileRowsAt<R, std::int32_t>(rows, words), 0, panel, sum);
        for (std::size_t r = 0; r < R; ++r) {
            for (std::size_t c = 0; c < upper_vectors; ++c) {
                const IntVec whole = WholeSums<sums>(sum[r][c]);
                total[r][c] = first == 0 ? whole : hn::Add(total[r][c], whole);
            }
        }
    }
    HWY_UNROLL(3)
    for (std::size_t c = 0; c < upper_vectors; ++c) {
        IntVec top = hn::Load(di, best + c * Lanes());
        HWY_UNROLL(8)
        for (std::size_t r = 0; r < R; ++r) top = hn::Max(top, total[r][c]);
        hn::Store(top, di, best + c * Lanes());
    }
}

/// The largest sum of squares of a segment of a row; the row's own goes to `square`, its largest number to `largest`.
HWY_INLINE float MeasureRow(const float* HWY_RESTRICT row, std::size_t d, float& square, float& largest) {
    const FloatTag df;
    FloatVec high = hn::Zero(df);
    float most = 0;
    square = 0;
    float rest = 0;
    for (std::size_t first = 0; first < d; first += segment_numbers) {
        const std::size_t end = std::min(first + segment_numbers, d);
        FloatVec sum = hn::Zero(df);
        std::size_t j = first;
        for (; j + Lanes() <= end; j += Lanes()) {
            const FloatVec x = hn::LoadU(df, row + j);
            sum = hn::MulAdd(x, x, sum);
            high = hn::Max(high, hn::Abs(x));
        }
        float part = hn::GetLane(hn::SumOfLanes(df, sum));
        for (; j < end; ++j) {
            part += row[j] * row[j];
            rest = std::max(rest, std::abs(row[j]));
        }
        square += part;
        most = std::max(most, part);
    }
    largest = std::max(rest, hn::GetLane(hn::MaxOfLanes(df, high)));
    return most;
}

/// Codes of a row, shifted to be unsigned; returns the square of the rounding error.
HWY_INLINE float CodeRow(const float* HWY_RESTRICT row, std::size_t d, float scale, float inverse,
                         std::uint8_t* HWY_RESTRICT codes) {
    const FloatTag df;
    const hn::Rebind<std::uint8_t, FloatTag> db;
    const FloatVec s = hn::Set(df, scale);
    const FloatVec factor = hn::Set(df, inverse);
    FloatVec square = hn::Zero(df);
    std::size_t j = 0;
    for (; j + Lanes() <= d; j += Lanes()) {
        const FloatVec x = hn::LoadU(df, row + j);
        const auto code = hn::NearestInt(hn::Mul(x, factor));
        const FloatVec error = hn::NegMulAdd(s, hn::ConvertTo(df, code), x);
        square = hn::MulAdd(error, error, square);
        hn::StoreU(hn::DemoteTo(db, hn::Add(code, hn::Set(IntTag(), page_shift))), db, codes + j);
    }
    float sum = hn::GetLane(hn::SumOfLanes(df, square));
    for (; j < d; ++j) {
        const float code = std::nearbyint(row[j] * inverse);
        const float error = row[j] - scale * code;
        sum += error * error;
        codes[j] = static_cast<std::uint8_t>(static_cast<int>(code) + page_shift);
    }
    return sum;
}

void CodePage(VectorsView page, UpperPage& out) {
    const std::size_t d = page.dim, stride = words_for(d) * 4;
    const float* rows = static_cast<const float*>(page.data);
    if (page.type != ScalarType::f32) {
        float* converted = scratch_floats<1>(page.rows * d);
        if (page.type == ScalarType::f16) ToFloats<ScalarType::f16>(page.data, page.rows * d, converted);
        if (page.type == ScalarType::bf16) ToFloats<ScalarType::bf16>(page.data, page.rows * d, converted);
        rows = converted;
    }
    out.codes = reinterpret_cast<std::uint8_t*>(scratch_floats<2>(page.rows * words_for(d)));
    float most = 0, top = 0, number = 0;
    for (std::size_t i = 0; i < page.rows; ++i) {
        float square, largest;
        const float part = MeasureRow(rows + i * d, d, square, largest);
        out.finite = out.finite && square < largest_square;  // false for not-a-number as well
        most = std::max(most, part);
        top = std::max(top, square);
        number = std::max(number, largest);
    }
    if (!out.finite) return;
    out.norm = std::sqrt(static_cast<double>(top)) * inflation(d) + smallest_error;
    out.scale = std::max(std::sqrt(most) / segment_norm, number / largest_code);
    if (out.scale < smallest_scale) {
        out.scale = 0;
        out.error = out.norm + smallest_error;
        std::memset(out.codes, page_shift, page.rows * stride);
        return;
    }
    const float inverse = 1.0f / out.scale;
    float worst = 0;
    for (std::size_t i = 0; i < page.rows; ++i) {
        std::uint8_t* codes = out.codes + i * stride;
        worst = std::max(worst, CodeRow(rows + i * d, d, out.scale, inverse, codes));
        for (std::size_t j = d; j < stride; ++j) codes[j] = page_shift;
    }
    out.error = std::sqrt(static_cast<double>(worst)) * inflation(d) + smallest_error;
}

/// codes [tokens][d], in order; see UpperTokens::Packed.
void PackUpper(const std::int8_t* codes, std::size_t tokens, std::size_t d, ByteSums sums,
               UpperTokens::Packed& packed) {
    constexpr std::size_t width = upper_vectors * Lanes();
    const std::size_t words = words_for(d), segments = segments_for(d);
    packed.padded = (tokens + width - 1) / width * width;
    packed.width = width;
    packed.layout = HWY_TARGET;
    packed.sums = sums == ByteSums::best ? BestSums() : usual_sums;
    packed.lanes = AlignedArray<std::int32_t>(packed.padded * words);
    packed.start = AlignedArray<std::int32_t>(packed.padded * segments);
    for (std::size_t t = 0; t < tokens; ++t) {
        const std::size_t panel = t / width, lane = t % width;
        for (std::size_t s = 0; s < segments; ++s) {
            std::int32_t half[2] = {0, 0};
            for (std::size_t w = s * segment_words; w < std::min(words, (s + 1) * segment_words); ++w) {
                std::int8_t numbers[4] = {};
                for (std::size_t i = 0; i < 4 && w * 4 + i < d; ++i) {
                    numbers[i] = codes[t * d + w * 4 + i];
                    half[i / 2] -= page_shift * numbers[i];
                }
                std::memcpy(packed.lanes.data() + (panel * words + w) * width + lane, numbers, sizeof(numbers));
            }
            std::int32_t& start = packed.start[(panel * segments + s) * width + lane];
            if (packed.sums == ByteSums::halves)
                start = static_cast<std::int32_t>((static_cast<std::uint32_t>(half[0]) & 0xFFFFU) |
                                                  static_cast<std::uint32_t>(half[1]) << 16);
            else
                start = half[0] + half[1];
        }
    }
}

/// best[token] = max over the page's rows of u'.v' in units of the scales, for the first `padded` tokens, whole panels.
template <ByteSums sums>
void ScanUpperAs(const UpperTokens::Packed& packed, std::size_t padded, const UpperPage& page,
                 std::int32_t* HWY_RESTRICT best) {
    constexpr std::size_t R = upper_rows<sums>;
    constexpr std::size_t width = upper_vectors * Lanes();
    const std::size_t rows = page.rows, words = words_for(page.dim), segments = segments_for(page.dim);
    std::fill_n(best, padded, std::numeric_limits<std::int32_t>::min());
    // Rows of a block stay in the first-level cache beside a panel.
    const std::size_t block = R * std::max<std::size_t>(1, 24576 / (R * words * 4));
    const auto* numbers = reinterpret_cast<const std::int32_t*>(page.codes);
    for (std::size_t first = 0; first < rows; first += block) {
        const std::size_t n = std::min(block, rows - first);
        for (std::size_t p = 0; p * width < padded; ++p) {
            const std::int32_t* panel = packed.lanes.data() + p * words * width;
            const std::int32_t* start = packed.start.data() + p * segments * width;
            const std::int32_t* row = numbers + first * words;
            if (n < R) {
                for (std::size_t r = 0; r < n; ++r)
                    UpperTile<sums, 1>(row + r * words, words, panel, start, best + p * width);
                continue;
            }
            // The last tile may overlap the one before: a maximum does not mind.
            for (std::size_t r = 0; r < n; r += R)
                UpperTile<sums, R>(row + std::min(r, n - R) * words, words, panel, start, best + p * width);
        }
    }
}

void ScanUpper(const UpperTokens::Packed& packed, std::size_t padded, const UpperPage& page,
               std::int32_t* HWY_RESTRICT best) {
    if (packed.layout != HWY_TARGET) fail(ErrorCode::internal, "queries prepared for another kernel level");
#if HWY_TARGET == HWY_AVX3
    if (packed.sums == ByteSums::whole) return ScanUpperAs<ByteSums::whole>(packed, padded, page, best);
#endif
    ScanUpperAs<usual_sums>(packed, padded, page, best);
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(CodePage);
HWY_EXPORT(PackUpper);
HWY_EXPORT(ScanUpper);

UpperTokens::UpperTokens(ConstMatrix tokens, ByteSums sums) {
    const std::size_t d = tokens.cols;
    std::vector<std::int8_t> codes(tokens.rows * d);
    for (std::size_t t = 0; t < tokens.rows; ++t) {
        const float* u = tokens.row(t);
        std::int8_t* code = codes.data() + t * d;
        double square = 0, most = 0, part = 0;
        float pair = 0;  // two products are added before they reach 16 bits, with saturation
        for (std::size_t j = 0; j < d; ++j) {
            if (j % segment_numbers == 0) part = 0;
            square += static_cast<double>(u[j]) * u[j];
            part += static_cast<double>(u[j]) * u[j];
            most = std::max(most, part);
            if (j % 2 == 0) pair = std::max(pair, std::abs(u[j]) + (j + 1 < d ? std::abs(u[j + 1]) : 0.0f));
        }
        double error = square;
        float scale = std::max(static_cast<float>(std::sqrt(most)) / segment_norm, pair / largest_code);
        if (square < static_cast<double>(largest_square) && scale >= smallest_scale) {
            error = 0;
            for (std::size_t j = 0; j < d; ++j) {
                code[j] = static_cast<std::int8_t>(std::nearbyint(u[j] / scale));
                const double rest = u[j] - static_cast<double>(scale) * code[j];
                error += rest * rest;
            }
        } else {
            scale = 0;
            if (!(square < static_cast<double>(largest_square)))
                square = error = std::numeric_limits<double>::infinity();
        }
        tokens_.push_back({scale, std::sqrt(square) * inflation(d) + smallest_error,
                           std::sqrt(error) * inflation(d) + smallest_error});
    }
    MARGINMERGE_DISPATCH(PackUpper)(codes.data(), tokens.rows, d, sums, packed_);
}

UpperPage::UpperPage(VectorsView page) : rows(page.rows), dim(page.dim) {
    if (rows > 0) MARGINMERGE_DISPATCH(CodePage)(page, *this);
}

namespace {

/// The lanes of these tokens side by side, in space that a thread keeps from call to call.
const UpperTokens::Packed& gather(const UpperTokens::Packed& from, std::span<const TokenRange> ranges,
                                  std::size_t count, std::size_t d) {
    thread_local UpperTokens::Packed to;
    const std::size_t width = from.width, words = words_for(d), segments = segments_for(d);
    to.width = width;
    to.layout = from.layout;
    to.sums = from.sums;
    to.padded = (count + width - 1) / width * width;
    if (to.lanes.size() < to.padded * words) to.lanes = AlignedArray<std::int32_t>(2 * to.padded * words);
    if (to.start.size() < to.padded * segments) to.start = AlignedArray<std::int32_t>(2 * to.padded * segments);
    // Runs are short: eight lanes at a time, also beyond the run, where tokens that follow write again.
    constexpr std::size_t block = 8;
    const auto copy = [width](const AlignedArray<std::int32_t>& a, std::size_t t, AlignedArray<std::int32_t>& b,
                              std::size_t k, std::size_t run, std::size_t rows) {
        const std::int32_t* p = a.data() + t / width * rows * width + t % width;
        std::int32_t* q = b.data() + k / width * rows * width + k % width;
        const bool space = k % width + (run + block - 1) / block * block <= width;
        for (std::size_t r = 0; r < rows; ++r, p += width, q += width) {
            if (space) {
                for (std::size_t i = 0; i < run; i += block) std::memcpy(q + i, p + i, block * sizeof(*p));
            } else {
                for (std::size_t i = 0; i < run; ++i) q[i] = p[i];
            }
        }
    };
    std::size_t k = 0;
    for (const TokenRange& range : ranges) {
        for (std::size_t t = range.begin; t < range.end;) {
            const std::size_t run = std::min({range.end - t, width - t % width, width - k % width});
            copy(from.lanes, t, to.lanes, k, run, words);
            copy(from.start, t, to.start, k, run, segments);
            t += run;
            k += run;
        }
    }
    return to;  // lanes beyond the last token hold anything; nobody reads what they give
}

}  // namespace

void token_bounds(const UpperTokens& tokens, const UpperPage& page, std::span<const TokenRange> ranges,
                  std::span<float> out) {
    std::size_t count = 0;
    for (const TokenRange& range : ranges) count += range.end - range.begin;
    if (count == 0) return;
    if (page.rows == 0 || !page.finite) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        std::fill_n(out.begin(), count, page.rows == 0 ? -infinity : infinity);
        return;
    }
    const bool in_place = ranges.size() == 1 && ranges.front().begin == 0;
    const auto& packed = in_place ? tokens.packed() : gather(tokens.packed(), ranges, count, page.dim);
    const std::size_t padded = (count + packed.width - 1) / packed.width * packed.width;
    auto* best = reinterpret_cast<std::int32_t*>(scratch_floats<0>(padded));
    MARGINMERGE_DISPATCH(ScanUpper)(packed, padded, page, best);
    // What the score itself loses: d products and additions, and the rounding of what is returned here.
    const double lost = static_cast<double>(2 * page.dim + 16) * 0x1p-23 * page.norm;
    std::size_t k = 0;
    for (const TokenRange& range : ranges) {
        for (std::size_t t = range.begin; t < range.end; ++t, ++k) {
            const UpperTokens::Token& u = tokens[t];
            out[k] = static_cast<float>(static_cast<double>(page.scale) * u.scale * best[k] +
                                        u.error * (page.norm + page.error) + u.norm * (page.error + lost));
        }
    }
}

}  // namespace marginmerge
#endif  // HWY_ONCE
