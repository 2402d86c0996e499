#include "lab/lab.h"

#include <algorithm>
#include <set>

#include "core/clock.h"
#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/folders.h"
#include "lab/output.h"
#include "lab/resources.h"

namespace marginmerge::lab {

namespace fs = std::filesystem;

namespace {

// What --quick leaves of a user's dataset.
constexpr DatasetLimits quick_limits{150, 80, 40};

std::vector<DatasetSource> sources(const LabOptions& options) {
    std::vector<DatasetSource> out;
    for (const auto& argument : options.data) out.push_back(dataset_source(argument));
    if (!options.documents.empty()) {
        DatasetSource source;
        source.name = options.documents.stem().string();
        source.documents = options.documents;
        source.queries = options.queries;
        source.qrels = options.qrels;
        out.push_back(std::move(source));
    }
    for (auto& source : out)
        if (source.encoder.empty()) source.encoder = options.encoder;
    if (out.empty() || options.synthetic) {
        for (const auto& name : resource_names("datasets")) {
            auto description = resource("datasets", name);
            if (options.quick && description.contains("quick"))
                description.merge_patch(nlohmann::json(description["quick"]));
            out.push_back(dataset_source(description, {}));
        }
        // From little to much redundancy.
        std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
            const auto rank = [](const DatasetSource& s) {
                return s.synthetic.is_null() ? 0 : s.content == "natural" ? 1 : s.content == "scene" ? 2 : 3;
            };
            return rank(a) < rank(b);
        });
    }
    std::set<std::string> names;
    for (const auto& s : out)
        if (!names.insert(s.name).second)
            fail(ErrorCode::invalid_argument,
                 "--data: two datasets are called '{}'; a dataset.json can give one another name", s.name);
    return out;
}

}  // namespace

LabReport run_lab(const LabOptions& options) {
    const auto start = Clock::now();
    if (options.output.empty()) fail(ErrorCode::invalid_argument, "lab: expected an output folder, found none");
    if (!options.documents.empty() && options.queries.empty())
        fail(ErrorCode::invalid_argument, "--docs: expected --queries with it, found none");
    std::vector<StudySpec> specs;
    for (const auto& name : options.studies) {
        const auto names = name == "all" ? study_names() : std::vector<std::string>{name};
        for (const auto& n : names) specs.push_back(load_study(n, options.quick, options.seed));
    }
    if (specs.empty()) fail(ErrorCode::invalid_argument, "lab: expected a study or 'all', found none");
    make_folder(options.output);

    const fs::path store = options.store.empty() ? options.output / "store" : options.store;
    std::vector<std::unique_ptr<Dataset>> datasets;
    for (const auto& source : sources(options)) {
        const DatasetLimits limits = options.quick && source.synthetic.is_null() ? quick_limits : DatasetLimits{};
        datasets.push_back(load_dataset(source, limits, store / "data", options.threads, options.progress));
        if (options.progress) options.progress({"lab data", "datasets", datasets.size(), 0, source.name});
    }
    Workbench bench(std::move(datasets), store, options.any_build, options.threads, options.progress);
    LabReport report;
    for (const auto& d : bench.datasets()) report.datasets.push_back(d->name());
    const auto origin = provenance(bench, options.quick);
    for (const auto& spec : specs) {
        StudyOutput output = run_study(bench, spec);
        write_study(options.output / spec.id, output, bench.take_records(), origin);
        report.studies.push_back(std::move(output));
        // After every study, so that a long run can be read while it goes on.
        write_text_file(options.output / "report.html", html_report(report.studies, bench, origin));
    }
    write_text_file(options.output / "findings.csv", findings_csv(report.studies));
    write_text_file(options.output / "findings.md", findings_markdown(report.studies));
    write_text_file(options.output / "provenance.json", origin.dump(1) + "\n");
    report.html = options.output / "report.html";
    report.computed = bench.computed();
    report.reused = bench.reused();
    report.seconds = seconds_since(start);
    return report;
}

}  // namespace marginmerge::lab
