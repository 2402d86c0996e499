#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// A query with judgements, beside what answers it on some pages of the full index.
struct JudgedQuery {
    Matrix tokens;                       ///< [t,d]
    std::vector<std::uint16_t> answers;  ///< [pages*t,d] half precision: what answers each token, page by page
    std::vector<float> scores;           ///< [pages] of the full index
    std::vector<float> lengths;          ///< [pages] log(vectors / usual)
    std::vector<int> grades;             ///< [pages] 0 where it is not relevant
    std::size_t contested = 0;           ///< the first pages: relevant or ranked high; the others are drawn at random

    std::size_t pages() const { return scores.size(); }
    VectorsView answers_view() const {
        return {answers.data(), ScalarType::f16, pages() * tokens.rows(), tokens.cols()};
    }
};

struct AlignmentSettings {
    double temperature = 0.6;       ///< of the softmax over pages, x spread of scores
    double ridge = 0.03;            ///< on the change
    double length_freedom = 0.003;  ///< how much weaker it is on the power of the length
    double hold = 3;                ///< what moving the scores of pages drawn at random costs
    std::size_t steps = 10;         ///< few: stopping early is part of the restraint
    bool change = true;             ///< false: only the length counts
    std::size_t threads = 0;
};

/// Mean over the queries of the deviation of scores over pages drawn at random.
double score_spread(std::span<const JudgedQuery* const> queries);

/// The alignment under which judged pages rank higher: least mean cross-entropy between gains and
/// softmax(score / temperature) over the contested pages, while the others' scores move little. The vectors that answer
/// are held fixed, so scores are linear in what is learned and the objective is convex. `usual_length` is left at 1.
Alignment learn_alignment(std::span<const JudgedQuery* const> queries, const AlignmentSettings& settings);

/// The same, this share of it.
Alignment share_of(const Alignment& alignment, double share);

/// What an alignment does to the ranking of one query.
struct AlignmentEffect {
    double loss = 0;        ///< cross-entropy
    double ndcg = 0;        ///< at 5, of the contested pages
    std::size_t flips = 0;  ///< pairs (relevant, drawn at random) in another order than on the full index
    std::size_t pairs = 0;
};

/// For each query one effect for each share of the alignment. `temperature` is absolute.
std::vector<std::vector<AlignmentEffect>> judge_alignment(std::span<const JudgedQuery* const> queries,
                                                          const Alignment& alignment, std::span<const double> shares,
                                                          double temperature, std::size_t threads);

}  // namespace marginmerge
