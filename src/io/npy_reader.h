#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/array_reader.h"

namespace marginmerge {

/// What stands in front of the data of a .npy file.
struct NpyHeader {
    ArrayInfo array;             ///< numeric arrays; type is u8 for text arrays
    std::size_t text_width = 0;  ///< bytes of one string in a text array, 0 for numbers
    bool wide_text = false;      ///< UCS-4 ('<U') rather than bytes ('S')
    std::size_t data_begin = 0;  ///< bytes before the data
};

inline constexpr std::string_view npy_magic{"\x93NUMPY", 6};

/// Bytes that a header may need at most; enough to hand to parse_npy_header as a prefix.
inline constexpr std::size_t max_npy_header = 65536;

/// Parses versions 1 to 3, little endian, C order; other byte orders, Fortran order, objects and
/// records are refused with what to do about it. `prefix` is the start of the file.
NpyHeader parse_npy_header(std::span<const std::byte> prefix, const std::string& source);

/// A small 1-D or 2-D integer array (offsets, lengths, grids) from a whole .npy file in memory.
std::vector<std::int64_t> npy_integers(std::span<const std::byte> file, const std::string& source, ArrayInfo& info);

/// The strings of a 1-D text or integer array: numbers in decimal, trailing NULs dropped, UTF-8.
std::vector<std::string> npy_strings(std::span<const std::byte> file, const std::string& source);

}  // namespace marginmerge
