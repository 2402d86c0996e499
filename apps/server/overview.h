#pragma once

#include <atomic>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "snapshot.h"

namespace marginmerge::server {

/// What one page looks like from afar.
struct PageSummary {
    std::string id;
    std::size_t vectors = 0;
    std::size_t source_vectors = 0;
    double redundancy = 0;  ///< n / effective rank: patches for each independent direction
};

/// A metadata field that pages can be filtered by.
struct FieldSummary {
    std::string name;
    std::size_t pages = 0;  ///< of those looked at
    bool numeric = false;
    double minimum = 0;
    double maximum = 0;
    std::vector<std::pair<std::string, std::size_t>> values;  ///< text fields: most frequent first, at most 24
    bool more_values = false;
};

/// Statistics over a sample of evenly spaced pages, made in the background after a reload.
struct Overview {
    std::size_t sampled = 0;
    std::string basis;  ///< "full" or "stored": which vectors the redundancy was measured on
    std::vector<PageSummary> pages;
    std::vector<FieldSummary> fields;
};

/// Looks at no more than `max_pages` pages and takes about `seconds` at most; `cancelled` ends it early.
Overview make_overview(const Snapshot& snapshot, std::size_t max_pages, double seconds,
                       const std::atomic<bool>& cancelled);

/// n (tr G)^-2 |G|_F^2 with G = V^T V: the paper's n / effrank without a decomposition.
double redundancy(ConstMatrix vectors);

}  // namespace marginmerge::server
