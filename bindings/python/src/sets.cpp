// Lists, packed arrays and padded tensors as multi-vector sets.
#include <algorithm>
#include <cstring>

#include "arrays.h"
#include "core/fail.h"
#include "kernels/convert.h"

namespace marginmerge::python {

namespace {

struct Storage {
    std::vector<std::byte> values;
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> grid;
    std::vector<std::shared_ptr<const void>> owners;  ///< of borrowed vectors
};

MultiVectorSet finish(std::shared_ptr<Storage> s, VectorsView vectors, py::object ids, py::object grids) {
    const std::size_t count = s->offsets.size() - 1;
    for (const PatchGrid& g : to_grids(std::move(grids), count)) s->grid.insert(s->grid.end(), {g.columns, g.rows});
    MultiVectorParts parts;
    parts.vectors = vectors;
    parts.offsets = s->offsets;
    parts.grid = s->grid;
    parts.ids = to_ids(std::move(ids), count);
    for (const auto& id : parts.ids)
        if (id.empty() || id.find('\n') != std::string::npos)
            fail(ErrorCode::invalid_argument, "ids: expected texts without line breaks, found '{}'", id);
    parts.storage = s;
    try {
        return MultiVectorSet(std::move(parts), "vectors");
    } catch (const Error& error) {  // what is corrupt in a file is a wrong argument here
        throw Error(ErrorCode::invalid_argument, error.what());
    }
}

// Documents that lie one behind the other in memory, like the slices of one array.
bool adjacent(const std::vector<Tensor>& tensors) {
    for (std::size_t i = 1; i < tensors.size(); ++i) {
        const auto* end = static_cast<const std::byte*>(tensors[i - 1].data) + tensors[i - 1].bytes();
        if (tensors[i].data != end || tensors[i].type != tensors[0].type) return false;
    }
    return true;
}

}  // namespace

MultiVectorSet set_from_list(py::list arrays, py::object ids, py::object grids) {
    std::vector<Tensor> tensors;
    std::size_t dim = 0;
    bool same_type = true;
    auto s = std::make_shared<Storage>();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
        tensors.push_back(borrow(arrays[i], fmt::format("document {}", i), 2));
        const Tensor& t = tensors.back();
        if (dim == 0) dim = t.shape[1];
        if (t.shape[1] != dim)
            fail(ErrorCode::invalid_argument, "document {}: expected {} dimensions like the documents before, found {}",
                 i, dim, t.shape[1]);
        same_type = same_type && t.type == tensors.front().type;
        s->offsets.push_back(s->offsets.back() + static_cast<std::int64_t>(t.shape[0]));
    }
    if (tensors.empty()) fail(ErrorCode::invalid_argument, "vectors: expected at least one document, found none");
    const auto rows = static_cast<std::size_t>(s->offsets.back());
    const ScalarType type = same_type ? tensors.front().type : ScalarType::f32;
    if (adjacent(tensors)) {
        for (Tensor& t : tensors) s->owners.push_back(std::move(t.owner));
        return finish(s, {tensors.front().data, type, rows, dim}, ids, grids);
    }
    s->values.resize(rows * dim * scalar_size(type));
    std::byte* out = s->values.data();
    for (const Tensor& t : tensors) {
        if (same_type)
            std::memcpy(out, t.data, t.bytes());
        else
            to_float(t.view(), reinterpret_cast<float*>(out));
        out += t.shape[0] * dim * scalar_size(type);
    }
    return finish(s, {s->values.data(), type, rows, dim}, ids, grids);
}

MultiVectorSet set_from_packed(py::object vectors, py::object offsets, py::object ids, py::object grids) {
    Tensor t = borrow(vectors, "vectors", 2);
    auto s = std::make_shared<Storage>();
    const py::array_t<std::int64_t, py::array::c_style | py::array::forcecast> given(
        py::module_::import("numpy").attr("asarray")(offsets));
    if (given.ndim() != 1) fail(ErrorCode::invalid_argument, "offsets: expected one dimension, found {}", given.ndim());
    s->offsets.assign(given.data(), given.data() + given.size());
    if (s->offsets.empty()) fail(ErrorCode::invalid_argument, "offsets: expected at least one entry, found none");
    s->owners.push_back(t.owner);
    return finish(s, t.view(), ids, grids);
}

MultiVectorSet set_from_padded(py::object vectors, py::object mask, py::object ids, py::object grids) {
    Tensor t = borrow(vectors, "vectors", 3);
    const std::size_t n = t.shape[0], rows = t.shape[1], dim = t.shape[2];
    std::vector<char> keep(n * rows, 1);
    if (!mask.is_none()) {
        const Tensor m = borrow(mask, "mask", 2);
        if (m.shape[0] != n || m.shape[1] != rows)
            fail(ErrorCode::invalid_argument, "mask: expected {} x {}, found {} x {}", n, rows, m.shape[0], m.shape[1]);
        const Matrix values = to_float(m.view());
        for (std::size_t i = 0; i < keep.size(); ++i) keep[i] = values.data()[i] != 0;
    }
    const std::size_t row_bytes = dim * scalar_size(t.type);
    const auto* data = static_cast<const std::byte*>(t.data);
    Matrix row(1, dim);
    for (std::size_t i = 0; i < keep.size(); ++i) {
        to_float({data + i * row_bytes, t.type, 1, dim}, row.data());
        keep[i] = keep[i] && std::any_of(row.data(), row.data() + dim, [](float x) { return x != 0; });
    }
    auto s = std::make_shared<Storage>();
    for (std::size_t i = 0; i < n; ++i)
        s->offsets.push_back(s->offsets.back() + std::count(&keep[i * rows], &keep[i * rows] + rows, char{1}));
    const auto kept = static_cast<std::size_t>(s->offsets.back());
    if (kept == keep.size()) {
        s->owners.push_back(t.owner);
        return finish(s, {data, t.type, kept, dim}, ids, grids);
    }
    s->values.resize(kept * row_bytes);
    std::byte* out = s->values.data();
    for (std::size_t i = 0; i < keep.size(); ++i) {
        if (!keep[i]) continue;
        std::memcpy(out, data + i * row_bytes, row_bytes);
        out += row_bytes;
    }
    return finish(s, {s->values.data(), t.type, kept, dim}, ids, grids);
}

}  // namespace marginmerge::python
