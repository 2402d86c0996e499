#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "marginmerge/jobs/evaluate.h"

namespace marginmerge {

inline constexpr std::size_t no_page = std::numeric_limits<std::size_t>::max();

/// One query judged on one index.
struct IndexOutcome {
    Quality quality;
    Fidelity fidelity;
    double overlap_1 = 0, overlap_5 = 0, overlap_top = 0;
    std::size_t first_full = no_page, first_index = no_page;  ///< positions of the best pages
};

/// One query judged on every index: what a process sends to the one that reports.
struct QueryOutcome {
    std::uint64_t judged = 0;  ///< 0: nothing is relevant to it
    Quality full;
    std::vector<IndexOutcome> indexes;
    std::vector<std::vector<float>> scores;  ///< of every index, then of the full one; only for runs
};

std::vector<std::byte> pack(const QueryOutcome& outcome);

/// The inverse. `indexes`: how many were judged; `pages`: scores in each list, 0 when there are no lists.
QueryOutcome unpack(std::span<const std::byte> bytes, std::size_t indexes, std::size_t pages);

}  // namespace marginmerge
