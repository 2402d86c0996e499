#pragma once

#include <cstdint>
#include <span>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// A query laid out for the scan kernel. Prepare once, score against any number of documents.
class PreparedQuery {
public:
    /// `query` [m,d] in any storage type; m may be 0 (every score is then 0).
    explicit PreparedQuery(VectorsView query);
    std::size_t tokens() const { return tokens_; }
    std::size_t dim() const { return dim_; }
    ConstMatrix rows() const { return rows_.view(); }

private:
    std::size_t tokens_;
    std::size_t dim_;
    Matrix rows_;
};

/// MaxSim S(q,d) = sum_i max_j u_i . v_j over a ragged document of any storage type, without
/// materialising the similarity matrix. A document without vectors scores -infinity.
float maxsim(const PreparedQuery& query, VectorsView document);

/// Scores of documents [first, first+count) given by offsets into `vectors`:
/// out[i] = maxsim(query, rows offsets[i] .. offsets[i+1]). offsets has count+1 entries.
void maxsim_many(const PreparedQuery& query, VectorsView vectors, std::span<const std::int64_t> offsets,
                 std::span<float> out);

/// Per query token the best response and which vector gave it (lowest index on a tie).
/// best, winner: m entries each.
void maxsim_winners(const PreparedQuery& query, VectorsView document, std::span<float> best,
                    std::span<std::int32_t> winner);

/// The instruction set the kernels run with, for example "AVX2"; it stands in every report.
const char* kernel_name();

}  // namespace marginmerge
