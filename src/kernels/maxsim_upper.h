#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/aligned.h"
#include "kernels/maxsim.h"

namespace marginmerge {

// Upper bounds of what query tokens find on a page, several times as fast as the scores. Whoever wants the best few of
// many documents scores exactly only those whose bound reaches the best found so far; nothing is lost by that.
//
// Tokens and vectors are rounded to bytes, u ~ u' and v ~ v', and u'.v' is summed in integers. Because
// u.v = u'.v' + (u-u').v' + u.(v-v'), a token's best response max_j u.v_j is at most
//   max_j u'.v'_j + |u-u'| max_j |v'_j| + |u| max_j |v_j-v'_j| + what floats lose,
// where the norms are those of the actual rounding errors: about 0.04 |u||v| at d = 128.
//
// A page has one scale, so maxima are taken of integers. Sums are kept in 16 bits that may wrap on the way: scales
// are such that codes of 128 numbers have a norm of at most 181, so that what comes out at the end is below 2^15 by
// the inequality of Cauchy and Schwarz. Every level gives the same bits.

/// How a kernel sums products of bytes: as the processor does it best, or in one of two ways; the bounds are the same.
enum class ByteSums { best, halves, whole };

/// Tokens coded for token_bounds, numbered as given.
class UpperTokens {
public:
    /// Tests ask for `halves`, which then is what the level does on processors without an instruction for it.
    explicit UpperTokens(ConstMatrix tokens, ByteSums sums = ByteSums::best);
    std::size_t size() const { return tokens_.size(); }

    /// What the kernel of one level works with.
    struct Packed {
        AlignedArray<std::int32_t> lanes;  ///< [panel][word][lane], four codes a word
        AlignedArray<std::int32_t> start;  ///< [panel][segment][lane]: what sums begin with
        std::size_t padded = 0;            ///< tokens padded to whole panels
        std::size_t width = 0;             ///< lanes of a panel
        std::int64_t layout = 0;
        ByteSums sums = ByteSums::best;
    };
    const Packed& packed() const { return packed_; }

    struct Token {
        float scale = 0;
        double norm = 0;   ///< |u|, rounded up
        double error = 0;  ///< |u-u'|, rounded up
    };
    const Token& operator[](std::size_t t) const { return tokens_[t]; }

private:
    std::vector<Token> tokens_;
    Packed packed_;
};

/// A page coded for token_bounds. Codes are the calling thread's until it codes another page.
struct UpperPage {
    explicit UpperPage(VectorsView page);

    std::size_t rows = 0;
    std::size_t dim = 0;
    std::uint8_t* codes = nullptr;  ///< [rows][words * 4]
    float scale = 0;
    double norm = 0;   ///< the largest of a row, rounded up
    double error = 0;  ///< the largest of a row's rounding, rounded up
    bool finite = true;
};

/// Tokens begin .. end.
struct TokenRange {
    std::size_t begin = 0;
    std::size_t end = 0;
};

/// out[k] >= what maxsim finds for the k-th of these tokens on the page; infinite where a number is not finite. A page
/// without vectors gives -infinity, as there.
void token_bounds(const UpperTokens& tokens, const UpperPage& page, std::span<const TokenRange> ranges,
                  std::span<float> out);

}  // namespace marginmerge
