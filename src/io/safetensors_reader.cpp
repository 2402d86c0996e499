#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/safetensors.h"

namespace marginmerge {

namespace {

using nlohmann::json;

struct DTypeRow {
    DType type;
    const char* name;
    std::size_t size;
};
constexpr DTypeRow dtypes[] = {{DType::boolean, "BOOL", 1}, {DType::u8, "U8", 1},   {DType::i8, "I8", 1},
                               {DType::u16, "U16", 2},      {DType::i16, "I16", 2}, {DType::f16, "F16", 2},
                               {DType::bf16, "BF16", 2},    {DType::u32, "U32", 4}, {DType::i32, "I32", 4},
                               {DType::f32, "F32", 4},      {DType::u64, "U64", 8}, {DType::i64, "I64", 8},
                               {DType::f64, "F64", 8}};

// The limit of the format's own library; a larger header is a mistake or an attack.
constexpr std::uint64_t max_header = 100'000'000;

std::uint64_t unsigned_field(const json& value, const std::string& source, const std::string& field) {
    if (!value.is_number_unsigned())
        fail(ErrorCode::corrupt, "{}: {}: expected a non-negative integer, found {}", source, field, value.dump());
    return value.get<std::uint64_t>();
}

TensorInfo parse_tensor(const std::string& name, const json& entry, std::uint64_t data_size,
                        const std::string& source) {
    const std::string field = "tensor '" + name + "'";
    if (!entry.is_object() || !entry.contains("dtype") || !entry.contains("shape") || !entry.contains("data_offsets"))
        fail(ErrorCode::corrupt, "{}: {}: expected dtype, shape and data_offsets", source, field);
    TensorInfo info;
    info.name = name;
    const json& dtype = entry["dtype"];
    const auto type = dtype.is_string() ? dtype_from_name(dtype.get<std::string>()) : std::nullopt;
    if (!type)
        fail(ErrorCode::unsupported, "{}: {}: dtype: expected a known type, found {}", source, field, dtype.dump());
    info.type = *type;
    const json& shape = entry["shape"];
    const json& range = entry["data_offsets"];
    if (!shape.is_array() || !range.is_array() || range.size() != 2)
        fail(ErrorCode::corrupt, "{}: {}: expected an array as shape and two data_offsets", source, field);
    std::uint64_t expected = dtype_size(info.type);
    for (const json& s : shape) {
        const std::uint64_t extent = unsigned_field(s, source, field + " shape");
        if (__builtin_mul_overflow(expected, extent, &expected))
            fail(ErrorCode::corrupt, "{}: {}: shape overflows", source, field);
        info.shape.push_back(extent);
    }
    info.begin = unsigned_field(range[0], source, field + " data_offsets");
    info.end = unsigned_field(range[1], source, field + " data_offsets");
    if (info.begin > info.end || info.end > data_size)
        fail(ErrorCode::corrupt, "{}: {}: data_offsets: expected a range within {} bytes, found {} to {}", source,
             field, data_size, info.begin, info.end);
    if (info.end - info.begin != expected)
        fail(ErrorCode::corrupt, "{}: {}: expected {} bytes for its shape, found {}", source, field, expected,
             info.end - info.begin);
    return info;
}

}  // namespace

std::size_t dtype_size(DType type) { return dtypes[static_cast<std::size_t>(type)].size; }
const char* dtype_name(DType type) { return dtypes[static_cast<std::size_t>(type)].name; }
std::optional<DType> dtype_from_name(std::string_view name) {
    for (const auto& row : dtypes)
        if (name == row.name) return row.type;
    return std::nullopt;
}

void parse_safetensors_header(std::string_view text, std::uint64_t data_size, const std::string& source,
                              std::vector<TensorInfo>& tensors, std::map<std::string, std::string>& metadata) {
    const json header = json::parse(text, nullptr, false);
    if (!header.is_object()) fail(ErrorCode::corrupt, "{}: header: expected a JSON object", source);
    for (const auto& [name, entry] : header.items()) {
        if (name != "__metadata__") {
            tensors.push_back(parse_tensor(name, entry, data_size, source));
            continue;
        }
        if (!entry.is_object()) fail(ErrorCode::corrupt, "{}: __metadata__: expected an object", source);
        for (const auto& [key, value] : entry.items())
            metadata[key] = value.is_string() ? value.get<std::string>() : value.dump();
    }
    std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
    });
    std::uint64_t end = 0;
    for (const auto& t : tensors) {
        if (t.begin != end)
            fail(ErrorCode::corrupt, "{}: tensor '{}': expected to start at byte {} of the data, found {}", source,
                 t.name, end, t.begin);
        end = t.end;
    }
    if (end != data_size)
        fail(ErrorCode::corrupt, "{}: expected {} bytes of data, found {} (truncated or trailing bytes)", source, end,
             data_size);
}

SafetensorsFile::SafetensorsFile(ByteSource source) : source_(std::move(source)) {
    const auto all = source_.bytes;
    if (all.size() < 8) fail(ErrorCode::corrupt, "{}: expected at least 8 bytes, found {}", path(), all.size());
    std::uint64_t length = 0;
    std::memcpy(&length, all.data(), 8);
    if (length > max_header || length > all.size() - 8)
        fail(ErrorCode::corrupt, "{}: header length: expected at most {}, found {}", path(),
             std::min<std::uint64_t>(max_header, all.size() - 8), length);
    data_begin_ = 8 + length;
    const std::string_view text(reinterpret_cast<const char*>(all.data()) + 8, length);
    parse_safetensors_header(text, all.size() - data_begin_, path(), tensors_, metadata_);
}

const TensorInfo* SafetensorsFile::find(std::string_view name) const {
    for (const auto& t : tensors_)
        if (t.name == name) return &t;
    return nullptr;
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& t) const {
    return source_.bytes.subspan(data_begin_ + t.begin, t.end - t.begin);
}

const TensorInfo& SafetensorsFile::require(std::string_view name, DType type, std::size_t dimensions) const {
    const TensorInfo* info = find(name);
    if (info == nullptr) fail(ErrorCode::corrupt, "{}: expected a tensor '{}', found none", path(), name);
    if (info->type != type)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected {}, found {}", path(), name, dtype_name(type),
             dtype_name(info->type));
    if (info->shape.size() != dimensions)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected {} dimensions, found {}", path(), name, dimensions,
             info->shape.size());
    return *info;
}

void SafetensorsFile::check_alignment(const TensorInfo& info, std::size_t alignment) const {
    if (reinterpret_cast<std::uintptr_t>(bytes(info).data()) % alignment != 0)
        fail(ErrorCode::unsupported, "{}: tensor '{}': expected data aligned to {} bytes, found offset {}", path(),
             info.name, alignment, data_begin_ + info.begin);
}

}  // namespace marginmerge
