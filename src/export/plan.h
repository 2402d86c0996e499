#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

/// What is exported, as the targets see it.
struct ExportPlan {
    std::string name = "pages";  ///< of the table, collection or class: [a-z][a-z0-9_]*
    std::size_t pages = 0;
    std::size_t dim = 0;
    std::uint64_t vectors = 0;
    std::size_t most_vectors = 0;  ///< of a page
    float shortest = 0;            ///< norm of the shortest and of the longest vector, as exported
    float longest = 0;
    bool ann = false;                    ///< the engine's approximate index, where it is a choice
    bool unit_norm = false;              ///< every vector was scaled to unit norm
    std::size_t batch_bytes = 8U << 20;  ///< of a request, and of a file of requests
    std::string uploaded_to;             ///< server the data went to; empty: they are in files
    std::string query_id;                ///< of the example
    std::string query_from;              ///< where it came from, for the README
    Matrix query;                        ///< [tokens, dim]
    std::vector<Hit> expected;           ///< our own answer to it

    /// Norms are 1 within half precision, so cosine ranks as the inner product does.
    bool unit() const;
};

/// Norms that count as 1: encoders normalise in half precision.
inline constexpr float unit_tolerance = 1e-2F;

inline bool ExportPlan::unit() const { return longest - 1 <= unit_tolerance && 1 - shortest <= unit_tolerance; }

/// One page on its way out.
struct ExportPage {
    std::size_t position = 0;
    std::string id;
    std::string_view metadata;  ///< JSON object, "" when the page has none
    Matrix vectors;             ///< [n, dim]
};

}  // namespace marginmerge
