#pragma once

#include <cstdint>
#include <span>

#include "kernels/aligned.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

// MaxSim over sign bits. A vector is stored as one bit a dimension (bit j%8 of byte j/8 is set
// when v_j >= 0; unused bits of the last byte are zero) and one float,
// scale = |v|^2 / |v|_1, which makes the estimate of v.v exact. The query keeps its magnitudes:
// integers in [-255,255] with a scale for each token, so an inner product is
// s_i * s_j * sum_t (+-u_it). The sum is exact in integers: every kernel level gives the same bits.
//
// The error is that of the sign code, at most |u||v| sqrt(d |v|^2 / |v|_1^2 - 1), about 0.76 |u||v|, and half a unit of
// the query's scale for each dimension. For vectors without preferred axes the estimate of u.v is unbiased with a
// standard deviation of about sqrt((pi/2 - 1) / d) |u||v|, 0.067 at d = 128; principal components have preferred axes
// and err more.

/// Bytes of one row of sign bits.
constexpr std::size_t bit_row_bytes(std::size_t dim) { return (dim + 7) / 8; }

/// Borrowed sign codes, row-major and contiguous: codes [rows, bit_row_bytes(dim)], scales [rows].
struct BitsView {
    const std::uint8_t* codes = nullptr;
    const float* scales = nullptr;
    std::size_t rows = 0;
    std::size_t dim = 0;

    BitsView middle_rows(std::size_t first, std::size_t count) const {
        return {codes + first * bit_row_bytes(dim), scales + first, count, dim};
    }
};

/// Codes rows in any storage type: codes [rows, bit_row_bytes(dim)], scales [rows]. A zero row gets
/// scale 0.
void encode_bits(VectorsView rows, std::uint8_t* codes, float* scales);

/// +-scale for every number: out [rows,dim].
void decode_bits(BitsView rows, float* out);

/// A query laid out for the scan of sign bits.
class PreparedBitsQuery {
public:
    /// `query` [m,d] in any storage type; m may be 0 (every score is then 0).
    explicit PreparedBitsQuery(VectorsView query);
    std::size_t tokens() const { return tokens_; }
    std::size_t dim() const { return dim_; }
    /// Integer query values [m,d] in [-255,255] and their scales [m].
    std::span<const std::int16_t> values() const { return values_.span(); }
    std::span<const float> scales() const { return scales_.span(); }

    /// For every four dimensions and every value of their four bits the sum of +-u, token by token.
    struct Tables {
        AlignedArray<std::int16_t> sums;
        std::size_t padded = 0;
        std::int64_t layout = 0;
    };
    const Tables& tables() const { return tables_; }

private:
    std::size_t tokens_;
    std::size_t dim_;
    AlignedArray<std::int16_t> values_;
    AlignedArray<float> scales_;
    Tables tables_;
};

/// sum_i max_j s_i * (s_j * float(sum_t +-u_it)); a document without vectors scores -infinity.
float maxsim(const PreparedBitsQuery& query, BitsView document);

/// out[i] = maxsim(query, rows offsets[i] .. offsets[i+1]); offsets has out.size()+1 entries.
void maxsim_many(const PreparedBitsQuery& query, BitsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out);

}  // namespace marginmerge
