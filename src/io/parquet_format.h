#pragma once

// Numbers of the Parquet format that its writer and its reader share.
#include <cstdint>
#include <string_view>

namespace marginmerge::parquet {

inline constexpr std::string_view magic = "PAR1";

enum class Type : std::int32_t { boolean, int32, int64, int96, real32, real64, bytes, fixed_bytes };
enum class Repetition : std::int32_t { required, optional, repeated };
enum class Codec : std::int32_t { none, snappy, gzip, lzo, brotli, lz4_hadoop, zstd, lz4 };
enum class PageType : std::int32_t { data, index, dictionary, data_v2 };
enum class Encoding : std::int32_t {
    plain = 0,
    plain_dictionary = 2,
    rle = 3,
    bit_packed = 4,
    delta_binary_packed = 5,
    delta_length_byte_array = 6,
    delta_byte_array = 7,
    rle_dictionary = 8,
    byte_stream_split = 9,
};
/// ConvertedType values we write.
inline constexpr std::int32_t converted_utf8 = 0;
inline constexpr std::int32_t converted_list = 3;

}  // namespace marginmerge::parquet
