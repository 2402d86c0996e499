#include "io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/fail.h"

namespace marginmerge {

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io, "{}: cannot open: {}", path.string(),
             std::strerror(errno));
    }
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        ::close(fd);
        fail(ErrorCode::io, "{}: expected a regular file", path.string());
    }
    const auto size = static_cast<std::size_t>(info.st_size);
    if (size == 0) {
        ::close(fd);
        return;
    }
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    const int map_error = errno;
    ::close(fd);
    if (data == MAP_FAILED) fail(ErrorCode::io, "{}: cannot map: {}", path.string(), std::strerror(map_error));
    mapping_ = std::shared_ptr<const void>(data, [size](const void* p) { ::munmap(const_cast<void*>(p), size); });
    bytes_ = {static_cast<const std::byte*>(data), size};
}

void MappedFile::release(std::size_t offset, std::size_t length) const {
    release_pages(bytes_.data() + offset, length);
}

void release_pages(const void* data, std::size_t length) {
    const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto at = reinterpret_cast<std::uintptr_t>(data);
    const auto begin = (at + page - 1) / page * page;
    const auto end = (at + length) / page * page;
    if (end > begin) ::madvise(static_cast<char*>(const_cast<void*>(data)) + (begin - at), end - begin, MADV_DONTNEED);
}

}  // namespace marginmerge
