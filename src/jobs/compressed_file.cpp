#include "jobs/compressed_file.h"

#include <fmt/core.h>

#include "io/multi_vector_file.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

std::map<std::string, std::string> full_metadata(const CompressedLayout& layout) {
    auto metadata = layout.metadata;
    metadata.insert_or_assign("schema", std::string(multi_vector_schema));
    metadata.insert_or_assign("version", std::string(schema_version));
    metadata.insert_or_assign("writer", fmt::format("marginmerge {}", version()));
    return metadata;
}

}  // namespace

CompressedWriter::CompressedWriter(const std::filesystem::path& path, const CompressedLayout& layout)
    : layout_(layout), writer_(path, full_metadata(layout)) {
    const std::size_t n = layout.pages();
    writer_.declare("vectors", to_dtype(layout.type), {static_cast<std::uint64_t>(layout.offsets.back()), layout.dim});
    writer_.declare("offsets", DType::i64, {n + 1});
    writer_.declare("ids", DType::u8, {layout.ids.size()});
    if (!layout.grid.empty()) writer_.declare("grid", DType::i32, {n, 2});
    writer_.declare("source_offsets", DType::i64, {n + 1});
    writer_.declare("owner", DType::i32, {static_cast<std::uint64_t>(layout.source_offsets.back())});
    writer_.write("offsets", 0, std::span<const std::int64_t>(layout.offsets));
    writer_.write("ids", 0, std::as_bytes(std::span(layout.ids)));
    if (!layout.grid.empty()) writer_.write("grid", 0, std::span<const std::int32_t>(layout.grid));
    writer_.write("source_offsets", 0, std::span<const std::int64_t>(layout.source_offsets));
}

void CompressedWriter::write_pages(std::size_t first, std::span<const std::byte> vectors,
                                   std::span<const std::byte> owners) {
    const std::size_t row = layout_.dim * scalar_size(layout_.type);
    writer_.write("vectors", static_cast<std::uint64_t>(layout_.offsets[first]) * row, vectors);
    writer_.write("owner", static_cast<std::uint64_t>(layout_.source_offsets[first]) * sizeof(std::int32_t), owners);
}

}  // namespace marginmerge
