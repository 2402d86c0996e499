#pragma once

#include <cstdint>

// The exchange structures of DLPack (version 0.x capsules named "dltensor"), laid out as its specification says. Only
// what a reader of CPU tensors needs is spelled out.
namespace marginmerge::python::dlpack {

inline constexpr std::int32_t cpu = 1;
inline constexpr std::int32_t cuda_host = 3;

enum class TypeCode : std::uint8_t { integer = 0, unsigned_integer = 1, real = 2, bfloat = 4 };

struct Device {
    std::int32_t type;
    std::int32_t id;
};

struct DataType {
    TypeCode code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct View {
    void* data;
    Device device;
    std::int32_t dimensions;
    DataType type;
    std::int64_t* shape;
    std::int64_t* strides;  ///< in elements; null: row-major
    std::uint64_t byte_offset;
};

struct Managed {
    View view;
    void* context;
    void (*deleter)(Managed*);
};

}  // namespace marginmerge::python::dlpack
