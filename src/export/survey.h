#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "export/target.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

/// What must be known of an index before the first byte goes out.
struct IndexSurvey {
    std::uint64_t vectors = 0;
    std::size_t most_vectors = 0;
    float shortest = 0;  ///< norms of the vectors
    float longest = 0;
    std::uint64_t not_unit = 0;  ///< vectors whose norm is not 1 within half precision
};

/// Looks at every page and refuses what the target cannot take, naming the first such page.
IndexSurvey survey_index(const Index& index, const ExportTarget& target, std::size_t threads, const Progress& progress);

/// Scales rows to unit norm; zero rows stay.
void scale_to_unit(Matrix& rows);

/// What unit norms change, measured on queries.
struct NormCost {
    std::size_t queries = 0;
    std::size_t first_changed = 0;  ///< queries with another best page
    std::size_t list_changed = 0;   ///< queries whose ten best are not the same pages in the same order
    double overlap = 1;             ///< mean share of the ten best that stay among the ten best
};

/// The ten best pages of every query by the vectors as they are exported, decoded and scaled when asked. Streams
/// over the pages.
std::vector<std::vector<Hit>> exact_search(const Index& index, const MultiVectorSet& queries, bool unit_norm,
                                           std::size_t threads);
NormCost compare_rankings(const std::vector<std::vector<Hit>>& before, const std::vector<std::vector<Hit>>& after);

/// Hands pages [first, index.size()) to `sink` in order, decoded, scaled when asked, and encoded in parallel by
/// `encode`; holds a bounded block of them. `sink` returns false to stop.
void stream_pages(const Index& index, std::size_t first, bool unit_norm, std::size_t threads,
                  const std::function<std::string(const ExportPage&)>& encode,
                  const std::function<bool(const ExportPage&, std::string)>& sink);

}  // namespace marginmerge
