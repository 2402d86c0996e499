#include "marginmerge/jobs/fit.h"

#include <array>
#include <numeric>

#include "core/clock.h"
#include "core/fail.h"
#include "core/share.h"
#include "io/output_path.h"
#include "jobs/fit_context.h"
#include "jobs/recipe_json.h"
#include "kernels/maxsim.h"
#include "marginmerge/core/version.h"
#include "marginmerge/jobs/model_file.h"
#include "marginmerge/jobs/presets.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

const std::vector<FitPreset>& known_presets() {
    static const std::vector<FitPreset> presets = {
        {"default", "the best measured recipe: vectors fitted to query tokens, checked against fixed ones", "kcenter",
         "farthest", "fitted"},
        {"learned", "network started from plain means, constants learned, for small logs", "kcenter", "farthest",
         "learned", "full", true},
        {"paper", "exactly the paper: coverage anchors, full objective", "coverage", "index", "learned", "full", false},
        {"margin", "the paper with the margin term alone", "coverage", "index", "learned", "margin", false},
        {"score", "the paper with score reconstruction", "coverage", "index", "learned", "score", false},
        {"no_listwise", "the paper without the listwise term", "coverage", "index", "learned", "no_listwise", false},
        {"no_boundary", "the paper without boundary weights", "coverage", "index", "learned", "no_boundary", false},
        {"no_rank", "the paper without the rank hinge", "coverage", "index", "learned", "no_rank", false},
        {"fixed", "nothing is trained: k-means centroids", "kcenter", "farthest", "kmeans", "full", false},
    };
    return presets;
}

Recipe recipe_for(const FitPreset& preset, const FitOptions& options) {
    Recipe recipe;
    recipe.preset = preset.name;
    recipe.anchors = options.anchors.value_or(preset.anchors);
    recipe.fill = options.fill.value_or(preset.fill);
    recipe.representative = options.representative.value_or(preset.representative);
    recipe.budget.keep = options.keep.value_or(recipe.budget.keep);
    recipe.budget.rounding = representative_rule(recipe.representative).rounding;
    recipe.unit_norm = options.unit_norm;
    recipe.seed = options.seed;
    if (!(recipe.budget.keep > 0 && recipe.budget.keep <= 1)) {
        fail(ErrorCode::invalid_argument, "--keep: expected a share above 0 and at most 1, found {}",
             recipe.budget.keep);
    }
    if (options.align && !(*options.align >= 0 && *options.align <= 1))
        fail(ErrorCode::invalid_argument, "--align: expected a share from 0 to 1, found {}", *options.align);
    if (options.sharpen && !(*options.sharpen >= 0 && *options.sharpen <= 10))
        fail(ErrorCode::invalid_argument, "--sharpen: expected a number from 0 to 10, found {}", *options.sharpen);
    return recipe;
}

// What makes two runs the same work: data, sides and every option that changes the result.
std::string fingerprint_of(const FitContext& context) {
    Sha256 sha;
    const FitOptions& o = context.options;
    sha.update(fmt::format("{} {} {} {} {} {} {}", version(), context.preset.name,
                           recipe_to_json(context.model.recipe).dump(), o.epochs.value_or(0),
                           o.learning_rate.value_or(0), o.prototypes, o.probes));
    sha.update(fmt::format("{} {} {} {} {} {} {} {}", o.seed, o.no_labels, o.unit_norm, o.hold_out, o.validation,
                           o.align.value_or(-1), o.sharpen.value_or(-1), o.remember));
    for (const auto& corpus : context.corpora) {
        sha.update(fmt::format("{} {}", corpus.name, static_cast<int>(corpus.role)));
        for (const auto& hash : corpus.page_hashes) sha.update(std::as_bytes(std::span(hash)));
        for (const auto& hash : corpus.query_hashes) sha.update(std::as_bytes(std::span(hash)));
        for (const auto& labels : corpus.labels) {
            for (std::size_t i = 0; i < labels.documents.size(); ++i) {
                sha.update(fmt::format("{}:{} ", labels.documents[i], labels.grades[i]));
            }
            sha.update(";");
        }
    }
    return to_hex(sha.finish());
}

