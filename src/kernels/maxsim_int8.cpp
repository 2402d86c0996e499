#include "kernels/maxsim_int8.h"

#include <algorithm>
#include <vector>

#include "core/fail.h"
#include "kernels/convert.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/maxsim_int8.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/int_tile-inl.h"
#include "kernels/scan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

/// The largest magnitude of a row; `row` has room for whole vectors, zeros behind its d numbers.
float LargestOf(const float* HWY_RESTRICT row, std::size_t d) {
    const FloatTag df;
    FloatVec top = hn::Zero(df);
    for (std::size_t j = 0; j < d; j += Lanes()) top = hn::Max(top, hn::Abs(hn::Load(df, row + j)));
    return hn::GetLane(hn::MaxOfLanes(df, top));
}

/// codes = round(row * inverse), to nearest even; the products must fit.
void RoundRow(const float* HWY_RESTRICT row, std::size_t d, float inverse, std::int8_t* HWY_RESTRICT codes) {
    const FloatTag df;
    const FloatVec factor = hn::Set(df, inverse);
    HWY_ALIGN std::int32_t rounded[Lanes()];
    for (std::size_t j = 0; j < d; j += Lanes()) {
        hn::Store(hn::NearestInt(hn::Mul(hn::Load(df, row + j), factor)), IntTag(), rounded);
        const std::size_t count = std::min(Lanes(), d - j);
        for (std::size_t i = 0; i < count; ++i) codes[j + i] = static_cast<std::int8_t>(rounded[i]);
    }
}

void PackCodes(Int8View query, PreparedInt8Query::Packed& packed) {
    const std::size_t words = RowWords(query.dim);
    packed.padded = VectorsFor(query.rows) * Lanes();
    packed.layout = HWY_TARGET;
    packed.lanes = AlignedArray<std::int32_t>(packed.padded * words);
    packed.start = AlignedArray<std::int32_t>(packed.padded);
    ForTokenPanels(query.rows, [&](auto width, std::size_t v, bool) {
        constexpr std::size_t span = width() * Lanes();
        for (std::size_t lane = v * Lanes(); lane < v * Lanes() + span; ++lane) {
            const std::ptrdiff_t token = TokenOfLane(lane, query.rows);
            if (token < 0) continue;
            const std::int8_t* u = query.codes + static_cast<std::size_t>(token) * query.dim;
            std::int32_t* to = packed.lanes.data() + v * Lanes() * words + lane - v * Lanes();
            std::int32_t total = 0;
            for (std::size_t w = 0; w < words; ++w, to += span) {
                std::int8_t numbers[word_numbers] = {};
                for (std::size_t i = 0; i < word_numbers && w * word_numbers + i < query.dim; ++i) {
                    numbers[i] = u[w * word_numbers + i];
                    total += numbers[i];
                }
                std::memcpy(to, numbers, sizeof(numbers));
            }
            packed.start[lane] = -document_shift * total;
        }
    });
}

/// Scores the rows of a block panel by panel.
struct Int8Block {
    const PreparedInt8Query::Packed& query;
    std::size_t tokens;
    Int8View vectors;
    std::size_t end;
    std::size_t block_rows;
    std::size_t words;
    std::uint8_t* shifted;  ///< two blocks, this and the next, [block rows][words * numbers] each
    bool fresh = true;
    bool odd = false;

    HWY_INLINE void operator()(std::size_t row, std::size_t n, const Slots& slots) {
        const std::size_t d = vectors.dim;
        const std::int8_t* source = vectors.codes + row * d;
        const float* scales = vectors.scales + row;
        if (d != words * word_numbers) {
            for (std::size_t r = 0; r < n; ++r) {
                std::uint8_t* to = shifted + r * words * word_numbers;
                std::memset(to + d, 0, words * word_numbers - d);  // the query is zero there
                ShiftCodes(source + r * d, d, to);
            }
            Panels(shifted, n, scales, slots, ShiftNext{nullptr, nullptr, 0});
            return;
        }
        if (fresh) ShiftCodes(source, n * d, shifted);
        fresh = false;
        std::uint8_t* other = shifted + block_rows * d;
        const std::size_t count = std::min(end - row - n, block_rows) * d;
        Panels(odd ? other : shifted, n, scales, slots, ShiftNext{source + n * d, odd ? shifted : other, count});
        odd = !odd;
    }

