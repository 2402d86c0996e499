#include "jobs/encode_write.h"

#include <fstream>

#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "marginmerge/core/version.h"

namespace marginmerge {

namespace {

struct Totals {
    std::string ids;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> grid;
    bool any_grid = false;
};

Totals count(const std::vector<WorkUnit>& units, const PartStore& parts,
             const std::function<void(const PartStore::Part&)>& each) {
    Totals t;
    for (const auto& unit : units) {
        const PartStore::Part part = parts.get(unit);
        for (std::size_t i = 0; i < part.set.size(); ++i) {
            t.ids += (t.offsets.size() > 1 ? "\n" : "") + part.set.id(i);
            t.offsets.push_back(t.offsets.back() + static_cast<std::int64_t>(part.set.vectors_of(i)));
            const PatchGrid grid = part.set.grid(i);
            t.grid.insert(t.grid.end(), {grid.columns, grid.rows});
            t.any_grid = t.any_grid || grid.known();
        }
        each(part);
    }
    return t;
}

}  // namespace

void write_plain_file(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    if (!out) fail(ErrorCode::io, "{}: cannot write", path.string());
}

Projection fit_projection(const std::vector<WorkUnit>& units, const PartStore& parts, std::size_t dim,
                          std::size_t components, double& kept) {
    PcaFitter fitter(dim);
    for (const auto& unit : units) fitter.add(to_float(parts.get(unit).set.all_vectors()));
    return fitter.fit(components, &kept);
}

void merge_parts(const std::vector<WorkUnit>& units, const PartStore& parts, const Merged& how,
                 const std::function<void(const PartStore::Part&)>& each) {
    const Totals totals = count(units, parts, each);
    const std::size_t documents = totals.offsets.size() - 1;
    const auto vectors = static_cast<std::uint64_t>(totals.offsets.back());
    auto metadata = how.metadata;
    metadata["schema"] = multi_vector_schema;
    metadata["version"] = schema_version;
    metadata["writer"] = std::string("marginmerge ") + version();
    SafetensorsWriter writer(how.output, metadata);
    writer.declare("vectors", to_dtype(how.type), {vectors, how.dim});
    writer.declare("offsets", DType::i64, {documents + 1});
    writer.declare("ids", DType::u8, {totals.ids.size()});
    if (totals.any_grid) writer.declare("grid", DType::i32, {documents, 2});
    writer.declare("boxes", DType::f32, {vectors, 4});
    std::uint64_t row = 0;
    std::vector<std::byte> packed;
    for (const auto& unit : units) {
        const PartStore::Part part = parts.get(unit);
        const VectorsView stored = part.set.all_vectors();
        if (how.projection == nullptr && stored.type == how.type) {
            writer.write("vectors", row * stored.row_bytes(),
                         std::span(static_cast<const std::byte*>(stored.data), stored.bytes()));
        } else {
            Matrix rows = to_float(stored);
            if (how.projection != nullptr) rows = how.projection->apply(rows);
            if (how.projection != nullptr && how.normalise) normalise_rows(rows);
            packed.resize(rows.size() * scalar_size(how.type));
            from_float(rows.flat(), how.type, packed.data());
            writer.write("vectors", row * how.dim * scalar_size(how.type), std::span<const std::byte>(packed));
        }
        std::vector<float> boxes;
        for (std::size_t i = 0; i < part.set.size(); ++i) {
            const auto b = part.set.boxes(i);
            boxes.insert(boxes.end(), b.begin(), b.end());
        }
        boxes.resize(stored.rows * 4);
        writer.write("boxes", 4 * row, std::span<const float>(boxes));
        row += stored.rows;
    }
    writer.write("offsets", 0, std::span<const std::int64_t>(totals.offsets));
    writer.write("ids", 0, std::as_bytes(std::span(totals.ids)));
    if (totals.any_grid) writer.write("grid", 0, std::span<const std::int32_t>(totals.grid));
    writer.commit();
}

}  // namespace marginmerge
