#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace marginmerge {

/// The calls to the operating system by which files come into being. One real implementation;
/// tests put a failing one in its place (exchange_file_system) to prove that nothing half-written
/// stays behind. Every call returns 0 or a positive errno value; none throws.
class FileSystem {
public:
    virtual ~FileSystem() = default;

    /// Opens a file without a name in `directory`, which vanishes with its descriptor even when the
    /// process is killed. ENOTSUP where the file system has no such thing.
    virtual int create_unnamed(const std::filesystem::path& directory, int& fd);
    /// Creates a new file; it must not exist.
    virtual int create(const std::filesystem::path& path, int& fd);
    virtual int write_at(int fd, std::uint64_t position, std::span<const std::byte> bytes, std::size_t& written);
    virtual int sync(int fd);
    /// Gives an unnamed file a name.
    virtual int link(int fd, const std::filesystem::path& path);
    virtual int rename(const std::filesystem::path& from, const std::filesystem::path& to);
    virtual int sync_directory(const std::filesystem::path& directory);
    virtual int remove(const std::filesystem::path& path);
};

/// The one in use.
FileSystem& file_system();

/// Replaces it and returns the one before; a null pointer brings back the real one. For tests: not
/// while other threads write files.
FileSystem* exchange_file_system(FileSystem* replacement);

}  // namespace marginmerge
