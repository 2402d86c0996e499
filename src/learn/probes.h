#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

struct ProbeOptions {
    std::size_t tokens = 2500;  ///< most distinct query tokens
    std::size_t mapped = 1500;  ///< corpus vectors made to look like query tokens
    double mapped_share = 0.5;  ///< of the weight
    std::size_t sample = 8000;  ///< corpus vectors from which the corpus' distribution is estimated
    double same = 0.9999;       ///< cosine above which two query tokens count as one
    std::uint64_t seed = 42;
};

/// The probes a page is fitted to: query tokens (rows of `queries`; near-duplicates joined, a sample when
/// there are too many) and vectors of the corpus moved to where query tokens lie, by the optimal transport map
/// between two Gaussians,
///     u = unit(m_q + A (v - m_d)),  A = C_d^-1/2 (C_d^1/2 C_q C_d^1/2)^1/2 C_d^-1/2.
/// Few queries leave most directions unseen; the mapped vectors fill them. Without queries the probes are
/// small neighbourhoods of a page's own vectors, averaged. Order is mixed, so that a prefix
/// is itself a fair set. `positions` are the documents that may be looked at.
ProbeSet make_probes(ConstMatrix queries, const MultiVectorSet& documents, std::span<const std::size_t> positions,
                     const ProbeOptions& options);

}  // namespace marginmerge
