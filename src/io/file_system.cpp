#include "io/file_system.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

namespace marginmerge {

namespace {

FileSystem real_file_system;
std::atomic<FileSystem*> current{&real_file_system};

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace

int FileSystem::create_unnamed(const std::filesystem::path& directory, int& fd) {
#ifdef O_TMPFILE
    fd = ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
    if (fd < 0) return errno == ENOENT || errno == EACCES ? errno : ENOTSUP;
    // Without /proc the file could never get a name.
    if (::access(descriptor_path(fd).c_str(), F_OK) == 0) return 0;
    ::close(fd);
    fd = -1;
#else
    (void)directory;
    (void)fd;
#endif
    return ENOTSUP;
}

int FileSystem::create(const std::filesystem::path& path, int& fd) {
    fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return fd < 0 ? errno : 0;
}

int FileSystem::write_at(int fd, std::uint64_t position, std::span<const std::byte> bytes, std::size_t& written) {
    const ssize_t count = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(position));
    if (count < 0) return errno;
    written = static_cast<std::size_t>(count);
    return 0;
}

int FileSystem::sync(int fd) { return ::fsync(fd) != 0 ? errno : 0; }

int FileSystem::link(int fd, const std::filesystem::path& path) {
    const std::string from = descriptor_path(fd);
    return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) != 0 ? errno : 0;
}

int FileSystem::rename(const std::filesystem::path& from, const std::filesystem::path& to) {
    return ::rename(from.c_str(), to.c_str()) != 0 ? errno : 0;
}

int FileSystem::sync_directory(const std::filesystem::path& directory) {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    const int error = ::fsync(fd) != 0 ? errno : 0;
    ::close(fd);
    return error;
}

int FileSystem::remove(const std::filesystem::path& path) { return ::unlink(path.c_str()) != 0 ? errno : 0; }

FileSystem& file_system() { return *current.load(); }

FileSystem* exchange_file_system(FileSystem* replacement) {
    return current.exchange(replacement == nullptr ? &real_file_system : replacement);
}

}  // namespace marginmerge
