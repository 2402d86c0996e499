#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "io/byte_source.h"

namespace marginmerge {

/// Element types of the safetensors format.
enum class DType : std::uint8_t { boolean, u8, i8, u16, i16, f16, bf16, u32, i32, f32, u64, i64, f64 };

std::size_t dtype_size(DType type);
const char* dtype_name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

struct TensorInfo {
    std::string name;
    DType type = DType::f32;
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0;  ///< byte offset within the data section
    std::uint64_t end = 0;
    std::uint64_t elements() const {
        std::uint64_t n = 1;
        for (const auto s : shape) n *= s;
        return n;
    }
};

/// A memory-mapped safetensors file. Opening checks the header completely: length, JSON, types,
/// shapes against byte ranges (without overflow), ranges in order, without gaps or overlaps and
/// inside the file.
class SafetensorsFile {
public:
    explicit SafetensorsFile(const std::filesystem::path& path) : SafetensorsFile(map_bytes(path)) {}
    /// The same from any bytes, for example an HTTP body.
    explicit SafetensorsFile(ByteSource source);

    const std::string& path() const { return source_.name; }
    const std::vector<TensorInfo>& tensors() const { return tensors_; }  ///< in file order
    const TensorInfo* find(std::string_view name) const;
    std::span<const std::byte> bytes(const TensorInfo& tensor) const;
    const std::map<std::string, std::string>& metadata() const { return metadata_; }
    std::shared_ptr<const void> keep_alive() const { return source_.storage; }
    const ByteSource& source() const { return source_; }

    /// A tensor that must exist with this type and number of dimensions; errors name the file.
    const TensorInfo& require(std::string_view name, DType type, std::size_t dimensions) const;
    /// The elements of such a tensor. T must be as wide as the type; data is suitably aligned
    /// (a misaligned tensor is an error that says so).
    template <class T>
    std::span<const T> require_span(std::string_view name, DType type, std::size_t dimensions) const {
        const TensorInfo& info = require(name, type, dimensions);
        check_alignment(info, alignof(T));
        return {reinterpret_cast<const T*>(bytes(info).data()), static_cast<std::size_t>(info.elements())};
    }

private:
    void check_alignment(const TensorInfo& info, std::size_t alignment) const;

    ByteSource source_;
    std::uint64_t data_begin_ = 0;
    std::vector<TensorInfo> tensors_;
    std::map<std::string, std::string> metadata_;
};

/// Parses a header from memory: what SafetensorsFile does, without the file. `data_size` is the
/// size of the data section. Exposed for the fuzzer and for HTTP bodies.
void parse_safetensors_header(std::string_view json, std::uint64_t data_size, const std::string& source,
                              std::vector<TensorInfo>& tensors, std::map<std::string, std::string>& metadata);

/// Writes a safetensors file whose shapes are known beforehand; data may come in any order and
/// from several threads. Each tensor starts at a multiple of 64 bytes from the start of the file:
/// the header is padded with spaces, and tensors whose size is not a multiple of 64 go last.
class SafetensorsWriter {
public:
    SafetensorsWriter(const std::filesystem::path& path, std::map<std::string, std::string> metadata);
    /// Declares a tensor; all declarations come before the first write.
    void declare(std::string name, DType type, std::vector<std::uint64_t> shape);
    /// Writes bytes at a byte offset within the named tensor.
    void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);
    template <class T>
    void write(std::string_view name, std::uint64_t first_element, std::span<const T> values) {
        write(name, first_element * sizeof(T), std::as_bytes(values));
    }
    /// Syncs and renames into place.
    void commit();

private:
    void write_header();

    AtomicFile file_;
    std::map<std::string, std::string> metadata_;
    std::vector<TensorInfo> tensors_;
    std::uint64_t data_begin_ = 0;  ///< 0 until the header is written
};

}  // namespace marginmerge
