#include "kernels/maxsim_bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "core/fail.h"
#include "kernels/convert.h"
#include "kernels/level.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/maxsim_bits.cpp"
#include "hwy/foreach_target.h"
//
#include "kernels/scan-inl.h"

HWY_BEFORE_NAMESPACE();
namespace marginmerge {
namespace HWY_NAMESPACE {

// Sums of 128 dimensions of at most 255 fit 16 bits; after that many they move to 32.
constexpr std::size_t chunk_bytes = 16;

#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t halves = 1;
using ShortTag = hn::Rebind<std::int16_t, FloatTag>;
#else
constexpr std::size_t halves = 2;
using ShortTag = hn::ScalableTag<std::int16_t>;
#endif
using ShortVec = hn::Vec<ShortTag>;

/// Tokens of one vector of 16-bit sums.
HWY_INLINE constexpr std::size_t ShortLanes() { return halves * Lanes(); }

/// Vectors of tokens looked up together. A table of 128 dimensions takes 16 KiB a vector of 32 bytes:
/// two still fit a first-level cache.
constexpr std::size_t together = HWY_CAP_GE512 ? 1 : 2;

/// Calls f(integral_constant<C>, first vector) for every group of `vectors` vectors of 16-bit sums.
template <class F>
HWY_INLINE void ForGroups(std::size_t vectors, F&& f) {
    std::size_t v = 0;
    for (; v + together <= vectors; v += together) f(std::integral_constant<std::size_t, together>(), v);
    for (; v < vectors; ++v) f(std::integral_constant<std::size_t, 1>(), v);
}

/// Tables of a group: [nibbles][16][C * ShortLanes()], two nibbles for each byte of a row.
void BuildTables(std::span<const std::int16_t> values, std::size_t tokens, std::size_t d,
                 PreparedBitsQuery::Tables& tables) {
    const std::size_t nibbles = 2 * bit_row_bytes(d);
    const std::size_t vectors = (tokens + ShortLanes() - 1) / ShortLanes();
    tables.padded = vectors * ShortLanes();
    tables.layout = HWY_TARGET;
    tables.sums = AlignedArray<std::int16_t>(vectors * nibbles * 16 * ShortLanes());
    ForGroups(vectors, [&](auto width, std::size_t v) {
        constexpr std::size_t span = width() * ShortLanes();
        for (std::size_t lane = 0; lane < span && v * ShortLanes() + lane < tokens; ++lane) {
            const std::int16_t* u = values.data() + (v * ShortLanes() + lane) * d;
            std::int16_t* table = tables.sums.data() + v * ShortLanes() * nibbles * 16 + lane;
            for (std::size_t nibble = 0; nibble < nibbles; ++nibble) {
                int part[4] = {};
                for (std::size_t b = 0; b < 4 && nibble * 4 + b < d; ++b) part[b] = u[nibble * 4 + b];
                for (unsigned bits = 0; bits < 16; ++bits, table += span) {
                    int sum = 0;
                    for (unsigned b = 0; b < 4; ++b) sum += (bits >> b) & 1U ? part[b] : -part[b];
                    *table = static_cast<std::int16_t>(sum);
                }
            }
        }
    });
}

/// Nibbles of n rows as table offsets in bytes for entries of 2^shift bytes: [row][low nibbles of all bytes,
/// high nibbles of all bytes].
HWY_INLINE void SpreadNibbles(const std::uint8_t* HWY_RESTRICT codes, std::size_t n, std::size_t bytes, int shift,
                              std::uint16_t* HWY_RESTRICT offsets) {
    for (std::size_t r = 0; r < n; ++r, codes += bytes, offsets += 2 * bytes) {
        std::size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
        const hn::CappedTag<std::uint16_t, 16> dw;
        const hn::Rebind<std::uint8_t, decltype(dw)> db;
        const auto mask = hn::Set(dw, std::uint16_t{15});
        for (; i + hn::Lanes(dw) <= bytes; i += hn::Lanes(dw)) {
            const auto word = hn::PromoteTo(dw, hn::LoadU(db, codes + i));
            hn::StoreU(hn::ShiftLeftSame(hn::And(word, mask), shift), dw, offsets + i);
            hn::StoreU(hn::ShiftLeftSame(hn::ShiftRight<4>(word), shift), dw, offsets + bytes + i);
        }
#endif
        for (; i < bytes; ++i) {
            offsets[i] = static_cast<std::uint16_t>((codes[i] & 15U) << shift);
            offsets[bytes + i] = static_cast<std::uint16_t>((codes[i] >> 4) << shift);
        }
    }
}

/// sum += *at. The empty statement keeps GCC from regrouping the additions, which costs it the loads
/// folded into them.
HWY_INLINE void AddEntry(ShortVec& sum, const char* at) {
    auto total = hn::Add(sum, hn::Load(ShortTag(), reinterpret_cast<const std::int16_t*>(at)));
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
    asm("" : "+v"(total.raw));
#endif
    sum = total;
}

/// Adds the entries of `bytes` <= 16 bytes to 32-bit sums of C vectors of tokens.
template <std::size_t C>
HWY_INLINE void AddChunk(const std::uint16_t* HWY_RESTRICT low, const std::uint16_t* HWY_RESTRICT high,
                         std::size_t bytes, const char* HWY_RESTRICT table, IntVec (&sums)[1][C * halves]) {
    constexpr std::size_t vector = ShortLanes() * sizeof(std::int16_t);
    constexpr std::size_t nibble = 16 * C * vector;
    const ShortTag ds;
    const IntTag di;
    ShortVec a[C];
    ShortVec b[C];
    for (std::size_t c = 0; c < C; ++c) a[c] = b[c] = hn::Zero(ds);
    const auto add = [&](std::size_t i) HWY_ATTR {
        const char* low_entry = table + 2 * i * nibble + low[i];
        const char* high_entry = table + (2 * i + 1) * nibble + high[i];
        for (std::size_t c = 0; c < C; ++c) AddEntry(a[c], low_entry + c * vector);
        for (std::size_t c = 0; c < C; ++c) AddEntry(b[c], high_entry + c * vector);
    };
    if (bytes == chunk_bytes) {
        HWY_UNROLL(16)
        for (std::size_t i = 0; i < chunk_bytes; ++i) add(i);
    } else {
        for (std::size_t i = 0; i < bytes; ++i) add(i);
    }
    for (std::size_t c = 0; c < C; ++c) {
        const ShortVec sum = hn::Add(a[c], b[c]);
#if HWY_TARGET == HWY_SCALAR
        sums[0][c] = hn::Add(sums[0][c], hn::PromoteTo(di, sum));
#else
        const hn::Half<ShortTag> dh;
        sums[0][2 * c] = hn::Add(sums[0][2 * c], hn::PromoteTo(di, hn::LowerHalf(dh, sum)));
        sums[0][2 * c + 1] = hn::Add(sums[0][2 * c + 1], hn::PromoteTo(di, hn::UpperHalf(dh, sum)));
#endif
    }
}

struct BitsBlock {
    const PreparedBitsQuery::Tables& tables;
    BitsView vectors;
    std::uint16_t* offsets;  ///< [block rows][2 * bytes]

