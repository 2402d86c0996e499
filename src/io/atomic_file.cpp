#include "io/atomic_file.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>

#include "core/fail.h"
#include "io/file_system.h"
#include "io/folders.h"

namespace marginmerge {

namespace {

std::atomic<unsigned> counter{0};

[[noreturn]] void refuse(const std::filesystem::path& path, const char* what, int error) {
    fail(ErrorCode::io, "{}: cannot {}: {}", path.string(), what, std::strerror(error));
}

}  // namespace

AtomicFile::AtomicFile(const std::filesystem::path& final_path) : final_path_(final_path) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(final_path_, ignored)) {  // the link stays, its target is replaced
        const auto target = std::filesystem::weakly_canonical(final_path_, ignored);
        if (!ignored) final_path_ = target;
    }
    // A rename onto a folder fails, but only after all the work; onto a device or a pipe it succeeds, and that is
    // worse.
    const auto status = std::filesystem::status(final_path_, ignored);
    if (std::filesystem::is_directory(status)) refuse(final_path_, "write", EISDIR);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        fail(ErrorCode::invalid_argument, "{}: expected a regular file or a new name, found a device or a pipe",
             final_path.string());
    if (final_path_ == "-") fail(ErrorCode::invalid_argument, "-: expected the name of a file, found a dash");
    temporary_path_ = final_path_;
    temporary_path_ += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    int error = file_system().create_unnamed(folder_of(final_path_), fd_);
    if (error == ENOTSUP) {
        error = file_system().create(temporary_path_, fd_);
        named_ = error == 0;
    }
    if (error != 0) refuse(final_path_, "create", error);
}

AtomicFile::~AtomicFile() {
    if (fd_ >= 0) ::close(fd_);
    if (named_) file_system().remove(temporary_path_);
}

void AtomicFile::append(std::span<const std::byte> bytes) {
    write_at(end_, bytes);
    end_ += bytes.size();
}

void AtomicFile::write_at(std::uint64_t position, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        std::size_t written = 0;
        const int error = file_system().write_at(fd_, position, bytes, written);
        if (error == EINTR) continue;
        if (error != 0) refuse(final_path_, "write", error);
        bytes = bytes.subspan(written);
        position += written;
    }
}

void AtomicFile::read_at(std::uint64_t position, std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
        const ssize_t count = ::pread(fd_, bytes.data(), bytes.size(), static_cast<off_t>(position));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) refuse(final_path_, "read back", count < 0 ? errno : EIO);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
        position += static_cast<std::uint64_t>(count);
    }
}

void AtomicFile::commit() {
    FileSystem& system = file_system();
    if (const int error = system.sync(fd_); error != 0) refuse(final_path_, "sync", error);
    if (!named_) {
        if (const int error = system.link(fd_, temporary_path_); error != 0) refuse(final_path_, "name", error);
        named_ = true;
    }
    ::close(fd_);
    fd_ = -1;
    if (const int error = system.rename(temporary_path_, final_path_); error != 0)
        refuse(final_path_, "rename into place", error);
    named_ = false;
    // Some file systems refuse to sync a folder; the file itself is already whole and in place.
    system.sync_directory(folder_of(final_path_));
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
    AtomicFile file(path);
    file.append(text);
    file.commit();
}

}  // namespace marginmerge
