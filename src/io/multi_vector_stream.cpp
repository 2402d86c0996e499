#include "io/multi_vector_stream.h"

#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "io/safetensors.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

// Room for the header: tensors take about 500 bytes, the rest is for metadata.
constexpr std::uint64_t data_begin = 16384;

}  // namespace

MultiVectorStream::MultiVectorStream(const std::filesystem::path& path, std::size_t dim, ScalarType type)
    : path_(path), dim_(dim), type_(type), file_(path) {}

void MultiVectorStream::append(VectorsView rows, std::span<const float> boxes) {
    if (rows.dim != dim_ || rows.type != type_ || (!boxes.empty() && boxes.size() != 4 * rows.rows))
        fail(ErrorCode::internal, "{}: rows do not fit the stream", path_.string());
    file_.write_at(data_begin + rows_ * rows.row_bytes(), {static_cast<const std::byte*>(rows.data), rows.bytes()});
    if (!boxes.empty()) {
        if (boxes_.empty()) boxes_begin_ = rows_;
        boxes_.resize(4 * (rows_ - boxes_begin_));  // rows without boxes in between
        boxes_.insert(boxes_.end(), boxes.begin(), boxes.end());
    }
    rows_ += rows.rows;
}

void MultiVectorStream::end_document(const std::string& id, PatchGrid grid) {
    if (documents() > 0) ids_ += '\n';
    ids_ += id;
    offsets_.push_back(static_cast<std::int64_t>(rows_));
    grid_.insert(grid_.end(), {grid.columns, grid.rows});
    any_grid_ = any_grid_ || grid.known();
}

std::vector<float> MultiVectorStream::boxes() const {
    if (boxes_.empty()) return {};
    std::vector<float> all(4 * boxes_begin_);
    all.insert(all.end(), boxes_.begin(), boxes_.end());
    all.resize(4 * rows_);
    return all;
}

std::uint64_t MultiVectorStream::commit(std::map<std::string, std::string> metadata) {
    metadata["schema"] = multi_vector_schema;
    metadata["version"] = schema_version;
    metadata["writer"] = std::string("marginmerge ") + version();
    // The tensors behind the vectors must be aligned to 8 bytes and the format allows no gaps.
    const bool aligned = rows_ * dim_ * scalar_size(type_) % 8 == 0;
    return aligned ? commit_in_place(metadata) : commit_reordered(metadata);
}

std::uint64_t MultiVectorStream::commit_in_place(const std::map<std::string, std::string>& metadata) {
    const std::uint64_t n = documents();
    nlohmann::ordered_json header;
    header["__metadata__"] = metadata;
    std::uint64_t end = 0;
    const auto place = [&](const char* name, DType type, std::vector<std::uint64_t> shape,
                           std::span<const std::byte> data) {
        std::uint64_t size = dtype_size(type);
        for (const auto extent : shape) size *= extent;
        if (!data.empty()) file_.write_at(data_begin + end, data);
        header[name] = {{"dtype", dtype_name(type)}, {"shape", shape}, {"data_offsets", {end, end + size}}};
        end += size;
    };
    const std::vector<float> all_boxes = boxes();
    place("vectors", to_dtype(type_), {rows_, dim_}, {});
    place("offsets", DType::i64, {n + 1}, std::as_bytes(std::span(offsets_)));
    if (any_grid_) place("grid", DType::i32, {n, 2}, std::as_bytes(std::span(grid_)));
    if (!all_boxes.empty()) place("boxes", DType::f32, {rows_, 4}, std::as_bytes(std::span(all_boxes)));
    place("ids", DType::u8, {ids_.size()}, std::as_bytes(std::span(ids_)));
    std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    if (text.size() > data_begin - 8) fail(ErrorCode::internal, "{}: metadata do not fit the header", path_.string());
    text.resize(data_begin - 8, ' ');
    const std::uint64_t length = text.size();
    file_.write_at(0, std::as_bytes(std::span(&length, 1)));
    file_.write_at(8, std::as_bytes(std::span(text)));
    file_.commit();
    return data_begin + end;
}

std::uint64_t MultiVectorStream::commit_reordered(const std::map<std::string, std::string>& metadata) {
    const std::uint64_t n = documents();
    const std::vector<float> all_boxes = boxes();
    SafetensorsWriter writer(path_, metadata);
    writer.declare("vectors", to_dtype(type_), {rows_, dim_});
    writer.declare("offsets", DType::i64, {n + 1});
    if (any_grid_) writer.declare("grid", DType::i32, {n, 2});
    if (!all_boxes.empty()) writer.declare("boxes", DType::f32, {rows_, 4});
    writer.declare("ids", DType::u8, {ids_.size()});
    const std::uint64_t total = rows_ * dim_ * scalar_size(type_);
    std::vector<std::byte> block;
    for (std::uint64_t done = 0; done < total; done += block.size()) {
        block.resize(std::min<std::uint64_t>(8U << 20, total - done));
        file_.read_at(data_begin + done, block);
        writer.write("vectors", done, std::span<const std::byte>(block));
    }
    writer.write("offsets", 0, std::span<const std::int64_t>(offsets_));
    if (any_grid_) writer.write("grid", 0, std::span<const std::int32_t>(grid_));
    if (!all_boxes.empty()) writer.write("boxes", 0, std::span<const float>(all_boxes));
    writer.write("ids", 0, std::as_bytes(std::span(ids_)));
    writer.commit();
    return std::filesystem::file_size(path_);
}

}  // namespace marginmerge
