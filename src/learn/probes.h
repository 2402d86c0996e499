#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

struct ProbeOptions {
    std::size_t tokens = 2500;        ///< most distinct query tokens
    std::size_t mapped = 7500;        ///< corpus vectors made to look like query tokens
    double mapped_share = 0.8;        ///< of the weight
    std::size_t sample = 8000;        ///< corpus vectors from which the corpus' distribution is estimated
    double same = 0.9999;             ///< cosine above which two query tokens count as one
    std::size_t least_answers = 512;  ///< pairs of token and answer, or the transport map is used instead
    std::uint64_t seed = 42;
    std::size_t threads = 0;
};

/// What is known of the queries.
struct QueryTokens {
    Matrix tokens;    ///< [n,d] all tokens of the queries that may be used
    Matrix answered;  ///< [pairs,d] tokens again, each beside ...
    Matrix answers;   ///< [pairs,d] ... the vector that answers it in a page ranked high for its query
};

/// The probes a page is fitted to: query tokens (near-duplicates joined, a sample when there are too many)
/// and vectors of the corpus made to look like query tokens (learn/token_model.h). Few queries leave most
/// directions unseen; the vectors carried over fill them. Without queries the probes are small neighbourhoods of a
/// page's own vectors, averaged. Order is mixed, so that a prefix is itself a fair set. `positions` are the
/// documents that may be looked at.
ProbeSet make_probes(const QueryTokens& queries, const MultiVectorSet& documents,
                     std::span<const std::size_t> positions, const ProbeOptions& options);

}  // namespace marginmerge
