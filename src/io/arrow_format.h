#pragma once

// Numbers of Arrow's IPC format that its writer and its reader share.
#include <cstdint>
#include <string_view>

namespace marginmerge::arrow {

inline constexpr std::string_view file_magic = "ARROW1";
inline constexpr std::uint32_t continuation = 0xFFFFFFFFU;
inline constexpr int version_5 = 4;

enum class Header : std::int64_t { schema = 1, dictionary_batch = 2, record_batch = 3 };

enum class Type : std::int64_t {
    none = 0,
    null = 1,
    integer = 2,
    real = 3,
    binary = 4,
    utf8 = 5,
    boolean = 6,
    decimal = 7,
    date = 8,
    time = 9,
    timestamp = 10,
    interval = 11,
    list = 12,
    structure = 13,
    union_ = 14,
    fixed_binary = 15,
    fixed_list = 16,
    map = 17,
    duration = 18,
    large_binary = 19,
    large_utf8 = 20,
    large_list = 21,
};

// Places of fields in their tables.
namespace message {
inline constexpr int version = 0, header_type = 1, header = 2, body_length = 3;
}
namespace schema {
inline constexpr int endianness = 0, fields = 1;
}
namespace footer {
inline constexpr int schema = 1;
}
namespace field {
inline constexpr int name = 0, nullable = 1, type_type = 2, type = 3, dictionary = 4, children = 5;
}
namespace batch {
inline constexpr int length = 0, nodes = 1, buffers = 2, compression = 3;
}

}  // namespace marginmerge::arrow
