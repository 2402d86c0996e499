#include "io/multi_vector_file.h"

#include <algorithm>
#include <string_view>

#include "core/fail.h"
#include "kernels/convert.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

// Wider than any encoder; what a lying header could claim beyond it is not worth trying.
constexpr std::uint64_t max_columns = 65536;

std::vector<std::string> split_ids(std::span<const std::uint8_t> bytes, std::size_t n, const std::string& source) {
    std::vector<std::string> ids;
    if (n == 0) return ids;
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
    // Count first: a lying file must not make us allocate more strings than documents.
    const auto count = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
    if (count != n) fail(ErrorCode::corrupt, "{}: ids: expected {} lines, found {}", source, n, count);
    ids.reserve(n);
    while (ids.size() < n) {
        const auto end = std::min(text.find('\n'), text.size());
        ids.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return ids;
}

ScalarType vector_type(const TensorInfo& t, const std::string& source) {
    switch (t.type) {
        case DType::f32: return ScalarType::f32;
        case DType::f16: return ScalarType::f16;
        case DType::bf16: return ScalarType::bf16;
        default:
            fail(ErrorCode::unsupported, "{}: tensor 'vectors': expected F32, F16 or BF16, found {}", source,
                 dtype_name(t.type));
    }
}

template <class T>
std::span<const T> columns_of(const SafetensorsFile& file, const char* name, DType type, std::uint64_t columns) {
    const auto span = file.require_span<T>(name, type, 2);
    const std::uint64_t found = file.find(name)->shape[1];
    if (found != columns)
        fail(ErrorCode::corrupt, "{}: tensor '{}': expected {} columns, found {}", file.path(), name, columns, found);
    return span;
}

void check_schema(const SafetensorsFile& file) {
    const auto schema = file.metadata().find("schema");
    if (schema != file.metadata().end() && schema->second != multi_vector_schema)
        fail(ErrorCode::unsupported, "{}: schema: expected {}, found {}", file.path(), multi_vector_schema,
             schema->second);
    const auto version = file.metadata().find("version");
    if (version != file.metadata().end() && version->second != schema_version)
        fail(ErrorCode::unsupported, "{}: version: expected {}, found {}", file.path(), schema_version,
             version->second);
}

}  // namespace

DType to_dtype(ScalarType type) {
    return type == ScalarType::f32 ? DType::f32 : type == ScalarType::f16 ? DType::f16 : DType::bf16;
}

MultiVectorParts read_multi_vector_layout(const SafetensorsFile& file) {
    MultiVectorParts p;
    p.offsets = file.require_span<std::int64_t>("offsets", DType::i64, 1);
    if (p.offsets.empty())
        fail(ErrorCode::corrupt, "{}: offsets: expected at least one entry, found none", file.path());
    if (file.find("ids") != nullptr)
        p.ids = split_ids(file.require_span<std::uint8_t>("ids", DType::u8, 1), p.offsets.size() - 1, file.path());
    if (file.find("grid") != nullptr) p.grid = columns_of<std::int32_t>(file, "grid", DType::i32, 2);
    if (file.find("boxes") != nullptr) p.boxes = columns_of<float>(file, "boxes", DType::f32, 4);
    if (file.find("source_offsets") != nullptr || file.find("owner") != nullptr) {
        p.source_offsets = file.require_span<std::int64_t>("source_offsets", DType::i64, 1);
        p.owner = file.require_span<std::int32_t>("owner", DType::i32, 1);
    }
    p.metadata = file.metadata();
    p.storage = file.keep_alive();
    return p;
}

MultiVectorSet read_multi_vectors(const std::filesystem::path& path) {
    return read_multi_vectors(SafetensorsFile(path));
}

