// marginmerge._core: the library's types and jobs. The Python files beside it give them their shape and documentation.
#include "bind.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/error.h"
#include "marginmerge/core/version.h"

namespace marginmerge::python {

namespace {

// Raises marginmerge.errors.Error or, for wrong usage, its subclass that is a ValueError as well.
void raise(const Error& error) {
    const py::module_ errors = py::module_::import("marginmerge.errors");
    const bool usage = error.code() == ErrorCode::invalid_argument;
    const py::object type = errors.attr(usage ? "UsageError" : "Error");
    const py::object value = type(error.what(), to_string(error.code()));
    PyErr_SetObject(type.ptr(), value.ptr());
}

}  // namespace

Progress to_progress(py::object callback) {
    const bool silent = callback.is_none();
    const auto kept = keep_alive(std::move(callback));
    return [silent, kept](const ProgressUpdate& u) {
        const py::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        if (!silent) (*static_cast<const py::object*>(kept.get()))(u.phase, u.unit, u.done, u.total, u.detail);
    };
}

py::object from_json(const std::string& text) {
    if (text.empty()) return py::dict();
    return py::module_::import("json").attr("loads")(text);
}

PYBIND11_MODULE(_core, m) {
    m.doc() = "The compiled part of marginmerge.";
    m.attr("__version__") = version();
    m.def("kernel", [] { return std::string(kernel_name()); });
    py::register_exception_translator([](std::exception_ptr p) {
        try {
            if (p) std::rethrow_exception(p);
        } catch (const Error& error) {
            raise(error);
        }
    });
    bind_sets(m);
    bind_model(m);
    bind_index(m);
    bind_jobs(m);
}

}  // namespace marginmerge::python
