#include "marginmerge/jobs/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.h"
#include "jobs/recipe_json.h"
#include "recipe_options.h"

namespace marginmerge::cli {

namespace {

struct ExplainFlags {
    Common common;
    ExplainOptions job;
    std::string documents, model, output;
};

void print_json(const ExplainReport& r) {
    nlohmann::json clusters = nlohmann::json::array();
    for (const auto& c : r.clusters)
        clusters.push_back({{"anchor", c.anchor},
                            {"patches", c.patches},
                            {"gain", c.gain},
                            {"largest_weight", c.largest_weight},
                            {"entropy", c.entropy}});
    const nlohmann::json j = {{"document", r.document},
                              {"vectors", r.vectors},
                              {"dim", r.dim},
                              {"kept", r.kept},
                              {"effective_rank", r.effective_rank},
                              {"redundancy", r.redundancy},
                              {"reasoned", r.reasoned},
                              {"remembered", r.remembered},
                              {"prototypes", r.prototypes},
                              {"anchor_coverage", r.anchor_coverage},
                              {"full_response", r.full_response},
                              {"kept_response", r.kept_response},
                              {"recipe", recipe_to_json(r.recipe)},
                              {"clusters", clusters},
                              {"files", r.files}};
    fmt::print("{}\n", j.dump(2));
}

void print_text(const ExplainReport& r) {
    fmt::print("document '{}': {} vectors of {} dimensions -> {}\n", r.document, r.vectors, r.dim, r.kept);
    fmt::print("  recipe          {}\n", describe(r.recipe));
    fmt::print("  effective rank  {:.1f}, redundancy {:.1f} vectors a direction\n", r.effective_rank, r.redundancy);
    if (r.remembered > 0) fmt::print("  remembers       {} tokens of judged queries\n", r.remembered);
    if (r.prototypes > 0) {
        if (r.reasoned > 0)
            fmt::print("  anchors         {} by the rule, {} filled in\n", r.reasoned, r.kept - r.reasoned);
        fmt::print("  coverage        {:.4f} of {} prototypes' weight\n", r.anchor_coverage, r.prototypes);
        fmt::print("  best responses  {:.4f} whole page, {:.4f} representatives\n", r.full_response, r.kept_response);
    }
    constexpr std::size_t shown = 12;
    fmt::print("\n  {:>5} {:>7} {:>8} {:>9} {:>9} {:>8}\n", "rank", "anchor", "patches", "gain", "top alpha",
               "entropy");
    for (std::size_t c = 0; c < std::min(shown, r.clusters.size()); ++c) {
        const auto& e = r.clusters[c];
        fmt::print("  {:>5} {:>7} {:>8} {:>9.5f} {:>9.4f} {:>8.3f}\n", c, e.anchor, e.patches, e.gain, e.largest_weight,
                   e.entropy);
    }
    if (r.clusters.size() > shown) fmt::print("  ... and {} more\n", r.clusters.size() - shown);
}

}  // namespace

void register_explain(CLI::App& app) {
    auto options = std::make_shared<ExplainFlags>();
    CLI::App* command = app.add_subcommand("explain", "Every step of compressing one document, as .npy files");
    command->add_option("DOCS", options->documents, "The multi-vector file")->required();
    command->add_option("--doc", options->job.document, "Id of the document")->required();
    command->add_option("-m,--model", options->model, "Model file from 'fit'; some recipes need none");
    command->add_option("-o,--output", options->output, "Folder for the arrays");
    add_recipe_options(*command, options->job.recipe);
    command->footer(
        "Writes anchors, assign, relevance, features, residual, alpha, representatives and more, as far as\n"
        "the model allows, and meta.json.\n"
        "Example:\n"
        "  marginmerge explain docs.safetensors --doc page-17 -m model.safetensors --keep 0.05 -o page-17");
    add_common(*command, options->common);
    command->callback([options] {
        options->job.documents = options->documents;
        options->job.model = options->model;
        options->job.output = options->output;
        const ExplainReport report = explain(options->job);
        if (options->common.json) return print_json(report);
        print_text(report);
        if (!report.files.empty()) fmt::print("\n  {} files in {}\n", report.files.size(), options->output);
    });
}

}  // namespace marginmerge::cli