    HWY_INLINE void Panels(const std::uint8_t* numbers, std::size_t n, const float* scales, const Slots& slots,
                           const ShiftNext& shift) const {
        const auto* rows = reinterpret_cast<const std::int32_t*>(numbers);
        ForTokenPanels(tokens, [&](auto width, std::size_t v, [[maybe_unused]] bool half) HWY_ATTR {
            constexpr std::size_t C = width();
            const std::int32_t* panel = query.lanes.data() + v * Lanes() * words;
            const std::int32_t* start = query.start.data() + v * Lanes();
            const ShiftNext beside = v == 0 ? shift : ShiftNext{nullptr, nullptr, 0};
            const Scaled scaled{scales, slots, v};
#if HWY_TARGET == HWY_AVX2
            if constexpr (C > 1) {
                constexpr std::size_t R = 4;
                if (half && n >= R) {
                    for (std::size_t r = 0; r < n; r = NextTile<R>(r, n)) {
                        IntVec sum[R][C - 1];
                        IntVec paired[R / 2];
                        IntTile<R, C * Lanes()>(rows + r * words, words, panel, start,
                                                beside.At(r, words * word_numbers), sum, paired);
                        scaled(sum, r);
                        scaled.Half(paired, r, v + C - 1);
                    }
                    return;
                }
            }
#endif
            IntTilesOver<C>(rows, n, words, panel, start, beside, scaled);
        });
    }

    /// Sums times the row's scale raise the slots.
    struct Scaled {
        const float* scales;
        const Slots& slots;
        std::size_t v;

        template <std::size_t R, std::size_t C>
        HWY_INLINE void operator()(const IntVec (&sum)[R][C], std::size_t row) const {
            const FloatTag df;
            FloatVec value[R][C];
            HWY_UNROLL(24)
            for (std::size_t r = 0; r < R; ++r) {
                const FloatVec scale = hn::Set(df, scales[row + r]);
                HWY_UNROLL(3)
                for (std::size_t c = 0; c < C; ++c) value[r][c] = hn::Mul(hn::ConvertTo(df, sum[r][c]), scale);
            }
            slots.Raise(value, row, v);
        }

#if HWY_TARGET == HWY_AVX2
        /// The same for the last vector of a half panel.
        template <std::size_t pairs>
        HWY_INLINE void Half(const IntVec (&sum)[pairs], std::size_t row, std::size_t last) const {
            const FloatTag df;
            FloatVec value[pairs];
            HWY_UNROLL(4)
            for (std::size_t i = 0; i < pairs; ++i) {
                const FloatVec even = hn::Set(df, scales[row + 2 * i]);
                const FloatVec odd = hn::Set(df, scales[row + 2 * i + 1]);
                value[i] = hn::Mul(hn::ConvertTo(df, sum[i]), hn::ConcatUpperLower(df, odd, even));
            }
            slots.RaiseHalf(value, row, last);
        }
#endif
    };
};

