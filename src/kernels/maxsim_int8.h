#pragma once

#include <cstdint>
#include <span>

#include "kernels/aligned.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

// MaxSim over int8 codes. A vector is stored as d signed bytes in [-127,127] and one float:
// v_j ~ scale * code_j with scale = max|v_j| / 127. The query is coded token by token, as finely as a rule
// allows that lets four products be added in 16 bits (more than twice as fast where the CPU has no VNNI): in
// every eight numbers, the magnitudes of the 1st, 2nd, 5th and 6th code sum to at most 128, and so do
// the others. Typical tokens get codes up to 60-70 in this way. Products are summed as integers, so every
// kernel level gives the same bits.
//
// Error of one inner product (s_u, s_v the scales): |u.v - estimate| is at most
//   s_v/2 * |u|_1 + s_u/2 * |v|_1 + d/4 * s_u * s_v,
// and typically 0.001 |u||v| at d = 128. Dimensions up to 65,536.

/// Borrowed int8 vectors, row-major and contiguous: codes [rows,dim], scales [rows].
struct Int8View {
    const std::int8_t* codes = nullptr;
    const float* scales = nullptr;
    std::size_t rows = 0;
    std::size_t dim = 0;

    Int8View middle_rows(std::size_t first, std::size_t count) const {
        return {codes + first * dim, scales + first, count, dim};
    }
};

/// Codes rows in any storage type: codes [rows,dim], scales [rows]. A zero row gets scale 0.
void encode_int8(VectorsView rows, std::int8_t* codes, float* scales);

/// scale * code for every number: out [rows,dim].
void decode_int8(Int8View rows, float* out);

/// A query coded and laid out for the int8 scan. Prepare once, score any number of documents.
class PreparedInt8Query {
public:
    /// `query` [m,d] in any storage type; m may be 0 (every score is then 0).
    explicit PreparedInt8Query(VectorsView query);
    std::size_t tokens() const { return tokens_; }
    std::size_t dim() const { return dim_; }
    /// The codes [m,d] and scales [m] the scan works with.
    Int8View rows() const { return {codes_.data(), scales_.data(), tokens_, dim_}; }

    /// The codes as the kernel of one level wants them: transposed into lanes, four numbers of the
    /// dimension in a word; `start` is what each token's sum begins with.
    struct Packed {
        AlignedArray<std::int32_t> lanes;
        AlignedArray<std::int32_t> start;
        std::size_t padded = 0;
        std::int64_t layout = 0;
    };
    const Packed& packed() const { return packed_; }

private:
    std::size_t tokens_;
    std::size_t dim_;
    AlignedArray<std::int8_t> codes_;
    AlignedArray<float> scales_;
    Packed packed_;
};

/// sum_i max_j s_i * (s_j * float(sum_t u_it v_jt)); a document without vectors scores -infinity.
float maxsim(const PreparedInt8Query& query, Int8View document);

/// out[i] = maxsim(query, rows offsets[i] .. offsets[i+1]); offsets has out.size()+1 entries.
void maxsim_many(const PreparedInt8Query& query, Int8View vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out);

}  // namespace marginmerge
