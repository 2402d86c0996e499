#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// A query with judgements, beside what answers it on some pages of the full index.
struct JudgedQuery {
    Matrix tokens;                       ///< [t,d]
    std::vector<std::uint16_t> answers;  ///< [pages*t,d] half precision: what answers each token, page by page
    std::vector<float> scores;           ///< [pages] of the full index
    std::vector<float> lengths;          ///< [pages] log(vectors / usual)
    std::vector<int> grades;             ///< [pages] 0 where it is not relevant
    std::vector<std::int64_t> keys;      ///< [pages] what a page is known by, see Memory
    std::size_t contested = 0;           ///< the first pages: relevant or ranked high; the others are drawn at random

    std::size_t pages() const { return scores.size(); }
    VectorsView answers_view() const {
        return {answers.data(), ScalarType::f16, pages() * tokens.rows(), tokens.cols()};
    }
};

/// Which token of its query each answer belongs to.
std::vector<std::int32_t> token_of_answers(const JudgedQuery& query);

/// Mean over the queries of the deviation of scores over pages drawn at random.
double score_spread(std::span<const JudgedQuery* const> queries);

/// Cross-entropy between gains and softmax(score / temperature) over the contested pages; its derivative by their
/// scores is added to `slope` unless that is empty.
double listwise(const JudgedQuery& query, std::span<const double> scores, double temperature, std::span<double> slope);

/// What other scores do to the ranking of one query.
struct RankingEffect {
    double loss = 0;        ///< cross-entropy
    double ndcg = 0;        ///< at 5, of the contested pages
    std::size_t flips = 0;  ///< pairs (relevant, drawn at random) in another order than on the full index
    std::size_t pairs = 0;
};

RankingEffect ranking_effect(const JudgedQuery& query, std::span<const double> scores, double temperature);

}  // namespace marginmerge