void ScanInt8(const PreparedInt8Query& prepared, Int8View vectors, std::span<const std::int64_t> offsets, float* out) {
    const PreparedInt8Query::Packed& query = prepared.packed();
    if (query.layout != HWY_TARGET) fail(ErrorCode::internal, "query prepared for another kernel level");
    const std::size_t words = RowWords(prepared.dim());
    const std::size_t block_rows = BlockRows(words * sizeof(std::int32_t), 8192);
    auto* shifted = reinterpret_cast<std::uint8_t*>(scratch_floats<1>(2 * block_rows * words));
    const std::uint32_t begins[] = {0, static_cast<std::uint32_t>(prepared.tokens())};
    ScanDocuments({std::span<const std::uint32_t>(begins), prepared.rows().scales, query.padded}, offsets, block_rows,
                  out,
                  Int8Block{query, prepared.tokens(), vectors, static_cast<std::size_t>(offsets.back()), block_rows,
                            words, shifted});
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(LargestOf);
HWY_EXPORT(RoundRow);
HWY_EXPORT(PackCodes);
HWY_EXPORT(ScanInt8);

namespace {

// Below this a row counts as zero: the inverse of its scale would be no float.
constexpr float smallest = 1e-30f;

// What the numbers of a token add up to where they meet in 16 bits: 2 of a word and 2 of the next.
constexpr int meeting_limit = 128;

template <class T>
T largest_meeting(const T* u, std::size_t d) {
    T most{};
    for (std::size_t first = 0; first < d; first += 8) {
        for (std::size_t pair = 0; pair < 4; pair += 2) {
            T sum{};
            for (const std::size_t j : {first + pair, first + pair + 1, first + pair + 4, first + pair + 5})
                if (j < d) sum = static_cast<T>(sum + (u[j] < T{} ? -u[j] : u[j]));
            most = std::max(most, sum);
        }
    }
    return most;
}

/// Codes of a token as fine as the meeting limit and a signed byte allow; returns the scale.
float encode_token(const float* row, std::size_t d, std::int8_t* codes) {
    const float largest = MARGINMERGE_DISPATCH(LargestOf)(row, d);
    const float meeting = largest_meeting(row, d);
    if (largest < smallest) return 0.0f;
    float inverse = std::min(127.0f / largest, static_cast<float>(meeting_limit) / meeting);
    std::vector<int> wide(d);
    for (;; inverse *= 0.996f) {  // rounding may lift a sum past the limit, by two at most
        MARGINMERGE_DISPATCH(RoundRow)(row, d, inverse, codes);
        std::copy_n(codes, d, wide.begin());
        if (largest_meeting(wide.data(), d) <= meeting_limit) return 1.0f / inverse;
    }
}

}  // namespace

void encode_int8(VectorsView rows, std::int8_t* codes, float* scales) {
    AlignedArray<float> row(rows.dim + 16);
    for (std::size_t i = 0; i < rows.rows; ++i) {
        to_float(rows.middle_rows(i, 1), row.data());
        const float largest = MARGINMERGE_DISPATCH(LargestOf)(row.data(), rows.dim);
        const bool zero = largest < smallest;
        scales[i] = zero ? 0.0f : largest / 127.0f;
        MARGINMERGE_DISPATCH(RoundRow)(row.data(), rows.dim, zero ? 0.0f : 127.0f / largest, codes + i * rows.dim);
    }
}

void decode_int8(Int8View rows, float* out) {
    for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t j = 0; j < rows.dim; ++j)
            out[i * rows.dim + j] = rows.scales[i] * static_cast<float>(rows.codes[i * rows.dim + j]);
}

PreparedInt8Query::PreparedInt8Query(VectorsView query)
    : tokens_(query.rows), dim_(query.dim), codes_(query.rows * query.dim), scales_(query.rows + 16) {
    if (dim_ > 65536) fail(ErrorCode::unsupported, "int8 query: expected at most 65536 dimensions, found {}", dim_);
    AlignedArray<float> row(dim_ + 16);
    for (std::size_t i = 0; i < tokens_; ++i) {
        to_float(query.middle_rows(i, 1), row.data());
        scales_[i] = encode_token(row.data(), dim_, codes_.data() + i * dim_);
    }
    MARGINMERGE_DISPATCH(PackCodes)(rows(), packed_);
}

float maxsim(const PreparedInt8Query& query, Int8View document) {
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(document.rows)};
    float score = 0.0f;
    maxsim_many(query, document, offsets, {&score, 1});
    return score;
}

void maxsim_many(const PreparedInt8Query& query, Int8View vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    if (offsets.size() < 2) return;
    MARGINMERGE_DISPATCH(ScanInt8)(query, vectors, offsets, out.data());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
