#include "io/npy.h"

#include <fmt/core.h>

#include <string>

#include "io/atomic_file.h"

namespace marginmerge {

namespace {

void write(const std::filesystem::path& path, const char* type, const std::string& shape,
           std::span<const std::byte> data) {
    std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, shape);
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    const auto length = static_cast<std::uint16_t>(header.size());
    AtomicFile file(path);
    file.append(std::string_view("\x93NUMPY\x01\x00", 8));
    file.append(std::as_bytes(std::span(&length, 1)));
    file.append(header);
    file.append(data);
    file.commit();
}

}  // namespace

void write_npy(const std::filesystem::path& path, ConstMatrix values) {
    write(path, "<f4", fmt::format("{}, {}", values.rows, values.cols), std::as_bytes(values.flat()));
}
void write_npy(const std::filesystem::path& path, std::span<const float> values) {
    write(path, "<f4", fmt::format("{},", values.size()), std::as_bytes(values));
}
void write_npy(const std::filesystem::path& path, std::span<const std::int32_t> values) {
    write(path, "<i4", fmt::format("{},", values.size()), std::as_bytes(values));
}

}  // namespace marginmerge
