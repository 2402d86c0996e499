#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Writes NumPy arrays (format 1.0, little endian, C order), atomically.
void write_npy(const std::filesystem::path& path, ConstMatrix values);
void write_npy(const std::filesystem::path& path, std::span<const float> values);
void write_npy(const std::filesystem::path& path, std::span<const std::int32_t> values);

}  // namespace marginmerge
