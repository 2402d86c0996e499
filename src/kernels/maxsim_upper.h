#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/maxsim.h"

namespace marginmerge {

// Upper bounds of MaxSim scores for many queries, several times as fast as the scores. Whoever wants the best few of
// many documents scores exactly only those whose bound reaches the best found so far; nothing is lost by that.
//
// Tokens and vectors are rounded to bytes, u ~ u' and v ~ v', and u'.v' is summed in integers. Because
// u.v = u'.v' + (u-u').v' + u.(v-v'), a score is at most
//   sum_t max_j u'_t.v'_j + sum_t |u_t-u'_t| max_j |v'_j| + sum_t |u_t| max_j |v_j-v'_j| + what floats lose,
// where the norms are those of the actual rounding errors: about 0.04 |u||v| a token at d = 128.
//
// A page has one scale, so maxima are taken of integers. Sums are kept in 16 bits that may wrap on the way: scales
// are such that codes of 128 numbers have a norm of at most 181, so that what comes out at the end is below 2^15 by
// the inequality of Cauchy and Schwarz. Every level gives the same bits.

/// Queries coded for upper_bounds.
class UpperBoundBatch {
public:
    explicit UpperBoundBatch(std::span<const PreparedQuery* const> queries);
    std::size_t queries() const { return begins_.size() - 1; }
    std::size_t dim() const { return dim_; }

    /// What the kernel of one level works with.
    struct Packed {
        AlignedArray<std::int32_t> lanes;  ///< [panel][word][lane], four codes a word
        AlignedArray<std::int32_t> start;  ///< [panel][segment][lane]: what sums begin with
        std::size_t padded = 0;            ///< tokens padded to whole panels
        std::int64_t layout = 0;
    };
    const Packed& packed() const { return packed_; }

    /// Totals over the tokens of a query.
    struct Totals {
        double norm = 0;   ///< sum of |u|
        double error = 0;  ///< sum of |u-u'|
    };
    std::span<const Totals> totals() const { return totals_; }
    std::span<const float> scales() const { return scales_; }
    /// First token of each query, and the number of tokens at the end.
    std::span<const std::uint32_t> begins() const { return begins_; }

private:
    std::size_t dim_ = 0;
    std::vector<std::uint32_t> begins_;
    std::vector<float> scales_;  ///< of each token
    std::vector<Totals> totals_;
    Packed packed_;
};

/// out[q] >= maxsim(query q, page) for every query; infinite where a number is not finite. A page without
/// vectors gives -infinity, as there.
void upper_bounds(const UpperBoundBatch& batch, VectorsView page, std::span<float> out);

}  // namespace marginmerge
