#include "kernels/maxsim_int8.h"

#include <algorithm>

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

/// Codes one row of floats in [-levels, levels]; `row` has room for whole vectors, zeros behind its d numbers.
float EncodeRow(const float* HWY_RESTRICT row, std::size_t d, float levels, std::int8_t* HWY_RESTRICT codes) {
    const FloatTag df;
    FloatVec top = hn::Zero(df);
    for (std::size_t j = 0; j < d; j += Lanes()) top = hn::Max(top, hn::Abs(hn::Load(df, row + j)));
    const float highest = hn::GetLane(hn::MaxOfLanes(df, top));
    if (highest < 1e-30f) {  // its inverse is no float
        std::fill_n(codes, d, std::int8_t{0});
        return 0.0f;
    }
    const FloatVec inverse = hn::Set(df, levels / highest);
    HWY_ALIGN std::int32_t rounded[Lanes()];
    for (std::size_t j = 0; j < d; j += Lanes()) {
        hn::Store(hn::NearestInt(hn::Mul(hn::Load(df, row + j), inverse)), IntTag(), rounded);
        const std::size_t count = std::min(Lanes(), d - j);
        for (std::size_t i = 0; i < count; ++i) codes[j + i] = static_cast<std::int8_t>(rounded[i]);
    }
    return highest / levels;
}

void PackCodes(Int8View query, PreparedInt8Query::Packed& packed) {
    const std::size_t words = RowWords(query.dim);
    packed.padded = VectorsFor(query.rows) * Lanes();
    packed.layout = HWY_TARGET;
    packed.lanes = AlignedArray<std::int32_t>(packed.padded * words);
    packed.start = AlignedArray<std::int32_t>(packed.padded);
    ForPanels(VectorsFor(query.rows), [&](auto width, std::size_t v) {
        constexpr std::size_t span = width() * Lanes();
        for (std::size_t lane = 0; lane < span && v * Lanes() + lane < query.rows; ++lane) {
            const std::size_t token = v * Lanes() + lane;
            const std::int8_t* u = query.codes + token * query.dim;
            std::int32_t total = 0;
            for (std::size_t w = 0; w < words; ++w) {
                std::int8_t numbers[word_numbers] = {};
                for (std::size_t i = 0; i < word_numbers && w * word_numbers + i < query.dim; ++i) {
                    numbers[i] = u[w * word_numbers + i];
                    total += numbers[i];
                }
                std::memcpy(packed.lanes.data() + v * Lanes() * words + w * span + lane, numbers, sizeof(numbers));
            }
            packed.start[token] = -document_shift * total;
        }
    });
}

/// Scores the rows of a block panel by panel.
struct Int8Block {
    const PreparedInt8Query::Packed& query;
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
        if (d % word_numbers != 0) {
            for (std::size_t r = 0; r < n; ++r) {
                std::uint8_t* to = shifted + r * words * word_numbers;
                std::memset(to + d, 0, words * word_numbers - d);  // the query is zero there
                ShiftCodes(source + r * d, d, to);
            }
            Panels(shifted, n, scales, slots, Alone());
            return;
        }
        if (fresh) ShiftCodes(source, n * d, shifted);
        fresh = false;
        std::uint8_t* other = shifted + block_rows * d;
        const std::size_t count = std::min(end - row - n, block_rows) * d;
        Panels(odd ? other : shifted, n, scales, slots, ShiftNext{source + n * d, odd ? shifted : other, count});
        odd = !odd;
    }

    template <class Beside>
    HWY_INLINE void Panels(const std::uint8_t* numbers, std::size_t n, const float* scales, const Slots& slots,
                           const Beside& beside) const {
        const auto* rows = reinterpret_cast<const std::int32_t*>(numbers);
        ForPanels(query.padded / Lanes(), [&](auto width, std::size_t v) HWY_ATTR {
            constexpr std::size_t C = width();
            const std::int32_t* panel = query.lanes.data() + v * Lanes() * words;
            const std::int32_t* start = query.start.data() + v * Lanes();
            const Scaled scaled{scales, slots, v};
            if (v == 0) {
                IntTilesOver<C>(rows, n, words, panel, start, beside, scaled);
            } else {
                IntTilesOver<C>(rows, n, words, panel, start, Alone(), scaled);
            }
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
                  out, Int8Block{query, vectors, static_cast<std::size_t>(offsets.back()), block_rows, words, shifted});
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(EncodeRow);
HWY_EXPORT(PackCodes);
HWY_EXPORT(ScanInt8);

namespace {

/// Codes in [-levels, levels].
void encode(VectorsView rows, float levels, std::int8_t* codes, float* scales) {
    AlignedArray<float> row(rows.dim + 16);
    for (std::size_t i = 0; i < rows.rows; ++i) {
        to_float(rows.middle_rows(i, 1), row.data());
        scales[i] = MARGINMERGE_DISPATCH(EncodeRow)(row.data(), rows.dim, levels, codes + i * rows.dim);
    }
}

}  // namespace

void encode_int8(VectorsView rows, std::int8_t* codes, float* scales) { encode(rows, 127.0f, codes, scales); }

void decode_int8(Int8View rows, float* out) {
    for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t j = 0; j < rows.dim; ++j)
            out[i * rows.dim + j] = rows.scales[i] * static_cast<float>(rows.codes[i * rows.dim + j]);
}

PreparedInt8Query::PreparedInt8Query(VectorsView query)
    : tokens_(query.rows), dim_(query.dim), codes_(query.rows * query.dim), scales_(query.rows + 16) {
    if (dim_ > 65536) fail(ErrorCode::unsupported, "int8 query: expected at most 65536 dimensions, found {}", dim_);
    encode(query, 64.0f, codes_.data(), scales_.data());
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
