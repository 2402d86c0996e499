#include "index/segment_writer.h"

#include <cmath>
#include <cstring>

#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "io/safetensors.h"
#include "kernels/convert.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

struct Layout {
    std::string ids, metadata;
    std::vector<std::int64_t> offsets{0}, source_offsets{0};
    std::vector<std::int32_t> grid, owner;
    std::vector<float> boxes;
    bool has_grid = false, has_owner = false, has_boxes = false, has_metadata = false;
};

// Pages of different origin may come together: what one kind lacks is filled in, so that an owner
// map names each vector of an uncompressed page as its own representative.
Layout collect(std::span<const PageSource> pages) {
    Layout l;
    for (const PageSource& p : pages) {
        l.has_grid = l.has_grid || p.segment->layout().has_grid();
        l.has_owner = l.has_owner || p.segment->layout().has_owner();
        l.has_boxes = l.has_boxes || p.segment->layout().has_boxes();
        l.has_metadata = l.has_metadata || !p.metadata.empty();
    }
    for (const PageSource& p : pages) {
        const MultiVectorSet& set = p.segment->layout();
        const std::size_t n = set.vectors_of(p.page);
        if (l.offsets.size() > 1) l.ids += '\n';
        l.ids += set.id(p.page);
        l.metadata += p.metadata;
        l.metadata += '\n';
        l.offsets.push_back(l.offsets.back() + static_cast<std::int64_t>(n));
        const PatchGrid grid = set.grid(p.page);
        l.grid.insert(l.grid.end(), {grid.columns, grid.rows});
        if (l.has_boxes) {
            const auto boxes = set.boxes(p.page);
            l.boxes.insert(l.boxes.end(), boxes.begin(), boxes.end());
            l.boxes.resize(static_cast<std::size_t>(l.offsets.back()) * 4);
        }
        if (!l.has_owner) continue;
        if (set.has_owner()) {
            const auto owner = set.owner(p.page);
            l.owner.insert(l.owner.end(), owner.begin(), owner.end());
        } else {
            for (std::size_t j = 0; j < n; ++j) l.owner.push_back(static_cast<std::int32_t>(j));
        }
        l.source_offsets.push_back(static_cast<std::int64_t>(l.owner.size()));
    }
    return l;
}

void check_finite(ConstMatrix values, const PageSource& p) {
    for (std::size_t r = 0; r < values.rows; ++r)
        for (const float x : values.row_span(r))
            if (!std::isfinite(x))
                fail(ErrorCode::corrupt, "page '{}': vector {}: expected finite numbers, found {}",
                     p.segment->layout().id(p.page), r, x);
}

void check_half(ConstMatrix values, const PageSource& p) {
    for (const float x : values.flat())
        if (std::fabs(x) > 65504.0f)
            fail(ErrorCode::unsupported, "page '{}': {} is too large for f16; use --code f32",
                 p.segment->layout().id(p.page), x);
}

std::size_t code_row_bytes(VectorCode code, std::size_t dim) {
    switch (code) {
        case VectorCode::f32: return 4 * dim;
        case VectorCode::int8: return dim;
        case VectorCode::bits: return bit_row_bytes(dim);
        default: return 2 * dim;
    }
}

// The bytes of one page's vectors in the code, and their scales where the code has them.
void encode_page(const PageSource& p, VectorCode code, std::vector<std::byte>& bytes, std::vector<float>& scales) {
    const Segment& s = *p.segment;
    const std::size_t rows = s.layout().vectors_of(p.page);
    const auto first = static_cast<std::size_t>(s.layout().offsets()[p.page]);
    bytes.resize(rows * code_row_bytes(code, s.dim()));
    scales.resize(rows);
    if (rows == 0) return;
    if (s.code() == code && !s.plain()) {
        const bool int8 = code == VectorCode::int8;
        const void* codes = int8 ? static_cast<const void*>(s.int8_codes().middle_rows(first, rows).codes)
                                 : s.bit_codes().middle_rows(first, rows).codes;
        const float* stored = (int8 ? s.int8_codes().scales : s.bit_codes().scales) + first;
        std::memcpy(bytes.data(), codes, bytes.size());
        std::copy_n(stored, rows, scales.begin());
        return;
    }
    const Matrix values = s.decoded(p.page);
    check_finite(values, p);
    switch (code) {
        case VectorCode::int8:
            encode_int8(ConstMatrix(values), reinterpret_cast<std::int8_t*>(bytes.data()), scales.data());
            break;
        case VectorCode::bits:
            encode_bits(ConstMatrix(values), reinterpret_cast<std::uint8_t*>(bytes.data()), scales.data());
            break;
        case VectorCode::f16: check_half(values, p); [[fallthrough]];
        default:
            from_float(values.flat(),
                       code == VectorCode::f32   ? ScalarType::f32
                       : code == VectorCode::f16 ? ScalarType::f16
                                                 : ScalarType::bf16,
                       bytes.data());
    }
}

