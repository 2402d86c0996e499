#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace marginmerge {

enum class Compression : std::uint8_t { none, snappy, gzip, zstd, lz4_block, lz4_frame };

/// No page or buffer may claim to unpack to more.
inline constexpr std::uint64_t max_unpacked_bytes = 1ULL << 29;

/// Unpacks hostile bytes that claim to become `size` bytes; Error(corrupt) when they do not, or claim too much.
/// `source` and `what` name them in messages.
void decompress(Compression kind, std::span<const std::byte> packed, std::uint64_t size, std::vector<std::byte>& out,
                const std::string& source, const char* what);

}  // namespace marginmerge
