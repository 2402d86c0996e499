#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "index/manifest.h"
#include "index/segment.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

/// A segment with its tombstones applied. Live pages have positions first .. first+count-1.
struct Part {
    std::shared_ptr<const Segment> segment;
    std::vector<std::uint32_t> live;  ///< ascending pages of the segment that are live; empty when all are
    std::size_t first = 0;
    std::size_t count = 0;

    std::size_t local(std::size_t position) const {
        const std::size_t i = position - first;
        return live.empty() ? i : live[i];
    }
    /// The position of a page of the segment, nothing when it was deleted.
    std::optional<std::size_t> position(std::size_t local) const;
};

/// Where a page is.
struct PageRef {
    const Part* part = nullptr;
    std::size_t local = 0;
    const Segment& segment() const { return *part->segment; }
};

struct Index::State {
    std::filesystem::path path;
    bool folder = false;
    Manifest manifest;                         ///< of a folder
    std::filesystem::file_time_type modified;  ///< of a single file
    std::uint64_t file_size = 0;
    std::vector<std::shared_ptr<const Segment>> segments;  ///< as in the manifest
    std::vector<Part> parts;                               ///< those with live pages
    std::size_t size = 0;
    std::size_t dim = 0;
    VectorCode code = VectorCode::f16;
    MultiVectorSet queries;

    PageRef at(std::size_t position) const;
    void append(std::shared_ptr<const Segment> segment, std::vector<std::uint32_t> live);
};

/// The manifest of a folder, read whole.
Manifest read_manifest(const std::filesystem::path& folder);
/// Ascending deleted positions of a segment of `count` pages.
std::vector<std::int64_t> read_deleted(const std::filesystem::path& path, std::uint64_t count);

}  // namespace marginmerge
