#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace marginmerge {

/// A whole file mapped read-only. Copies share the mapping.
class MappedFile {
public:
    /// Throws Error(not_found) or Error(io).
    explicit MappedFile(const std::filesystem::path& path);

    std::span<const std::byte> bytes() const { return bytes_; }
    const std::filesystem::path& path() const { return path_; }
    /// Keeps the mapping alive for views into it.
    std::shared_ptr<const void> keep_alive() const { return mapping_; }
    /// Tells the kernel that these bytes will not be needed again soon, so that a scan over a file
    /// larger than memory keeps a small resident set.
    void release(std::size_t offset, std::size_t length) const;

private:
    std::filesystem::path path_;
    std::shared_ptr<const void> mapping_;
    std::span<const std::byte> bytes_;
};

/// Drops the whole pages inside a memory-mapped range from this process (no effect on contents).
void release_pages(const void* data, std::size_t length);

}  // namespace marginmerge
