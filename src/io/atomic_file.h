#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace marginmerge {

/// A file that appears whole or not at all: written without a name in the folder of its final one
/// (beside it as NAME.tmp-PID-N where the file system cannot do that), synced, and renamed into
/// place by commit(). Destroyed without commit it leaves nothing behind; a killed process leaves
/// nothing either, or at worst a .tmp- file that no reader takes for the real one.
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
    /// Reads back what was written; all of `bytes` must have been.
    void read_at(std::uint64_t position, std::span<std::byte> bytes) const;
    void commit();

private:
    std::filesystem::path final_path_;
    std::filesystem::path temporary_path_;
    int fd_ = -1;
    bool named_ = false;  ///< temporary_path_ exists
    std::uint64_t end_ = 0;
};

/// The whole text as a file, atomically.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace marginmerge
