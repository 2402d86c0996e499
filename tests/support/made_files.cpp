#include "support/made_files.h"

#include <zip.h>

#include <fstream>
#include <iterator>
#include <span>
#include <stdexcept>

namespace marginmerge::test {

std::vector<float> ramp(std::size_t count) {
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i + 1) / 8.0f;
    return values;
}

std::string npy_bytes(const std::string& descr, const std::string& shape, const std::string& data, bool fortran_order) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': " + (fortran_order ? "True" : "False") +
                         ", 'shape': (" + shape + "), }";
    header.resize((header.size() + 11 + 63) / 64 * 64 - 11, ' ');
    header += '\n';
    return std::string("\x93NUMPY\x01\x00", 8) + raw<std::uint16_t>({static_cast<std::uint16_t>(header.size())}) +
           header + data;
}

std::string safetensors_bytes(const std::string& header, const std::string& data) {
    return raw<std::uint64_t>({header.size()}) + header + data;
}

std::string zip_bytes(const std::vector<ZipItem>& items) {
    zip_source_t* buffer = zip_source_buffer_create(nullptr, 0, 0, nullptr);
    zip_t* archive = zip_open_from_source(buffer, ZIP_TRUNCATE, nullptr);
    if (archive == nullptr) throw std::runtime_error("cannot make a zip archive");
    zip_source_keep(buffer);
    for (const auto& item : items) {
        zip_source_t* data = zip_source_buffer(archive, item.data.data(), item.data.size(), 0);
        const zip_int64_t index = zip_file_add(archive, item.name.c_str(), data, ZIP_FL_ENC_UTF_8);
        if (index < 0) {  // a name the archive cannot hold
            zip_source_free(data);
            continue;
        }
        zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                                 item.deflate ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9);
    }
    if (zip_close(archive) != 0) throw std::runtime_error("cannot write a zip archive");
    std::string bytes;
    char chunk[4096];
    zip_source_open(buffer);
    for (zip_int64_t n = 0; (n = zip_source_read(buffer, chunk, sizeof chunk)) > 0;)
        bytes.append(chunk, static_cast<std::size_t>(n));
    zip_source_close(buffer);
    zip_source_free(buffer);
    return bytes;
}

std::string torch_bytes(const std::string& pickle, const std::vector<std::string>& storages) {
    std::vector<ZipItem> items{{"archive/data.pkl", pickle}};
    for (std::size_t i = 0; i < storages.size(); ++i)
        items.push_back({"archive/data/" + std::to_string(i), storages[i]});
    return zip_bytes(items);
}

void write_file(const std::filesystem::path& path, const std::string& bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!out) throw std::runtime_error("cannot write " + path.string());
}

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

ByteSource as_source(const std::string& bytes, const std::string& name) {
    return borrow_bytes(std::as_bytes(std::span(bytes)), name);
}

}  // namespace marginmerge::test
