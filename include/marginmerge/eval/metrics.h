#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace marginmerge {

/// What counts as relevant for one query: pages by position, with positive grades.
struct Relevance {
    std::vector<std::size_t> positions;  ///< ascending; those that exist in the corpus
    std::vector<int> grades;             ///< of `positions`
    /// Every positive grade of the query, also of judged pages that the corpus lacks: what a perfect
    /// ranking could have shown.
    std::vector<int> all_grades;
    bool empty() const { return all_grades.empty(); }
};

/// The best `count` positions by score, lower position on a tie. Not-a-number ranks last.
std::vector<std::size_t> rank_pages(std::span<const float> scores, std::size_t count);

/// nDCG@k with gain 2^grade - 1 and discount log2(rank + 1). 0 for a query without relevant pages.
double ndcg(std::span<const std::size_t> ranking, const Relevance& relevance, std::size_t k);

/// Share of the query's relevant pages among the first k.
double recall(std::span<const std::size_t> ranking, const Relevance& relevance, std::size_t k);

/// 1 / rank of the best relevant page in the whole ranking, 0 when there is none.
double reciprocal_rank(std::span<const float> scores, const Relevance& relevance);

/// Share of the first k of one ranking that the first k of the other hold too (k capped by the
/// length of the rankings).
double overlap(std::span<const std::size_t> a, std::span<const std::size_t> b, std::size_t k);

/// How the scores of a smaller index differ from those of the full one, over the pairs
/// (relevant p, other n) of one or more queries. Margin = score of p - score of n.
struct Fidelity {
    /// Upper edges of |full margin| / query tokens for `by_margin`; the last bin is open.
    static constexpr double margin_edges[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2};
    static constexpr std::size_t margin_bins = std::size(margin_edges) + 1;
    struct Bin {
        std::size_t pairs = 0;
        std::size_t flips = 0;
    };

    std::size_t pairs = 0;
    std::size_t flips = 0;      ///< one index ranks p above n and the other does not
    std::size_t reversals = 0;  ///< flips in which the full index had p above n
    double margin_error = 0;    ///< sum of |full margin - margin| over pairs
    double score_error = 0;     ///< sum of |full score - score| of n over pairs
    Bin by_margin[margin_bins];

    double flip_rate() const { return pairs > 0 ? static_cast<double>(flips) / static_cast<double>(pairs) : 0; }
    double reversal_rate() const { return pairs > 0 ? static_cast<double>(reversals) / static_cast<double>(pairs) : 0; }
    double mean_margin_error() const { return pairs > 0 ? margin_error / static_cast<double>(pairs) : 0; }
    double mean_score_error() const { return pairs > 0 ? score_error / static_cast<double>(pairs) : 0; }
    void add(const Fidelity& other);
};

/// One query's pairs. full, index: a score for every page of the corpus; pages with a score of -infinity
/// in either are compared in order only and left out of the error sums.
Fidelity fidelity(std::span<const float> full, std::span<const float> index, const Relevance& relevance,
                  std::size_t query_tokens);

}  // namespace marginmerge
