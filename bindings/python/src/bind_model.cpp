#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <fmt/core.h>

#include "bind.h"
#include "jobs/recipe_json.h"
#include "marginmerge/jobs/model_file.h"

namespace marginmerge::python {

void bind_model(py::module_& m) {
    py::class_<Model, std::shared_ptr<Model>>(m, "Model")
        .def(py::init([](const std::filesystem::path& path) {
                 const py::gil_scoped_release release;
                 return std::make_shared<Model>(load_model(path));
             }),
             py::arg("path"), "Opens a model file.")
        .def(
            "save",
            [](const Model& model, const std::filesystem::path& path) {
                const py::gil_scoped_release release;
                save_model(path, model);
            },
            py::arg("path"), "Writes the model, whole or not at all.")
        .def_property_readonly(
            "recipe", [](const Model& model) { return from_json(recipe_to_json(model.recipe).dump()); },
            "What it was fitted for.")
        .def_property_readonly(
            "settings", [](const Model& model) { return from_json(model.settings); }, "What fitting chose.")
        .def_property_readonly(
            "provenance", [](const Model& model) { return from_json(model.provenance); },
            "Data, seeds and hashes it came from.")
        .def_property_readonly(
            "prototypes",
            [](py::object self) { return to_numpy(self.cast<const Model&>().bank.prototypes.view(), self); },
            "Typical query directions [M, dim]; empty for recipes that need none.")
        .def_property_readonly(
            "probes", [](py::object self) { return to_numpy(self.cast<const Model&>().probes.tokens.view(), self); },
            "Query tokens that pages are fitted to [P, dim]; may be empty.")
        .def("__repr__", [](const Model& model) {
            return fmt::format("<marginmerge.Model: {} for {:g}% of the vectors>", model.recipe.representative,
                               100 * model.recipe.budget.keep);
        });
}

}  // namespace marginmerge::python
