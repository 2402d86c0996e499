#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "marginmerge/index/index.h"

namespace marginmerge {

inline constexpr const char* manifest_name = "manifest.json";
inline constexpr const char* manifest_schema = "marginmerge.index";
inline constexpr const char* manifest_version = "1";

/// A file of the index folder, as it was written.
struct FileEntry {
    std::string file;  ///< its name within the folder, without a path
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;  ///< xxHash64 of the whole file, seed 0
};

struct SegmentEntry {
    FileEntry pages;
    std::uint64_t count = 0;           ///< pages in the file, deleted ones included
    std::optional<FileEntry> deleted;  ///< `deleted` I64, ascending positions within the segment
    std::uint64_t deleted_count = 0;
    std::optional<FileEntry> full;
};

/// What an index folder consists of at one moment. docs/index-format.md describes the file.
struct Manifest {
    std::uint64_t generation = 0;
    std::size_t dim = 0;
    VectorCode code = VectorCode::f16;
    std::vector<SegmentEntry> segments;
    std::optional<FileEntry> queries;

    /// Every file it refers to.
    std::vector<FileEntry> files() const;
};

/// Throws Error(corrupt | unsupported); `source` names the file.
Manifest parse_manifest(std::string_view text, const std::string& source);
std::string manifest_text(const Manifest& manifest);

/// xxHash64 of bytes and of a whole file, seed 0.
std::uint64_t checksum_bytes(std::string_view bytes);
std::uint64_t checksum_file(const std::filesystem::path& path);
std::string checksum_text(std::uint64_t checksum);

}  // namespace marginmerge
