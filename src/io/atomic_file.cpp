#include "io/atomic_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/fail.h"

namespace marginmerge {

namespace {

std::atomic<unsigned> counter{0};

void sync_directory(const std::filesystem::path& file) {
    const auto directory = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;  // some file systems refuse; the rename itself has already happened
    ::fsync(fd);
    ::close(fd);
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& final_path) : final_path_(final_path) {
    temporary_path_ = final_path_;
    temporary_path_ += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    fd_ = ::open(temporary_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) fail(ErrorCode::io, "{}: cannot create: {}", temporary_path_.string(), std::strerror(errno));
}

AtomicFile::~AtomicFile() {
    if (fd_ < 0) return;
    ::close(fd_);
    ::unlink(temporary_path_.c_str());
}

void AtomicFile::append(std::span<const std::byte> bytes) {
    write_at(end_, bytes);
    end_ += bytes.size();
}

void AtomicFile::write_at(std::uint64_t position, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(position));
        if (written < 0) {
            if (errno == EINTR) continue;
            fail(ErrorCode::io, "{}: cannot write: {}", final_path_.string(), std::strerror(errno));
        }
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        position += static_cast<std::uint64_t>(written);
    }
}

void AtomicFile::commit() {
    if (::fsync(fd_) != 0) fail(ErrorCode::io, "{}: cannot sync: {}", final_path_.string(), std::strerror(errno));
    ::close(fd_);
    fd_ = -1;
    if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0) {
        const int error = errno;
        ::unlink(temporary_path_.c_str());
        fail(ErrorCode::io, "{}: cannot rename into place: {}", final_path_.string(), std::strerror(error));
    }
    sync_directory(final_path_);
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
    AtomicFile file(path);
    file.append(text);
    file.commit();
}

}  // namespace marginmerge
