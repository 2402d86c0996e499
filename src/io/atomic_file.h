#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace marginmerge {

/// A file that appears whole or not at all: written beside its final name, synced and renamed by
/// commit(). Destroyed without commit, it leaves nothing behind.
class AtomicFile {
public:
    explicit AtomicFile(const std::filesystem::path& final_path);
    ~AtomicFile();
    AtomicFile(const AtomicFile&) = delete;
    AtomicFile& operator=(const AtomicFile&) = delete;

    /// Appends at the end of what append() wrote so far.
    void append(std::span<const std::byte> bytes);
    void append(std::string_view text) { append(std::as_bytes(std::span(text))); }
    /// Writes at an absolute position; safe from several threads for disjoint ranges.
    void write_at(std::uint64_t position, std::span<const std::byte> bytes);
    void commit();

private:
    std::filesystem::path final_path_;
    std::filesystem::path temporary_path_;
    int fd_ = -1;
    std::uint64_t end_ = 0;
};

/// The whole text as a file, atomically.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace marginmerge