MultiVectorSet read_multi_vectors(const SafetensorsFile& file) {
    check_schema(file);
    const TensorInfo* vectors = file.find("vectors");
    if (vectors == nullptr) fail(ErrorCode::corrupt, "{}: expected a tensor 'vectors', found none", file.path());
    const ScalarType type = vector_type(*vectors, file.path());
    file.require("vectors", vectors->type, 2);

    if (vectors->shape[1] == 0 || vectors->shape[1] > max_columns)
        fail(ErrorCode::corrupt, "{}: tensor 'vectors': expected 1 to {} columns, found {}", file.path(), max_columns,
             vectors->shape[1]);

    MultiVectorParts p = read_multi_vector_layout(file);
    p.vectors = {file.bytes(*vectors).data(), type, vectors->shape[0], vectors->shape[1]};
    if (reinterpret_cast<std::uintptr_t>(p.vectors.data) % scalar_size(type) != 0)
        fail(ErrorCode::unsupported, "{}: tensor 'vectors': expected aligned data", file.path());
    return MultiVectorSet(std::move(p), file.path());
}

void write_multi_vectors(const std::filesystem::path& path, const MultiVectorSet& set, ScalarType type,
                         const std::map<std::string, std::string>& extra_metadata) {
    auto metadata = set.metadata();
    metadata["schema"] = multi_vector_schema;
    metadata["version"] = schema_version;
    metadata["writer"] = std::string("marginmerge ") + version();
    for (const auto& [key, value] : extra_metadata) metadata[key] = value;
    SafetensorsWriter writer(path, metadata);
    const std::size_t n = set.size();
    std::string ids;
    for (std::size_t i = 0; i < n; ++i) ids += (i > 0 ? "\n" : "") + set.id(i);
    std::vector<std::int32_t> grid, owner;
    std::vector<std::int64_t> source_offsets{0};
    std::vector<float> boxes;
    for (std::size_t i = 0; i < n; ++i) {
        if (set.has_grid()) grid.insert(grid.end(), {set.grid(i).columns, set.grid(i).rows});
        boxes.insert(boxes.end(), set.boxes(i).begin(), set.boxes(i).end());
        owner.insert(owner.end(), set.owner(i).begin(), set.owner(i).end());
        source_offsets.push_back(static_cast<std::int64_t>(owner.size()));
    }

    writer.declare("vectors", to_dtype(type), {set.total_vectors(), set.dim()});
    writer.declare("offsets", DType::i64, {n + 1});
    writer.declare("ids", DType::u8, {ids.size()});
    if (set.has_grid()) writer.declare("grid", DType::i32, {n, 2});
    if (set.has_boxes()) writer.declare("boxes", DType::f32, {set.total_vectors(), 4});
    if (set.has_owner()) {
        writer.declare("source_offsets", DType::i64, {n + 1});
        writer.declare("owner", DType::i32, {owner.size()});
    }
    std::vector<float> values;
    std::vector<std::byte> packed;
    for (std::size_t i = 0; i < n; ++i) {
        const VectorsView v = set.vectors(i);
        const auto position = static_cast<std::uint64_t>(set.offsets()[i]) * set.dim() * scalar_size(type);
        if (v.type == type) {
            writer.write("vectors", position, std::span(static_cast<const std::byte*>(v.data), v.bytes()));
            continue;
        }
        values.resize(v.rows * v.dim);
        packed.resize(values.size() * scalar_size(type));
        to_float(v, values.data());
        from_float(values, type, packed.data());
        writer.write("vectors", position, std::span<const std::byte>(packed));
    }
    writer.write("offsets", 0, set.offsets());
    writer.write("ids", 0, std::as_bytes(std::span(ids)));
    if (set.has_grid()) writer.write("grid", 0, std::span<const std::int32_t>(grid));
    if (set.has_boxes()) writer.write("boxes", 0, std::span<const float>(boxes));
    if (set.has_owner()) {
        writer.write("source_offsets", 0, std::span<const std::int64_t>(source_offsets));
        writer.write("owner", 0, std::span<const std::int32_t>(owner));
    }
    writer.commit();
}

}  // namespace marginmerge
