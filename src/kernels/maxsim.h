#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/aligned.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

// Fused MaxSim: S(q,d) = sum_i max_j u_i . v_j without the similarity matrix.
//
// What a score depends on. An inner product is one float32 sum over the dimension in order, and the
// tokens' maxima are added in sixteen interleaved partial sums; so a score is a function of the query
// and the document alone, whatever the call, the neighbours or the threads. Levels with fused
// multiply-add (AVX2, AVX3, AVX3_DL) give the same bits; those without (SCALAR, SSE4) give
// the same bits among themselves, and differ from the former by rounding: an inner product by at most
// d * 2^-24 * sum_t |u_t v_t|, about 1e-7 |u||v| in practice at d = 128.

/// Query tokens laid out for the kernels: transposed into vector lanes. `layout` names the level they
/// were packed for.
struct PackedTokens {
    AlignedArray<float> lanes;
    std::size_t tokens = 0;
    std::size_t dim = 0;
    std::size_t padded = 0;
    std::int64_t layout = 0;
};

/// A query laid out for the scan kernel. Prepare once, score against any number of documents.
class PreparedQuery {
public:
    /// `query` [m,d] in any storage type; m may be 0 (every score is then 0).
    explicit PreparedQuery(VectorsView query);
    std::size_t tokens() const { return packed_.tokens; }
    std::size_t dim() const { return packed_.dim; }
    ConstMatrix rows() const { return rows_.view(); }
    const PackedTokens& packed() const { return packed_; }

private:
    Matrix rows_;
    PackedTokens packed_;
};

/// Several queries scored in one pass over the documents: each vector is read and converted once for
/// all of them, and short queries share vector lanes. Scores equal those of the queries alone.
class PreparedBatch {
public:
    /// Queries [m_q,d] of one dimension, any storage types.
    explicit PreparedBatch(std::span<const VectorsView> queries);
    std::size_t queries() const { return begins_.size() - 1; }
    std::size_t dim() const { return packed_.dim; }
    const PackedTokens& packed() const { return packed_; }
    /// First token of each query, and the number of tokens at the end.
    std::span<const std::uint32_t> begins() const { return begins_; }

private:
    PackedTokens packed_;
    std::vector<std::uint32_t> begins_;
};

/// MaxSim S(q,d) = sum_i max_j u_i . v_j over a ragged document of any storage type, without
/// materialising the similarity matrix. A document without vectors scores -infinity.
float maxsim(const PreparedQuery& query, VectorsView document);

/// Scores of documents [first, first+count) given by offsets into `vectors`:
/// out[i] = maxsim(query, rows offsets[i] .. offsets[i+1]). offsets has count+1 entries.
void maxsim_many(const PreparedQuery& query, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out);

/// The same for every query of a batch: out[q * count + i].
void maxsim_many(const PreparedBatch& batch, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out);

/// Scores of one document for every query of a batch: out[q].
void maxsim_batch(const PreparedBatch& batch, VectorsView document, std::span<float> out);

/// The queries as a batch.
PreparedBatch batch_of(std::span<const PreparedQuery* const> queries);

/// Per query token the best response and which vector gave it (lowest index on a tie).
/// best, winner: m entries each.
void maxsim_winners(const PreparedQuery& query, VectorsView document, std::span<float> best,
                    std::span<std::int32_t> winner);

/// The instruction set the kernels run with, for example "AVX2"; it stands in every report.
const char* kernel_name();

}  // namespace marginmerge
