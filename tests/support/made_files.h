#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/byte_source.h"

namespace marginmerge::test {

/// The bytes of numbers.
template <class T>
std::string raw(const std::vector<T>& values) {
    std::string bytes(values.size() * sizeof(T), '\0');
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

/// count floats 1/8, 2/8, ... so that rows are neither zero nor unit.
std::vector<float> ramp(std::size_t count);

/// A .npy file: npy_bytes("<f4", "2, 16", data).
std::string npy_bytes(const std::string& descr, const std::string& shape, const std::string& data,
                      bool fortran_order = false);

/// A safetensors file with this header text, whatever it says.
std::string safetensors_bytes(const std::string& header, const std::string& data);

struct ZipItem {
    std::string name;
    std::string data;
    bool deflate = false;
};
std::string zip_bytes(const std::vector<ZipItem>& items);

/// A torch archive with this pickle and these storages ("0", "1", ...).
std::string torch_bytes(const std::string& pickle, const std::vector<std::string>& storages);

void write_file(const std::filesystem::path& path, const std::string& bytes);
std::string read_file(const std::filesystem::path& path);

/// Borrows the string, which must live on.
ByteSource as_source(const std::string& bytes, const std::string& name = "made");

}  // namespace marginmerge::test
