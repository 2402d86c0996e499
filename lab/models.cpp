#include "lab/models.h"

#include <filesystem>

#include "core/fail.h"
#include "jobs/fit_context.h"
#include "marginmerge/jobs/fit.h"
#include "marginmerge/jobs/model_file.h"
#include "merge/registry.h"
#include "select/registry.h"

namespace marginmerge::lab {

Recipe method_recipe(const Method& method) {
    const FitPreset& preset = fit_preset(method.preset());
    const auto choose = [&](const char* field, const std::string& otherwise) {
        const std::string own = method.text(field);
        return own.empty() ? otherwise : own;
    };
    Recipe recipe;
    recipe.preset = preset.name;
    recipe.anchors = choose("anchors", preset.anchors);
    recipe.fill = choose("fill", preset.fill);
    recipe.representative = choose("representative", preset.representative);
    recipe.unit_norm = method.settings.value("unit_norm", false);
    recipe.budget.rounding = representative_rule(recipe.representative).rounding;
    return recipe;
}

ModelNeeds model_needs(const Method& method) {
    const Recipe recipe = method_recipe(method);
    const RepresentativeRule& rule = representative_rule(recipe.representative);
    ModelNeeds needs;
    needs.seeded = rule.needs_network || rule.needs_probes;
    needs.any =
        needs.seeded || rule.needs_prototypes || (rule.uses_anchors && (anchor_rule(recipe.anchors).needs_prototypes));
    return needs;
}

std::shared_ptr<const FittedModel> Models::fit(const Method& method, std::span<const Dataset* const> sources,
                                               double keep, std::uint64_t seed) {
    const Recipe recipe = method_recipe(method);
    if (!model_needs(method).seeded) seed = 42;  // a bank alone has a seed of its own
    nlohmann::json key = {{"fit", method.preset()},
                          {"anchors", recipe.anchors},
                          {"fill", recipe.fill},
                          {"representative", recipe.representative},
                          {"unit_norm", recipe.unit_norm},
                          {"keep", keep},
                          {"seed", seed},
                          {"data", nlohmann::json::array()}};
    FitOptions options;
    bool disjoint = true;
    for (const Dataset* data : sources) {
        constexpr std::array roles = {"train", "bank", "zero-shot"};
        key["data"].push_back({data->fingerprint, roles[static_cast<std::size_t>(data->source.role)]});
        options.sources.push_back(data->training);
        disjoint = disjoint && data->hold_out > 0;
    }
    options.hold_out = disjoint ? sources.front()->hold_out : 0;
    key["hold_out"] = options.hold_out;
    const auto complete = store_.complete(key);
    const std::string name = RunStore::name(complete);
    if (const auto found = made_.find(name); found != made_.end()) return found->second;
    auto fitted = std::make_shared<FittedModel>();
    fitted->key = name;
    options.output = store_.model_file(complete);
    const auto note = store_.load(complete);
    if (note && std::filesystem::exists(options.output)) {
        fitted->fell_back = note->value("fell_back", "");
        fitted->seconds = note->value("seconds", 0.0);
    } else {
        options.preset = method.preset();
        options.anchors = recipe.anchors;
        options.fill = recipe.fill;
        options.representative = recipe.representative;
        options.unit_norm = recipe.unit_norm;
        options.align = 0;  // methods are compared as they are
        options.keep = keep;
        options.seed = seed;
        options.threads = threads_;
        options.cache = store_.folder() / "mined";
        options.progress = progress_;
        const FitReport report = marginmerge::fit(options);
        fitted->fell_back = report.fell_back;
        fitted->seconds = report.seconds_total;
        store_.save(complete, {{"fell_back", report.fell_back}, {"seconds", report.seconds_total}});
    }
    fitted->model = load_model(options.output);
    made_[name] = fitted;
    return fitted;
}

}  // namespace marginmerge::lab
