#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace marginmerge {

/// 16 hex digits of a 64-bit hash (XXH3).
std::string hash_hex(std::span<const std::byte> bytes);
std::string hash_hex(std::string_view text);

/// Hash of a file's size and contents; of a large file only of its ends and of blocks spread evenly over
/// it, so that a corpus of any size takes milliseconds.
std::string file_fingerprint(const std::filesystem::path& path);

/// Size and time of last change, for telling whether a file was touched between two runs.
std::string file_stamp(const std::filesystem::path& path);

}  // namespace marginmerge