nlohmann::json data_provenance(const FitContext& context) {
    auto sources = nlohmann::json::array();
    Sha256 ids, contents;
    for (const auto& corpus : context.corpora) {
        constexpr std::array roles = {"train", "bank", "zero-shot"};
        sources.push_back({{"name", corpus.name},
                           {"role", roles[static_cast<std::size_t>(corpus.role)]},
                           {"documents", corpus.training_documents.size()},
                           {"held_out_documents", corpus.held_out_documents.size()},
                           {"train_queries", corpus.train_queries.size()},
                           {"validation_queries", corpus.validation_queries.size()},
                           {"pseudo_queries", corpus.pseudo}});
        if (corpus.role == DataRole::zero_shot) continue;
        for (const auto* side : {&corpus.train_queries, &corpus.validation_queries}) {
            for (const auto q : *side) ids.update(corpus.queries.id(q) + "\n");
        }
        for (const auto i : corpus.training_documents) contents.update(std::as_bytes(std::span(corpus.page_hashes[i])));
    }
    return {{"sources", sources},
            {"query_ids_sha256", to_hex(ids.finish())},
            {"documents_sha256", to_hex(contents.finish())}};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> fit_presets() {
    std::vector<std::pair<std::string, std::string>> names;
    for (const auto& preset : known_presets()) names.emplace_back(preset.name, preset.summary);
    return names;
}

const FitPreset& fit_preset(const std::string& name) {
    std::string names;
    for (const auto& preset : known_presets()) {
        if (preset.name == name) return preset;
        names += (names.empty() ? "" : ", ") + preset.name;
    }
    fail(ErrorCode::invalid_argument, "--preset: expected one of {}, found '{}'", names, name);
}

FitReport fit(const FitOptions& options) {
    const auto start = Clock::now();
    if (options.output.empty()) fail(ErrorCode::invalid_argument, "fit: expected an output file, found none");
    check_output_folder(options.output);
    for (const FitSource& s : options.sources) check_output(options.output, {s.documents, s.queries, s.qrels});
    check_output(options.output, {options.exclude_queries, options.evaluation_documents});
    const FitPreset& preset = fit_preset(options.preset);
    FitContext context{options, preset, {}, {}, {}, {}, {}, {}, {}};
    context.model.recipe = recipe_for(preset, options);
    context.corpora = load_fit_data(options);
    for (const auto& corpus : context.corpora) {
        auto& prepared = context.queries.emplace_back();
        for (std::size_t q = 0; q < corpus.queries.size(); ++q) prepared.emplace_back(corpus.queries.vectors(q));
        if (corpus.role == DataRole::zero_shot) continue;
        FitReport& r = context.report;
        r.documents += corpus.training_documents.size();
        r.vectors += corpus.documents.total_vectors();
        r.train_queries += corpus.train_queries.size();
        r.validation_queries += corpus.validation_queries.size();
        r.missing_judgements += corpus.missing_judgements;
        if (corpus.pseudo) r.pseudo_queries += corpus.queries.size();
        for (const auto q : corpus.train_queries) r.unjudged_queries += corpus.labels[q].documents.empty() ? 1 : 0;
    }
    context.fingerprint = fingerprint_of(context);
    check_same(options.cluster, kernel_name(), "kernel (MARGINMERGE_KERNEL names one that all machines have)");
    check_same(options.cluster, context.fingerprint, "data and settings");
    const bool keep_cache = !options.cache.empty();
    const FitStore store(keep_cache ? options.cache : std::filesystem::path(options.output.string() + ".work"),
                         !keep_cache);
    context.provenance = data_provenance(context);
    context.provenance["tool"] = std::string("marginmerge ") + version();
    context.provenance["preset"] = preset.name;
    context.provenance["seed"] = options.seed;
    context.provenance["fitted_for_keep"] = context.model.recipe.budget.keep;
    context.provenance["split"] = {{"hold_out", options.hold_out},
                                   {"hold_out_seed", 0},
                                   {"validation", options.validation},
                                   {"validation_seed", 42}};
    context.report.seconds_loading = seconds_since(start);

    fit_bank(context);
    const RepresentativeRule& rule = representative_rule(context.model.recipe.representative);
    if (rule.needs_network) fit_learned(context, store);
    if (rule.needs_probes) fit_fitted(context);
    // The paper's presets reproduce the paper, for better or worse.
    if (options.compare && preset.from_uniform && rule.needs_network) compare_recipes(context);
    fit_judgements(context);

    context.model.provenance = context.provenance.dump();
    if (leads(options)) {
        save_model(options.output, context.model);
        store.finish();
    }
    FitReport report = std::move(context.report);
    report.recipe = context.model.recipe;
    report.settings = context.model.settings;
    report.provenance = context.model.provenance;
    report.seconds_total = seconds_since(start);
    return report;
}

}  // namespace marginmerge
