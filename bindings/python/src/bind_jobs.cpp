#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bind.h"
#include "core/fail.h"
#include "io/multi_vector_file.h"
#include "io/qrels.h"
#include "marginmerge/jobs/compress.h"
#include "marginmerge/jobs/compress_pages.h"
#include "marginmerge/jobs/evaluate.h"
#include "marginmerge/jobs/fit.h"
#include "marginmerge/jobs/import.h"
#include "marginmerge/jobs/model_file.h"
#include "marginmerge/jobs/synth.h"

namespace marginmerge::python {

namespace {

namespace fs = std::filesystem;

// Options come as keyword arguments in a dictionary; the Python side documents them. Each is taken once, and what is
// left over at the end was misspelt.
class Keywords {
public:
    explicit Keywords(const py::dict& given) : left_(py::reinterpret_steal<py::dict>(PyDict_Copy(given.ptr()))) {}

    template <class T>
    void take(const char* name, T& value) {
        if (!left_.contains(name)) return;
        const py::object given = left_[name];
        PyDict_DelItemString(left_.ptr(), name);
        if (given.is_none()) return;
        try {
            value = given.cast<T>();
        } catch (const py::cast_error&) {
            fail(ErrorCode::invalid_argument, "{}: expected another type, found {}", name,
                 py::repr(given).cast<std::string>());
        }
    }
    template <class T>
    void take(const char* name, std::optional<T>& value) {
        if (!left_.contains(name) || left_[name].is_none()) {
            if (left_.contains(name)) PyDict_DelItemString(left_.ptr(), name);
            return;
        }
        T plain{};
        take(name, plain);
        value = plain;
    }
    void finish() const {
        for (const auto& [name, value] : left_)
            fail(ErrorCode::invalid_argument, "expected an option there is, found '{}'",
                 py::str(name).cast<std::string>());
    }

private:
    py::dict left_;
};

ScalarType take_type(Keywords& keywords, ScalarType fallback) {
    std::string name;
    keywords.take("dtype", name);
    if (name.empty()) return fallback;
    if (name == "f16" || name == "float16") return ScalarType::f16;
    if (name == "f32" || name == "float32") return ScalarType::f32;
    fail(ErrorCode::invalid_argument, "dtype: expected f16 or f32, found '{}'", name);
}

RecipeChoice take_recipe(Keywords& keywords) {
    RecipeChoice choice;
    keywords.take("preset", choice.preset);
    keywords.take("anchors", choice.anchors);
    keywords.take("fill", choice.fill);
    keywords.take("representative", choice.representative);
    keywords.take("keep", choice.keep);
    keywords.take("vectors", choice.vectors);
    keywords.take("balance", choice.balance);
    keywords.take("unit_norm", choice.unit_norm);
    keywords.take("align", choice.align);
    keywords.take("seed", choice.seed);
    return choice;
}

py::dict to_dict(const CompressReport& r) {
    py::dict d;
    d["pages"] = r.pages;
    d["resumed_pages"] = r.resumed_pages;
    d["vectors_in"] = r.vectors_in;
    d["vectors_out"] = r.vectors_out;
    d["bytes_in"] = r.bytes_in;
    d["bytes_out"] = r.bytes_out;
    d["seconds"] = r.seconds;
    d["kernel"] = r.kernel;
    d["notes"] = r.notes;
    return d;
}

py::dict compress_file(const fs::path& documents, const fs::path& output, const fs::path& model,
                       const py::dict& options, py::object progress) {
    Keywords keywords(options);
    CompressOptions o;
    o.documents = documents;
    o.output = output;
    o.model = model;
    o.recipe = take_recipe(keywords);
    o.type = take_type(keywords, ScalarType::f16);
    keywords.take("threads", o.threads);
    keywords.finish();
    const Progress p = to_progress(std::move(progress));
    CompressReport report;
    {
        const py::gil_scoped_release release;
        report = compress(o, p);
    }
    return to_dict(report);
}

CompressPagesOptions pages_options(const py::dict& options, py::object progress) {
    Keywords keywords(options);
    CompressPagesOptions o;
    o.recipe = take_recipe(keywords);
    o.type = take_type(keywords, ScalarType::f32);
    keywords.take("threads", o.threads);
    keywords.finish();
    o.progress = to_progress(std::move(progress));
    return o;
}

py::tuple to_tuple(CompressPagesReport&& report) { return py::make_tuple(std::move(report.pages), report.notes); }

py::tuple compress_list(const py::list& pages, py::object ids, py::object grids, const Model* model,
                        const py::dict& options, py::object progress) {
    CompressPagesOptions o = pages_options(options, std::move(progress));
    o.ids = to_ids(std::move(ids), pages.size());
    o.grids = to_grids(std::move(grids), pages.size());
    std::vector<Tensor> tensors;
    std::vector<VectorsView> views;
    for (std::size_t i = 0; i < pages.size(); ++i) {
        tensors.push_back(borrow(pages[i], fmt::format("page {}", i), 2));
        views.push_back(tensors.back().view());
    }
    CompressPagesReport report;
    {
        const py::gil_scoped_release release;
        report = compress_pages(views, model, o);
    }
    return to_tuple(std::move(report));
}

py::tuple compress_set(const MultiVectorSet& pages, const Model* model, const py::dict& options, py::object progress) {
    const CompressPagesOptions o = pages_options(options, std::move(progress));
    CompressPagesReport report;
    {
        const py::gil_scoped_release release;
        report = compress_pages(pages, model, o);
    }
    return to_tuple(std::move(report));
}

// Writable float views of the pages of a set that nobody else holds, for poolers.
py::list unpack(py::object self) {
    const auto& set = self.cast<const MultiVectorSet&>();
    py::list out;
    for (std::size_t i = 0; i < set.size(); ++i) out.append(to_numpy(set.vectors(i), self, true));
    return out;
}

py::dict to_dict(const FitLabelGain& g) {
    py::dict d;
    d["queries"] = g.queries;
    d["full_ndcg5"] = g.full_ndcg;
    d["ndcg5"] = g.ndcg;
    d["standard_error"] = g.error;
    d["flips"] = g.flips;
    d["strength"] = g.strength;
    d["kept"] = g.kept;
    return d;
}

py::dict to_dict(const FitReport& r) {
    py::dict d, seconds;
    d["documents"] = r.documents;
    d["vectors"] = r.vectors;
    d["train_queries"] = r.train_queries;
    d["validation_queries"] = r.validation_queries;
    d["pseudo_queries"] = r.pseudo_queries;
    d["unjudged_queries"] = r.unjudged_queries;
    d["missing_judgements"] = r.missing_judgements;
    d["epochs"] = r.epochs;
    d["best_epoch"] = r.best_epoch;
    d["resumed"] = r.resumed;
    d["full_ndcg5"] = r.full_ndcg;
    d["fell_back"] = r.fell_back;
    py::list candidates;
    for (const FitCandidate& c : r.candidates) {
        py::dict one;
        one["name"] = c.name;
        one["ndcg5"] = c.ndcg;
        one["flips"] = c.flips;
        one["error"] = c.error;
        one["chosen"] = c.chosen;
        candidates.append(one);
    }
    d["candidates"] = candidates;
    if (r.memory.queries > 0) {
        d["memory"] = to_dict(r.memory);
        d["memory"]["pages"] = r.memory.pages;
    }
    if (r.alignment.queries > 0) {
        d["alignment"] = to_dict(r.alignment);
        d["alignment"]["length_power"] = r.alignment.length_power;
    }
    seconds["loading"] = r.seconds_loading;
    seconds["bank"] = r.seconds_bank;
    seconds["mining"] = r.seconds_mining;
    seconds["clusters"] = r.seconds_clusters;
    seconds["training"] = r.seconds_training;
    seconds["total"] = r.seconds_total;
    d["seconds"] = seconds;
    return d;
}

py::tuple fit_model(const MultiVectorSet& documents, const MultiVectorSet* queries,
                    const std::optional<Judgements>& judgements, const fs::path& output, const py::dict& options,
                    py::object progress) {
    Keywords keywords(options);
    FitOptions o;
    FitSource source;
    source.document_set = documents;
    if (queries != nullptr) source.query_set = *queries;
    source.judgements = judgements;
    source.name = "documents";
    keywords.take("name", source.name);
    o.sources.push_back(std::move(source));
    o.output = output;
    keywords.take("preset", o.preset);
    keywords.take("anchors", o.anchors);
    keywords.take("fill", o.fill);
    keywords.take("representative", o.representative);
    keywords.take("keep", o.keep);
    keywords.take("epochs", o.epochs);
    keywords.take("learning_rate", o.learning_rate);
    keywords.take("prototypes", o.prototypes);
    keywords.take("probes", o.probes);
    keywords.take("seed", o.seed);
    keywords.take("threads", o.threads);
    keywords.take("no_labels", o.no_labels);
    keywords.take("unit_norm", o.unit_norm);
    keywords.take("align", o.align);
    keywords.take("sharpen", o.sharpen);
    keywords.take("remember", o.remember);
    keywords.take("compare", o.compare);
    keywords.take("hold_out", o.hold_out);
    keywords.take("validation", o.validation);
    keywords.finish();
    o.progress = to_progress(std::move(progress));
    FitReport report;
    auto model = std::make_shared<Model>();
    {
        const py::gil_scoped_release release;
        report = fit(o);
        *model = load_model(output);
    }
    return py::make_tuple(model, to_dict(report));
}

py::object evaluate_indexes(const std::shared_ptr<Index>& full,
                            const std::vector<std::pair<std::string, std::shared_ptr<Index>>>& indexes,
                            const MultiVectorSet& queries, const std::optional<Judgements>& judgements,
                            const py::dict& options, py::object progress) {
    Keywords keywords(options);
    EvaluateOptions o;
    keywords.take("k", o.k);
    keywords.take("top", o.top);
    keywords.take("threads", o.threads);
    keywords.take("timed_queries", o.timed_queries);
    std::string runs, report_file;
    keywords.take("runs", runs);
    keywords.take("report", report_file);
    keywords.finish();
    o.runs = runs;
    o.no_labels = !judgements;
    o.progress = to_progress(std::move(progress));
    EvaluateInputs inputs;
    inputs.full = full;
    inputs.queries = queries;
    if (judgements) inputs.judgements = *judgements;
    for (const auto& [name, index] : indexes) inputs.indexes.push_back({name, index});
    std::string json, html;
    {
        const py::gil_scoped_release release;
        const EvaluateReport report = evaluate(inputs, o);
        json = evaluate_json(report);
        if (!report_file.empty()) html = evaluate_html(report);
    }
    return py::make_tuple(from_json(json), html);
}

py::dict import_files(const std::vector<fs::path>& sources, const fs::path& output, const py::dict& options,
                      py::object progress) {
    Keywords keywords(options);
    ImportOptions o;
    o.sources = sources;
    o.output = output;
    o.type = take_type(keywords, ScalarType::f16);
    keywords.take("keep_norms", o.keep_norms);
    keywords.take("queries", o.queries);
    keywords.take("drop_empty", o.drop_empty);
    std::string ids, offsets;
    keywords.take("ids", ids);
    keywords.take("offsets", offsets);
    keywords.finish();
    o.ids = ids;
    o.offsets = offsets;
    const Progress p = to_progress(std::move(progress));
    ImportReport r;
    {
        const py::gil_scoped_release release;
        r = import_vectors(o, p);
    }
    py::dict d;
    d["documents"] = r.documents;
    d["vectors"] = r.vectors;
    d["dim"] = r.dim;
    d["zero_rows_dropped"] = r.zero_rows_dropped;
    d["not_unit"] = r.not_unit;
    d["normalised"] = r.normalised;
    d["empty_dropped"] = r.empty_dropped;
    d["bytes"] = r.bytes;
    return d;
}

py::dict synthesise_folder(const fs::path& output, const py::dict& options, py::object progress) {
    Keywords keywords(options);
    SynthOptions o;
    o.output = output;
    keywords.take("kind", o.kind);
    keywords.take("documents", o.documents);
    keywords.take("queries", o.queries);
    keywords.take("vectors", o.vectors);
    keywords.take("redundancy", o.redundancy);
    keywords.take("dim", o.dim);
    keywords.take("difficulty", o.difficulty);
    keywords.take("seed", o.seed);
    keywords.take("threads", o.threads);
    keywords.finish();
    const Progress p = to_progress(std::move(progress));
    SynthReport r;
    {
        const py::gil_scoped_release release;
        r = synthesise(o, p);
    }
    py::dict d;
    d["documents"] = r.documents;
    d["queries"] = r.queries;
    d["vectors"] = r.vectors;
    d["dim"] = r.dim;
    d["train_queries"] = r.train_queries;
    d["test_queries"] = r.test_queries;
    d["redundancy"] = r.redundancy;
    return d;
}

}  // namespace

void bind_jobs(py::module_& m) {
    m.def("read_qrels", [](const fs::path& path) { return read_qrels(path); });
    m.def("compress_file", &compress_file);
    m.def("compress_list", &compress_list);
    m.def("compress_set", &compress_set);
    m.def("unpack", &unpack);
    m.def("fit", &fit_model);
    m.def("evaluate", &evaluate_indexes);
    m.def("import_files", &import_files);
    m.def("synthesise", &synthesise_folder);
}

}  // namespace marginmerge::python
