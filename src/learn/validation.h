#pragma once

#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// What counts as relevant for one validation query: columns of the score matrices, with grades.
struct RelevantSet {
    std::vector<std::size_t> columns;
    std::vector<int> grades;  ///< positive
};

/// How well compressed scores keep the ranking of the full ones.
struct ValidationFigures {
    double ndcg = 0;       ///< mean nDCG@5 of the compressed scores, gain 2^grade - 1
    double full_ndcg = 0;  ///< the same of the full scores
    double flips = 0;      ///< share of (relevant, other) pairs whose order differs from the full index
    double error = 0;      ///< RMS of the score error a query's documents do not share, over the RMS of their spread
    std::size_t queries = 0;

    /// The paper's rule for checkpoints: higher nDCG@5, then fewer flips.
    bool better_by_ndcg(const ValidationFigures& other) const {
        return ndcg != other.ndcg ? ndcg > other.ndcg : flips < other.flips;
    }
};

/// full, compressed [queries, documents]; relevant as many as queries (queries without any are
/// left out of nDCG and flips). Ties rank by column.
ValidationFigures validation_figures(ConstMatrix full, ConstMatrix compressed, std::span<const RelevantSet> relevant);

/// The mean over several datasets, weighted with their queries.
ValidationFigures average_figures(std::span<const ValidationFigures> figures);

/// The full index as judge: the `count` best columns of each row, all with grade 1.
std::vector<RelevantSet> top_as_relevant(ConstMatrix full, std::size_t count);

}  // namespace marginmerge
