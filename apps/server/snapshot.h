#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/index/index.h"

namespace marginmerge::server {

/// One way to look at the same pages: as stored, with fewer vectors each, or before compression.
struct View {
    enum class Kind { stored, prefix, variant, full };
    Kind kind = Kind::stored;
    std::string name;  ///< what clients say: "index", "5%", "full", …
    double share = 1;  ///< vectors as a share of the original ones
    std::uint64_t vectors = 0;
    std::uint64_t vector_bytes = 0;
    std::shared_ptr<const Index> index;
    SearchOptions options;  ///< keep or full, for views of the main index
};

struct SnapshotSources {
    std::filesystem::path index;
    std::filesystem::path full;                   ///< pages before compression; may be empty
    std::filesystem::path queries;                ///< example queries; empty: those of the index
    std::vector<std::filesystem::path> variants;  ///< the same pages with other numbers of vectors
};

/// Everything a request looks at; it never changes, so a request keeps the one it began with.
struct Snapshot {
    std::shared_ptr<const Index> index;
    std::vector<View> views;  ///< by share, ascending; always holds "index"
    MultiVectorSet examples;
    std::vector<std::string> example_texts;  ///< one for each example, or empty
    std::uint64_t number = 0;                ///< counts reloads of this process

    /// "" is "index". Throws ApiError(404, "view_not_found").
    const View& view(const std::string& name) const;
};

/// Opens all sources; parts of `previous` that did not change are shared. Throws Error.
std::shared_ptr<const Snapshot> open_snapshot(const SnapshotSources& sources,
                                              const std::shared_ptr<const Snapshot>& previous);

}  // namespace marginmerge::server
