#pragma once

#include <cstdint>
#include <span>

#include "kernels/aligned.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

// Matrix products of pages. Every inner product of product, responses and nearest is one float32 sum
// over the dimension in order, as in maxsim.h: it does not depend on blocking, on the call or on
// threads, and the three (and MaxSim) agree bit for bit. dot adds in 32 interleaved partial sums.

/// out[i,j] = a_i . b_j, for a [m,d], b [n,d], out [m,n].
void product(ConstMatrix a, ConstMatrix b, MutMatrix out);

/// Rows packed once for many calls of responses or nearest (transposed into vector lanes).
struct PackedRows {
    /// An empty matrix packs to nothing.
    explicit PackedRows(ConstMatrix rows);

    AlignedArray<float> lanes;
    std::size_t rows = 0;
    std::size_t dim = 0;
    std::int64_t layout = 0;  ///< level it was packed for
};

/// The same for b packed once, or for its first out.cols rows.
void product(ConstMatrix a, const PackedRows& b, MutMatrix out);

/// Responses of a page: out[t,i] = clamp(z_t . v_i, -1, 1), best[t] = max_i out[t,i].
/// z [M,d], v [n,d], out [M,n], best [M].
void responses(ConstMatrix z, ConstMatrix v, MutMatrix out, std::span<float> best);
/// The same for a bank packed once.
void responses(const PackedRows& z, ConstMatrix v, MutMatrix out, std::span<float> best);

/// For each row of v [n,d] the row of `centres` [k,d] with the largest inner product, the lower
/// index on a tie: index[i], similarity[i]. Never materialises [n,k]. k >= 1.
void nearest(ConstMatrix v, ConstMatrix centres, std::span<std::int32_t> index, std::span<float> similarity);
/// The same for centres packed once.
void nearest(ConstMatrix v, const PackedRows& centres, std::span<std::int32_t> index, std::span<float> similarity);

/// sums[c] += weight[i] * v_i for every i with cluster[i] == c (negative: skipped). v [n,d] in any storage type,
/// sums [k,d].
void add_to_clusters(VectorsView v, std::span<const std::int32_t> cluster, std::span<const float> weight,
                     MutMatrix sums);

/// out[i] = dot(rows[c], v_i) for c = cluster[i], 0 where that is negative. v [n,d] in any storage type, rows [k,d].
void dot_clusters(VectorsView v, std::span<const std::int32_t> cluster, ConstMatrix rows, std::span<float> out);

/// Inner product of two vectors of length d.
float dot(const float* a, const float* b, std::size_t d);
/// out[r] = dot(x, row r) for `count` rows side by side, the same bits.
void dot_rows(const float* x, const float* rows, std::size_t count, std::size_t d, float* out);

/// y += factor * x, length d.
void add_scaled(float factor, const float* x, float* y, std::size_t d);

/// Scales every row to unit L2 norm; rows of (near) zero norm are left as they are.
void normalise_rows(MutMatrix m);

}  // namespace marginmerge