void write_layout(SafetensorsWriter& writer, const Layout& l) {
    writer.write("offsets", 0, std::span<const std::int64_t>(l.offsets));
    writer.write("ids", 0, std::as_bytes(std::span(l.ids)));
    if (l.has_grid) writer.write("grid", 0, std::span<const std::int32_t>(l.grid));
    if (l.has_boxes) writer.write("boxes", 0, std::span<const float>(l.boxes));
    if (l.has_owner) {
        writer.write("source_offsets", 0, std::span<const std::int64_t>(l.source_offsets));
        writer.write("owner", 0, std::span<const std::int32_t>(l.owner));
    }
    if (l.has_metadata) writer.write("page_metadata", 0, std::as_bytes(std::span(l.metadata)));
}

}  // namespace

FileEntry file_entry(const std::filesystem::path& path) {
    return {path.filename().string(), std::filesystem::file_size(path), checksum_file(path)};
}

FileEntry write_segment(const std::filesystem::path& path, std::span<const PageSource> pages, std::size_t dim,
                        VectorCode code, const Progress& progress) {
    const Layout l = collect(pages);
    const std::size_t n = pages.size();
    const auto total = static_cast<std::uint64_t>(l.offsets.back());
    const bool coded = code == VectorCode::int8 || code == VectorCode::bits;
    const char* name = code == VectorCode::int8 ? "codes" : code == VectorCode::bits ? "bits" : "vectors";
    const DType type = code == VectorCode::int8   ? DType::i8
                       : code == VectorCode::bits ? DType::u8
                       : code == VectorCode::f32  ? DType::f32
                       : code == VectorCode::f16  ? DType::f16
                                                  : DType::bf16;
    SafetensorsWriter writer(path, {{"schema", coded ? coded_schema : multi_vector_schema},
                                    {"version", schema_version},
                                    {"writer", std::string("marginmerge ") + version()},
                                    {"dim", std::to_string(dim)}});
    writer.declare(name, type, {total, code == VectorCode::bits ? bit_row_bytes(dim) : dim});
    if (coded) writer.declare("scales", DType::f32, {total});
    writer.declare("offsets", DType::i64, {n + 1});
    writer.declare("ids", DType::u8, {l.ids.size()});
    if (l.has_grid) writer.declare("grid", DType::i32, {n, 2});
    if (l.has_boxes) writer.declare("boxes", DType::f32, {total, 4});
    if (l.has_owner) {
        writer.declare("source_offsets", DType::i64, {n + 1});
        writer.declare("owner", DType::i32, {l.owner.size()});
    }
    if (l.has_metadata) writer.declare("page_metadata", DType::u8, {l.metadata.size()});
    std::vector<std::byte> bytes;
    std::vector<float> scales;
    for (std::size_t i = 0; i < n; ++i) {
        encode_page(pages[i], code, bytes, scales);
        const auto row = static_cast<std::uint64_t>(l.offsets[i]);
        writer.write(name, row * code_row_bytes(code, dim), std::span<const std::byte>(bytes));
        if (coded) writer.write("scales", row, std::span<const float>(scales));
        if (progress && i % 256 == 0) progress({"write", "pages", i, n, {}});
    }
    write_layout(writer, l);
    writer.commit();
    if (progress) progress({"write", "pages", n, n, {}});
    return file_entry(path);
}

FileEntry write_full(const std::filesystem::path& path, const MultiVectorSet& set,
                     std::span<const std::size_t> positions) {
    const ScalarType type = set.type() == ScalarType::f32 ? ScalarType::f16 : set.type();
    bool same = positions.size() == set.size();
    for (std::size_t i = 0; same && i < positions.size(); ++i) same = positions[i] == i;
    write_multi_vectors(path, same ? set : set.subset(positions), type);
    return file_entry(path);
}

FileEntry write_deleted(const std::filesystem::path& path, std::span<const std::int64_t> positions) {
    SafetensorsWriter writer(path, {{"schema", "marginmerge.deleted"}, {"version", schema_version}});
    writer.declare("deleted", DType::i64, {positions.size()});
    writer.write("deleted", 0, positions);
    writer.commit();
    return file_entry(path);
}

}  // namespace marginmerge
