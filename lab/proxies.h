#pragma once

#include <array>
#include <vector>

#include "lab/dataset.h"

namespace marginmerge::lab {

/// What might tell in advance how well a page can be pruned, for each test query (mean over its relevant pages).
struct Proxies {
    static constexpr std::array names = {"patches", "effective_rank", "redundancy", "query_tokens"};
    static constexpr std::array labels = {"#patch", "Eff. rank", "Redund.", "#q-tok"};
    std::array<std::vector<double>, 4>
        values;  ///< patch count, effective rank, nearest-neighbour redundancy, query length
};
Proxies page_proxies(const Dataset& data, std::size_t threads);

}  // namespace marginmerge::lab