    HWY_INLINE void operator()(std::size_t row, std::size_t n, const Slots& slots) const {
        const std::size_t bytes = bit_row_bytes(vectors.dim);
        ForGroups(tables.padded / ShortLanes(), [&](auto width, std::size_t v) HWY_ATTR {
            constexpr std::size_t C = width();
            constexpr std::size_t entry = C * ShortLanes() * sizeof(std::int16_t);
            SpreadNibbles(vectors.codes + row * bytes, n, bytes, std::countr_zero(entry), offsets);
            const auto* table = reinterpret_cast<const char*>(tables.sums.data() + v * ShortLanes() * bytes * 32);
            for (std::size_t r = 0; r < n; ++r) Row<C>(offsets + r * 2 * bytes, bytes, table, row + r, r, v, slots);
        });
    }

    template <std::size_t C>
    HWY_INLINE void Row(const std::uint16_t* nibbles, std::size_t bytes, const char* table, std::size_t row,
                        std::size_t in_block, std::size_t v, const Slots& slots) const {
        constexpr std::size_t entry = C * ShortLanes() * sizeof(std::int16_t);
        const FloatTag df;
        IntVec sums[1][C * halves];
        for (std::size_t h = 0; h < C * halves; ++h) sums[0][h] = hn::Zero(IntTag());
        for (std::size_t done = 0; done < bytes; done += chunk_bytes) {
            AddChunk<C>(nibbles + done, nibbles + bytes + done, std::min(chunk_bytes, bytes - done),
                        table + done * 32 * entry, sums);
        }
        const FloatVec scale = hn::Set(df, vectors.scales[row]);
        FloatVec value[1][C * halves];
        for (std::size_t h = 0; h < C * halves; ++h) value[0][h] = hn::Mul(hn::ConvertTo(df, sums[0][h]), scale);
        slots.Raise(value, in_block, v * halves);
    }
};

void ScanBits(const PreparedBitsQuery& query, BitsView vectors, std::span<const std::int64_t> offsets, float* out) {
    if (query.tables().layout != HWY_TARGET) fail(ErrorCode::internal, "query prepared for another kernel level");
    const std::uint32_t begins[] = {0, static_cast<std::uint32_t>(query.tokens())};
    const std::size_t bytes = bit_row_bytes(vectors.dim);
    constexpr std::size_t block_rows = 48;
    auto* nibbles = reinterpret_cast<std::uint16_t*>(scratch_floats<1>(block_rows * bytes));
    ScanDocuments({std::span<const std::uint32_t>(begins), query.scales().data(), query.tables().padded}, offsets,
                  block_rows, out, BitsBlock{query.tables(), vectors, nibbles});
}

}  // namespace HWY_NAMESPACE
}  // namespace marginmerge
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace marginmerge {

HWY_EXPORT(BuildTables);
HWY_EXPORT(ScanBits);

void encode_bits(VectorsView rows, std::uint8_t* codes, float* scales) {
    const std::size_t stride = bit_row_bytes(rows.dim);
    AlignedArray<float> row(rows.dim);
    for (std::size_t i = 0; i < rows.rows; ++i) {
        to_float(rows.middle_rows(i, 1), row.data());
        std::uint8_t* bits = codes + i * stride;
        std::fill_n(bits, stride, std::uint8_t{0});
        double absolute = 0.0;
        double square = 0.0;
        for (std::size_t j = 0; j < rows.dim; ++j) {
            const double x = row[j];
            absolute += std::abs(x);
            square += x * x;
            bits[j / 8] = static_cast<std::uint8_t>(bits[j / 8] | (x >= 0.0 ? 1U << (j % 8) : 0U));
        }
        scales[i] = absolute > 0.0 ? static_cast<float>(square / absolute) : 0.0f;
    }
}

void decode_bits(BitsView rows, float* out) {
    const std::size_t stride = bit_row_bytes(rows.dim);
    for (std::size_t i = 0; i < rows.rows; ++i)
        for (std::size_t j = 0; j < rows.dim; ++j)
            out[i * rows.dim + j] = (rows.codes[i * stride + j / 8] >> (j % 8)) & 1U ? rows.scales[i] : -rows.scales[i];
}

PreparedBitsQuery::PreparedBitsQuery(VectorsView query)
    : tokens_(query.rows), dim_(query.dim), values_(query.rows * query.dim), scales_(query.rows + 16) {
    const Matrix rows = to_float(query);
    for (std::size_t i = 0; i < tokens_; ++i) {
        float top = 0.0f;
        for (std::size_t j = 0; j < dim_; ++j) top = std::max(top, std::abs(rows(i, j)));
        if (top < 1e-30f) continue;  // its inverse is no float; the token's values and scale stay zero
        scales_[i] = top / 255.0f;
        const float inverse = 255.0f / top;
        for (std::size_t j = 0; j < dim_; ++j)
            values_[i * dim_ + j] =
                static_cast<std::int16_t>(std::clamp(std::nearbyint(rows(i, j) * inverse), -255.0f, 255.0f));
    }
    MARGINMERGE_DISPATCH(BuildTables)(values(), tokens_, dim_, tables_);
}

float maxsim(const PreparedBitsQuery& query, BitsView document) {
    const std::int64_t offsets[] = {0, static_cast<std::int64_t>(document.rows)};
    float score = 0.0f;
    maxsim_many(query, document, offsets, {&score, 1});
    return score;
}

void maxsim_many(const PreparedBitsQuery& query, BitsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out) {
    if (offsets.size() < 2) return;
    MARGINMERGE_DISPATCH(ScanBits)(query, vectors, offsets, out.data());
}

}  // namespace marginmerge
#endif  // HWY_ONCE
