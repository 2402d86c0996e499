#include "index/writer_files.h"

#include <algorithm>
#include <set>

#include "io/multi_vector_file.h"
#include "io/safetensors.h"
#include "kernels/convert.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace fs = std::filesystem;

namespace {

bool is_ours(const std::string& name) {
    for (const char* prefix : {"pages-", "full-", "deleted-", "queries-"})
        if (name.rfind(prefix, 0) == 0) return name.find(".safetensors") != std::string::npos;
    return name.rfind(std::string(manifest_name) + ".tmp-", 0) == 0;
}

}  // namespace

std::vector<std::string> leftovers(const fs::path& folder, const Manifest& manifest) {
    std::set<std::string> used;
    for (const auto& f : manifest.files()) used.insert(f.file);
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (is_ours(name) && used.count(name) == 0) names.push_back(name);
    }
    std::sort(names.begin(), names.end());
    return names;
}

void remove_leftovers(const fs::path& folder, const Manifest& manifest) {
    std::error_code ignored;  // a file that will not go now goes next time
    for (const auto& name : leftovers(folder, manifest)) fs::remove(folder / name, ignored);
}

bool only_leftovers(const fs::path& folder) {
    for (const auto& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name != "lock" && !is_ours(name)) return false;
    }
    return true;
}

FileEntry merge_full(const fs::path& path, std::span<const PageSource> pages) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> grid;
    std::string ids;
    bool boxes = true;
    ScalarType type = ScalarType::bf16;
    for (const PageSource& p : pages) {
        const MultiVectorSet& full = *p.segment->full();
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(full.vectors_of(p.page)));
        if (offsets.size() > 2) ids += '\n';
        ids += full.id(p.page);
        grid.insert(grid.end(), {full.grid(p.page).columns, full.grid(p.page).rows});
        boxes = boxes && full.has_boxes();
        if (full.type() != ScalarType::bf16) type = ScalarType::f16;
    }
    const auto total = static_cast<std::uint64_t>(offsets.back());
    const std::size_t dim = pages.front().segment->dim();
    SafetensorsWriter writer(path, {{"schema", multi_vector_schema},
                                    {"version", schema_version},
                                    {"writer", std::string("marginmerge ") + version()}});
    writer.declare("vectors", to_dtype(type), {total, dim});
    writer.declare("offsets", DType::i64, {offsets.size()});
    writer.declare("ids", DType::u8, {ids.size()});
    writer.declare("grid", DType::i32, {pages.size(), 2});
    if (boxes) writer.declare("boxes", DType::f32, {total, 4});
    std::vector<std::byte> packed;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const MultiVectorSet& full = *pages[i].segment->full();
        const VectorsView v = full.vectors(pages[i].page);
        const auto row = static_cast<std::uint64_t>(offsets[i]);
        packed.resize(v.rows * dim * scalar_size(type));
        if (v.type == type)
            std::copy_n(static_cast<const std::byte*>(v.data), v.bytes(), packed.begin());
        else
            from_float(to_float(v).flat(), type, packed.data());
        writer.write("vectors", row * dim * scalar_size(type), std::span<const std::byte>(packed));
        if (boxes) writer.write("boxes", row * 4, full.boxes(pages[i].page));
    }
    writer.write("offsets", 0, std::span<const std::int64_t>(offsets));
    writer.write("ids", 0, std::as_bytes(std::span(ids)));
    writer.write("grid", 0, std::span<const std::int32_t>(grid));
    writer.commit();
    return file_entry(path);
}

int code_fineness(VectorCode code) {
    switch (code) {
        case VectorCode::f32: return 3;
        case VectorCode::f16:
        case VectorCode::bf16: return 2;
        case VectorCode::int8: return 1;
        default: return 0;
    }
}

}  // namespace marginmerge
