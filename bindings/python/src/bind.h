#pragma once

#include "arrays.h"
#include "marginmerge/core/progress.h"

namespace marginmerge::python {

/// A Python function (phase, unit, done, total, detail), or None, as progress of a job that runs without the GIL. It
/// lets Ctrl-C through either way.
Progress to_progress(py::object callback);

/// A JSON text as Python objects.
py::object from_json(const std::string& text);

void bind_sets(py::module_& m);
void bind_model(py::module_& m);
void bind_index(py::module_& m);
void bind_jobs(py::module_& m);

}  // namespace marginmerge::python
