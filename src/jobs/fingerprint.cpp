#include "jobs/fingerprint.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include "core/fail.h"
#include "io/mapped_file.h"

namespace marginmerge {

std::string hash_hex(std::span<const std::byte> bytes) {
    return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string hash_hex(std::string_view text) { return hash_hex(std::as_bytes(std::span(text))); }

std::string file_fingerprint(const std::filesystem::path& path) {
    constexpr std::size_t whole = 4u << 20;
    constexpr std::size_t end = 256u << 10;
    constexpr std::size_t block = 4096;
    constexpr std::size_t blocks = 256;
    const MappedFile file(path);
    const auto bytes = file.bytes();
    if (bytes.size() <= whole) return hash_hex(bytes);
    std::string parts = fmt::format("{} {} {}", bytes.size(), hash_hex(bytes.first(end)), hash_hex(bytes.last(end)));
    for (std::size_t b = 1; b < blocks; ++b) parts += hash_hex(bytes.subspan(bytes.size() / blocks * b, block));
    return hash_hex(parts);
}

std::string file_stamp(const std::filesystem::path& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0)
        fail(ErrorCode::not_found, "{}: cannot open: {}", path.string(), std::strerror(errno));
    return fmt::format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace marginmerge
