#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge::python {

namespace py = pybind11;

/// Numbers of a Python object, row-major and contiguous: borrowed where the object's layout and type allow it, a copy
/// otherwise. `owner` keeps them alive; it may be dropped on any thread.
struct Tensor {
    const void* data = nullptr;
    ScalarType type = ScalarType::f32;
    std::vector<std::size_t> shape;
    std::shared_ptr<const void> owner;
    bool copied = false;

    std::size_t bytes() const;
    /// [rows, dim] of a matrix.
    VectorsView view() const { return {data, type, shape[0], shape[1]}; }
};

/// Reads a NumPy array, anything with the buffer protocol, or a CPU tensor with __dlpack__ (torch, JAX, CuPy on the
/// host). float32, float16 and bfloat16 are taken as they are, other numbers become float32. `name` is what errors call
/// the object; `dimensions` is 2 or 3.
Tensor borrow(py::handle object, const std::string& name, std::size_t dimensions);

/// Keeps a Python object alive from C++, whatever thread lets go of it.
std::shared_ptr<const void> keep_alive(py::object object);

/// Some documents or queries from Python. `ids` is None or a list of texts, `grids` None or [n,2].
MultiVectorSet set_from_list(py::list arrays, py::object ids, py::object grids);
MultiVectorSet set_from_packed(py::object vectors, py::object offsets, py::object ids, py::object grids);
/// [n, rows, dim]: rows of zeros are padding and left out, and those where `mask` [n, rows] is zero.
MultiVectorSet set_from_padded(py::object vectors, py::object mask, py::object ids, py::object grids);

std::vector<std::string> to_ids(py::object ids, std::size_t count);
std::vector<PatchGrid> to_grids(py::object grids, std::size_t count);

/// A NumPy view without a copy: float32 and float16 as they are, bfloat16 (which NumPy does not know) as float32
/// copies.
py::array to_numpy(VectorsView vectors, py::object owner, bool writable = false);

}  // namespace marginmerge::python
