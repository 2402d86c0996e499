#include "arrays.h"

#include <cstring>
#include <optional>

#include "core/fail.h"
#include "dlpack.h"
#include "kernels/convert.h"

namespace marginmerge::python {

namespace {

std::size_t count_of(const std::vector<std::size_t>& shape) {
    std::size_t count = 1;
    for (const std::size_t n : shape) count *= n;
    return count;
}

void check_dimensions(std::size_t found, std::size_t expected, const std::string& name) {
    if (found != expected)
        fail(ErrorCode::invalid_argument, "{}: expected an array of {} dimensions, found {}", name, expected, found);
}

// A row-major copy of strided elements of `size` bytes.
std::shared_ptr<const void> gather(const std::byte* from, const std::vector<std::size_t>& shape,
                                   const std::int64_t* strides, std::size_t size) {
    auto out = std::make_shared<std::vector<std::byte>>(count_of(shape) * size);
    std::vector<std::size_t> at(shape.size(), 0);
    for (std::size_t i = 0; i < count_of(shape); ++i) {
        std::int64_t element = 0;
        for (std::size_t k = 0; k < shape.size(); ++k) element += static_cast<std::int64_t>(at[k]) * strides[k];
        std::memcpy(out->data() + i * size, from + element * static_cast<std::int64_t>(size), size);
        for (std::size_t k = shape.size(); k-- > 0 && ++at[k] == shape[k];) at[k] = 0;
    }
    return {out, out->data()};
}

bool row_major(const std::vector<std::size_t>& shape, const std::int64_t* strides) {
    if (strides == nullptr) return true;
    std::int64_t expected = 1;
    for (std::size_t k = shape.size(); k-- > 0;) {
        if (shape[k] != 1 && strides[k] != expected) return false;
        expected *= static_cast<std::int64_t>(shape[k]);
    }
    return true;
}

std::optional<ScalarType> scalar_of(dlpack::DataType type) {
    if (type.lanes != 1) return std::nullopt;
    if (type.code == dlpack::TypeCode::real && type.bits == 32) return ScalarType::f32;
    if (type.code == dlpack::TypeCode::real && type.bits == 16) return ScalarType::f16;
    if (type.code == dlpack::TypeCode::bfloat && type.bits == 16) return ScalarType::bf16;
    return std::nullopt;
}

Tensor from_numpy(py::array array, const std::string& name, std::size_t dimensions) {
    check_dimensions(static_cast<std::size_t>(array.ndim()), dimensions, name);
    const char kind = array.dtype().kind();
    if (kind != 'f' && kind != 'i' && kind != 'u' && kind != 'b')
        fail(ErrorCode::invalid_argument, "{}: expected numbers, found dtype {}", name,
             py::str(array.dtype()).cast<std::string>());
    Tensor t;
    const bool half = kind == 'f' && array.itemsize() == 2;
    const bool single = kind == 'f' && array.itemsize() == 4;
    t.type = half ? ScalarType::f16 : ScalarType::f32;
    const void* before = array.data();
    // NumPy does nothing when the array is as asked for; otherwise it copies.
    const py::object numpy = py::module_::import("numpy");
    array = numpy.attr("require")(array, half ? "=f2" : "=f4", py::make_tuple("C", "A"));
    t.copied = array.data() != before || !(half || single);
    for (py::ssize_t k = 0; k < array.ndim(); ++k) t.shape.push_back(static_cast<std::size_t>(array.shape(k)));
    t.data = array.data();
    t.owner = keep_alive(std::move(array));
    return t;
}

// Takes over a capsule; the tensor's memory lives as long as the capsule's deleter has not run.
Tensor from_capsule(py::object object, const std::string& name, std::size_t dimensions) {
    const py::capsule capsule = object.attr("__dlpack__")();
    auto* managed = capsule.get_pointer<dlpack::Managed>();
    if (std::string(capsule.name()) != "dltensor")
        fail(ErrorCode::unsupported, "{}: expected a DLPack capsule, found '{}'", name, capsule.name());
    const dlpack::View& view = managed->view;
    check_dimensions(static_cast<std::size_t>(view.dimensions), dimensions, name);
    Tensor t;
    for (std::int32_t k = 0; k < view.dimensions; ++k) t.shape.push_back(static_cast<std::size_t>(view.shape[k]));
    const auto type = scalar_of(view.type);
    // Other number types go through NumPy, which converts them; the capsule frees itself when it was not taken.
    if (!type) return from_numpy(py::module_::import("numpy").attr("from_dlpack")(object), name, dimensions);
    t.type = *type;
    const auto* data = static_cast<const std::byte*>(view.data) + view.byte_offset;
    if (!row_major(t.shape, view.strides)) {
        t.owner = gather(data, t.shape, view.strides, scalar_size(t.type));
        t.data = t.owner.get();
        t.copied = true;
        return t;
    }
    t.data = data;
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    t.owner = std::shared_ptr<const void>(managed, [](dlpack::Managed* m) {
        const py::gil_scoped_acquire gil;
        if (m->deleter != nullptr) m->deleter(m);
    });
    return t;
}

py::ssize_t signed_size(std::size_t n) { return static_cast<py::ssize_t>(n); }

}  // namespace

std::size_t Tensor::bytes() const { return count_of(shape) * scalar_size(type); }

std::shared_ptr<const void> keep_alive(py::object object) {
    return std::shared_ptr<const void>(new py::object(std::move(object)), [](const void* p) {
        const py::gil_scoped_acquire gil;
        delete static_cast<const py::object*>(p);
    });
}

Tensor borrow(py::handle handle, const std::string& name, std::size_t dimensions) {
    auto object = py::reinterpret_borrow<py::object>(handle);
    if (py::isinstance<py::array>(object)) return from_numpy(object, name, dimensions);
    if (py::hasattr(object, "__dlpack__") && py::hasattr(object, "__dlpack_device__")) {
        const auto device = object.attr("__dlpack_device__")().cast<std::pair<std::int32_t, std::int32_t>>();
        if (device.first != dlpack::cpu && device.first != dlpack::cuda_host)
            fail(ErrorCode::invalid_argument,
                 "{}: expected a tensor on the CPU, found one on device {}; move it with .cpu()", name, device.first);
        // Tensors that record gradients refuse to be exported.
        if (py::hasattr(object, "detach")) object = object.attr("detach")();
        return from_capsule(object, name, dimensions);
    }
    py::object array = py::module_::import("numpy").attr("asarray")(object);
    if (!py::isinstance<py::array>(array)) fail(ErrorCode::invalid_argument, "{}: expected an array of numbers", name);
    return from_numpy(array, name, dimensions);
}

std::vector<std::string> to_ids(py::object ids, std::size_t count) {
    std::vector<std::string> out;
    if (ids.is_none()) return out;
    for (const py::handle id : ids) out.push_back(py::str(id).cast<std::string>());
    if (out.size() != count)
        fail(ErrorCode::invalid_argument, "ids: expected {} of them, one a document, found {}", count, out.size());
    return out;
}

std::vector<PatchGrid> to_grids(py::object grids, std::size_t count) {
    std::vector<PatchGrid> out;
    if (grids.is_none()) return out;
    for (const py::handle grid : grids) {
        const auto pair = py::reinterpret_borrow<py::object>(grid).cast<std::pair<std::int32_t, std::int32_t>>();
        out.push_back({pair.first, pair.second});
    }
    if (out.size() != count)
        fail(ErrorCode::invalid_argument, "grids: expected {} pairs of columns and rows, found {}", count, out.size());
    return out;
}

py::array to_numpy(VectorsView v, py::object owner, bool writable) {
    const std::vector<py::ssize_t> shape = {signed_size(v.rows), signed_size(v.dim)};
    if (v.type == ScalarType::bf16) {
        py::array_t<float> out(shape);
        to_float(v, out.mutable_data());
        return out;
    }
    py::array out(py::dtype(v.type == ScalarType::f16 ? "f2" : "f4"), shape, v.data, owner);
    if (!writable) out.attr("setflags")(py::arg("write") = false);
    return out;
}

}  // namespace marginmerge::python
