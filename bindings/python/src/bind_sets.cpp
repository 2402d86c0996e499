#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bind.h"
#include "core/fail.h"
#include "io/multi_vector_file.h"

namespace marginmerge::python {

namespace {

ScalarType parse_type(const std::string& name) {
    if (name == "f32" || name == "float32") return ScalarType::f32;
    if (name == "f16" || name == "float16") return ScalarType::f16;
    if (name == "bf16" || name == "bfloat16") return ScalarType::bf16;
    fail(ErrorCode::invalid_argument, "dtype: expected f32, f16 or bf16, found '{}'", name);
}

std::size_t position_of(const MultiVectorSet& set, py::handle key) {
    if (py::isinstance<py::str>(key)) {
        if (const auto found = set.find(key.cast<std::string>())) return *found;
        throw py::key_error(key.cast<std::string>());
    }
    auto i = key.cast<std::ptrdiff_t>();
    if (i < 0) i += static_cast<std::ptrdiff_t>(set.size());
    if (i < 0 || i >= static_cast<std::ptrdiff_t>(set.size())) throw py::index_error("no such document");
    return static_cast<std::size_t>(i);
}

template <class T>
py::array span_view(std::span<const T> values, py::object owner) {
    py::array out(py::dtype::of<T>(), std::vector<py::ssize_t>{static_cast<py::ssize_t>(values.size())}, values.data(),
                  owner);
    out.attr("setflags")(py::arg("write") = false);
    return out;
}

}  // namespace

void bind_sets(py::module_& m) {
    m.def("parse_dtype", [](const std::string& name) { return to_string(parse_type(name)); });
    py::class_<MultiVectorSet>(m, "MultiVectorSet")
        .def_static("from_list", &set_from_list)
        .def_static("from_packed", &set_from_packed)
        .def_static("from_padded", &set_from_padded)
        .def_static(
            "open",
            [](const std::filesystem::path& path) {
                const py::gil_scoped_release release;
                return read_multi_vectors(path);
            },
            py::arg("path"), "Opens a multi-vector file, memory-mapped.")
        .def(
            "save",
            [](const MultiVectorSet& set, const std::filesystem::path& path, const std::string& dtype) {
                const ScalarType type = dtype.empty() ? set.type() : parse_type(dtype);
                const py::gil_scoped_release release;
                write_multi_vectors(path, set, type);
            },
            py::arg("path"), py::arg("dtype") = "", "Writes the set as a multi-vector file, whole or not at all.")
        .def("__len__", &MultiVectorSet::size)
        .def("__getitem__",
             [](py::object self, py::object key) {
                 const auto& set = self.cast<const MultiVectorSet&>();
                 return to_numpy(set.vectors(position_of(set, key)), self);
             })
        .def("__contains__", [](const MultiVectorSet& set, const std::string& id) { return set.find(id).has_value(); })
        .def("__repr__",
             [](const MultiVectorSet& s) {
                 return fmt::format("<marginmerge.MultiVectorSet: {} documents, {} vectors of {} x {}{}>", s.size(),
                                    s.total_vectors(), s.dim(), to_string(s.type()),
                                    s.has_owner() ? ", compressed" : "");
             })
        .def(
            "position", [](const MultiVectorSet& s, py::object key) { return position_of(s, key); },
            "The position of an id.")
        .def_property_readonly("dim", &MultiVectorSet::dim, "Numbers in a vector.")
        .def_property_readonly(
            "dtype", [](const MultiVectorSet& s) { return std::string(to_string(s.type())); },
            "How the numbers are stored: F32, F16 or BF16.")
        .def_property_readonly("compressed", &MultiVectorSet::has_owner,
                               "Whether the set remembers what its vectors stand for.")
        .def_property_readonly(
            "ids",
            [](const MultiVectorSet& s) {
                std::vector<std::string> ids(s.size());
                for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = s.id(i);
                return ids;
            },
            "Ids of the documents, in order.")
        .def_property_readonly(
            "vectors", [](py::object self) { return to_numpy(self.cast<const MultiVectorSet&>().all_vectors(), self); },
            "All vectors [N, dim], one document after another.")
        .def_property_readonly(
            "offsets", [](py::object self) { return span_view(self.cast<const MultiVectorSet&>().offsets(), self); },
            "Where each document begins in `vectors`, and the end.")
        .def_property_readonly("metadata", &MultiVectorSet::metadata, "Texts that stand in the file.")
        .def(
            "grid",
            [](const MultiVectorSet& s, py::object key) {
                const PatchGrid g = s.has_grid() ? s.grid(position_of(s, key)) : PatchGrid();
                return std::make_pair(g.columns, g.rows);
            },
            "Columns and rows of a document's patch grid; (0, 0) when not known.")
        .def(
            "owner",
            [](py::object self, py::object key) {
                const auto& s = self.cast<const MultiVectorSet&>();
                if (!s.has_owner())
                    fail(ErrorCode::invalid_argument, "owner: expected a compressed set, found one that is not");
                return span_view(s.owner(position_of(s, key)), self);
            },
            "For each original vector of a document the stored one that stands for it, -1 for none.");
}

}  // namespace marginmerge::python
