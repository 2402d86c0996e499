#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/maxsim.h"
#include "marginmerge/core/cluster.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// Exact MaxSim of every query against the documents at these positions: out [queries, positions].
/// A document is converted once and scored against all queries while it is in cache.
Matrix score_documents(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                       std::span<const PreparedQuery* const> queries, std::size_t threads, Cluster* cluster = nullptr);

/// A document and its score; better first, the lower position on a tie.
struct ScoredDocument {
    std::size_t document = 0;
    float score = 0;
    bool operator<(const ScoredDocument& other) const {
        return score != other.score ? score > other.score : document < other.document;
    }
};

/// What the full index says about one query.
struct MinedQuery {
    std::vector<ScoredDocument> top;     ///< the best non-relevant documents, best first
    std::vector<float> positive_scores;  ///< of the query's positives, in their order
};

/// A scan that can be put down and taken up again: everything before `next` is in `queries`.
struct MiningState {
    std::size_t next = 0;  ///< first position not scanned yet
    std::vector<MinedQuery> queries;
};

struct MiningOptions {
    std::size_t negatives = 8;   ///< how many of the best non-relevant documents are kept a query
    std::size_t threads = 0;     ///< 0: all cores
    Cluster* cluster = nullptr;  ///< processes that each scan a part; `state` and `save` are then those of the part
    std::size_t chunk = 512;     ///< documents between two chances to save
    Progress progress;           ///< phase "mine", unit "documents"
    /// Called after each chunk but the last; may store the state for a later resume.
    std::function<void(const MiningState&)> save;
};

/// Scans the documents at `positions` (ascending) for the best ones of each query that are not in
/// its `positives` (document positions), under exact full MaxSim. Bounds (mining_bounds.h) say which documents
/// cannot be among them; those are not scored. Memory is query tokens x (negatives + chunk), whatever the corpus.
/// Starts from `state` when it belongs to an interrupted scan.
std::vector<MinedQuery> mine_hard_negatives(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                                            std::span<const PreparedQuery* const> queries,
                                            std::span<const std::vector<std::size_t>> positives,
                                            const MiningOptions& options, MiningState state = {});

}  // namespace marginmerge
