#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/eval/metrics.h"

namespace marginmerge {

/// Where a document of that id stands in the corpus, if it is there.
using FindDocument = std::function<std::optional<std::size_t>(const std::string& id)>;

/// One query's judgements by position.
Relevance relevance_from(const std::map<std::string, int>& grades, const FindDocument& find);

/// Without judgements the full index is the judge: its best `top` pages, all with grade 1.
Relevance best_as_relevant(std::span<const float> full_scores, std::size_t top);

/// How scores compare with those of the full index, query by query.
struct JudgedScores {
    std::vector<double> ndcg;       ///< of the scores, at k
    std::vector<double> pairs;      ///< (relevant, other) pairs
    std::vector<double> flips;      ///< pairs in another order than in the full index
    std::vector<double> reversals;  ///< flips in which the full index had the relevant page above
    std::vector<double> loss;       ///< mean of 1 - score / full score over the query's relevant pages
    Fidelity total;
};

/// full, scores [queries, pages]; relevance and tokens (vectors of each query) as many as queries.
JudgedScores judge_scores(ConstMatrix full, ConstMatrix scores, std::span<const Relevance> relevance,
                          std::span<const std::size_t> tokens, std::size_t k = 5);

}  // namespace marginmerge
