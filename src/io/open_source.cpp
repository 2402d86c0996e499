#include <cstring>

#include "core/fail.h"
#include "io/cache_folder.h"
#include "io/npy_reader.h"
#include "io/vector_source.h"

namespace marginmerge {

namespace {

bool starts_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

// A binary length and then a JSON object. JSON text that happens to have a brace there has only
// printable characters and blanks in front of it.
bool looks_like_safetensors(std::string_view text) {
    if (text.size() < 9 || text[8] != '{') return false;
    for (const char c : text.substr(0, 8)) {
        const auto u = static_cast<unsigned char>(c);
        if (u >= 0x7F || (u < 0x20 && c != '\t' && c != '\n' && c != '\r')) return true;
    }
    return false;
}

std::string first_bytes(std::string_view text) {
    std::string hex;
    for (const char c : text.substr(0, 8))
        hex += fmt::format("{}{:02x}", hex.empty() ? "" : " ", static_cast<unsigned char>(c));
    return hex;
}

std::vector<std::int64_t> read_boundaries(const std::filesystem::path& path) {
    const ByteSource bytes = map_bytes(path);
    ArrayInfo info;
    auto values = npy_integers(bytes.bytes, bytes.name, info);
    if (info.shape.size() != 1 || values.empty())
        fail(ErrorCode::corrupt, "{}: offsets: expected 1 dimension and an entry or more, found {}", bytes.name,
             describe(info.type, info.shape));
    return values;
}

// Offsets beside a .npy: NAME.offsets.npy, NAME_offsets.npy, or offsets.npy in the same folder.
std::filesystem::path offsets_beside(const std::filesystem::path& file) {
    const std::string stem = file.stem().string();
    for (const std::string& name : {stem + ".offsets.npy", stem + "_offsets.npy", std::string("offsets.npy")}) {
        auto path = file.parent_path() / name;
        if (path != file && std::filesystem::is_regular_file(path)) return path;
    }
    return {};
}

}  // namespace

std::unique_ptr<VectorSource> open_source(ByteSource bytes, const std::string& stem,
                                          const std::vector<std::int64_t>& boundaries) {
    const std::string_view text = bytes.text();
    if (text.empty()) fail(ErrorCode::corrupt, "{}: expected vectors, found an empty file", bytes.name);
    if (starts_with(text, npy_magic)) return open_npy_source(std::move(bytes), stem, boundaries);
    if (starts_with(text, "PK\x03\x04") || starts_with(text, "PK\x05\x06"))
        return open_zip_source(std::move(bytes), stem, boundaries);
    if (starts_with(text, "PAR1")) return open_parquet_source(std::move(bytes));
    if (looks_like_arrow(text)) return open_arrow_source(std::move(bytes));
    if (looks_like_safetensors(text)) return open_safetensors_source(std::move(bytes), stem);
    const auto content = text.substr(starts_with(text, "\xEF\xBB\xBF") ? 3 : 0);
    const auto first = content.find_first_not_of(" \t\r\n");
    if (first != std::string_view::npos && content[first] == '{') return open_json_lines_source(std::move(bytes));
    if (starts_with(text, "\x80\x02") || starts_with(text, "\x80\x03") || starts_with(text, "\x80\x04") ||
        starts_with(text, "\x80\x05"))
        fail(ErrorCode::unsupported,
             "{}: expected a torch zip file, found a bare pickle (an old torch.save?); save it again with a current "
             "torch",
             bytes.name);
    if (starts_with(text, "\x1F\x8B"))
        fail(ErrorCode::unsupported, "{}: expected unpacked data, found gzip; unpack it first", bytes.name);
    fail(ErrorCode::unsupported,
         "{}: expected safetensors, .npy, .npz, a torch .pt zip, Parquet, Arrow or JSON lines, found a file that "
         "starts with {}",
         bytes.name, first_bytes(text));
}

std::unique_ptr<VectorSource> open_source(const std::filesystem::path& path, const SourceOptions& options) {
    if (std::filesystem::is_directory(path)) {
        if (!is_cache_folder(path))
            fail(ErrorCode::unsupported,
                 "{}: expected a file, or a cache folder with ps.pt or qs.pt, found another folder", path.string());
        return open_cache_folder(path, options);
    }
    ByteSource bytes = map_bytes(path);
    std::vector<std::int64_t> boundaries;
    if (!options.offsets.empty()) {
        boundaries = read_boundaries(options.offsets);
    } else if (starts_with(bytes.text(), npy_magic) &&
               parse_npy_header(bytes.bytes, bytes.name).array.shape.size() == 2) {
        if (const auto beside = offsets_beside(path); !beside.empty()) boundaries = read_boundaries(beside);
    }
    return open_source(std::move(bytes), path.stem().string(), boundaries);
}

}  // namespace marginmerge
