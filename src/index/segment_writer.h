#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/manifest.h"
#include "index/segment.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// A page on its way into a new segment.
struct PageSource {
    const Segment* segment = nullptr;
    std::size_t page = 0;
    std::string_view metadata;  ///< a JSON object or ""
};

/// Writes pages, in this order, as one segment file in the given code and returns its entry.
FileEntry write_segment(const std::filesystem::path& path, std::span<const PageSource> pages, std::size_t dim,
                        VectorCode code, const Progress& progress);

/// Writes the pages' full vectors, in this order.
FileEntry write_full(const std::filesystem::path& path, const MultiVectorSet& set,
                     std::span<const std::size_t> positions);

/// Writes tombstones: ascending positions.
FileEntry write_deleted(const std::filesystem::path& path, std::span<const std::int64_t> positions);

/// Size and checksum of a file that was just written.
FileEntry file_entry(const std::filesystem::path& path);

}  // namespace marginmerge
