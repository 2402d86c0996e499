#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/byte_source.h"
#include "io/safetensors.h"

namespace marginmerge {

/// Bytes that are read front to back, in place when they lie in memory, through a buffer when they
/// come out of a compressed archive.
class ByteStream {
public:
    virtual ~ByteStream() = default;
    /// The next `count` bytes; valid until the next call. Fewer left is an error.
    virtual std::span<const std::byte> take(std::size_t count) = 0;
    /// Leaves `count` bytes out.
    virtual void skip(std::uint64_t count) = 0;
};

/// Over a part of a source; gives the pages it has passed back to the system.
std::unique_ptr<ByteStream> memory_reader(ByteSource source, std::size_t begin, std::size_t end);

/// Type and shape of a numeric array, and how to get at its elements.
struct ArrayInfo {
    DType type = DType::f32;
    std::vector<std::uint64_t> shape;
    std::uint64_t elements() const {
        std::uint64_t n = 1;
        for (const auto s : shape) n *= s;
        return n;
    }
    std::uint64_t bytes() const { return elements() * dtype_size(type); }
};

/// dtype_size * product of the shape; an error when it overflows or exceeds `available`.
std::uint64_t checked_bytes(DType type, std::span<const std::uint64_t> shape, std::uint64_t available,
                            const std::string& source, const std::string& field);

/// True for F16, BF16, F32 and F64: what vectors may be stored as in a source.
bool is_float(DType type);
bool is_integer(DType type);

/// "F16 [12, 128]"
std::string describe(DType type, std::span<const std::uint64_t> shape);

/// Any integer array as int64; values past its range are an error that names the field.
std::vector<std::int64_t> to_integers(DType type, std::span<const std::byte> bytes, const std::string& source,
                                      const std::string& field);

}  // namespace marginmerge
