#include "lab/workbench.h"

#include "core/fail.h"
#include "lab/feasible.h"

namespace marginmerge::lab {

Workbench::Workbench(std::vector<std::unique_ptr<Dataset>> datasets, const std::filesystem::path& store, bool any_build,
                     std::size_t threads, Progress progress)
    : datasets_(std::move(datasets)),
      store_(store, any_build),
      models_(store_, threads, progress),
      threads_(threads),
      progress_(std::move(progress)) {}

std::vector<const Dataset*> Workbench::group(const Dataset& data) const {
    std::vector<const Dataset*> out;
    for (const auto& d : datasets_)
        if (d.get() == &data || (!data.source.encoder.empty() && d->source.encoder == data.source.encoder))
            out.push_back(d.get());
    return out;
}

std::shared_ptr<const FittedModel> Workbench::model(const Dataset& data, const Method& method, const RunSettings& s) {
    if (method.kind != "compress" || !model_needs(method).any) return nullptr;
    std::vector<const Dataset*> sources;
    bool any = false;
    for (const Dataset* d : group(data)) {
        if (d->source.role == DataRole::zero_shot || (s.leave_out && d == &data)) continue;
        sources.push_back(d);
        any = any || d->source.role == DataRole::train;
    }
    if (!any) return nullptr;
    return models_.fit(method, sources, s.train_keep, s.seed);
}

std::shared_ptr<const Selector> Workbench::selector(const Dataset& data, const Method& method, std::uint64_t seed) {
    const std::string key = data.fingerprint + method.settings.dump() + (method.seeded ? std::to_string(seed) : "");
    auto& found = selectors_[key];
    if (!found) found = make_selector(method.settings, data, seed, threads_);
    return found;
}

RunInputs Workbench::inputs(const Dataset& data, const Method& method, const RunSettings& s) {
    RunInputs in{data, nullptr, nullptr, {}, {}, s.code, s.seed, threads_, s.subsample};
    in.budget.keep = s.keep;
    in.budget.vectors = s.vectors;
    if (method.kind == "select") in.selector = selector(data, method, s.seed).get();
    if (method.kind != "compress") return in;
    in.recipe = method_recipe(method);
    if (model_needs(method).any) {
        const auto fitted = model(data, method, s);
        if (!fitted)
            fail(ErrorCode::invalid_argument, "{}: {} needs a training dataset of the same encoder", data.name(),
                 method.id);
        held_.push_back(fitted);
        in.model = &fitted->model;
        in.recipe = fitted->model.recipe;  // `fit` may have kept a fixed representative
    }
    const auto rounding = in.recipe.budget.rounding;
    in.recipe.budget = in.budget;
    in.recipe.budget.rounding = rounding;
    in.recipe.seed = s.seed;
    return in;
}

std::shared_ptr<const RunResult> Workbench::run(const Dataset& data, const Method& method, const RunSettings& asked) {
    RunSettings s = asked;
    if (!method.seeded) s.seed = 42;
    nlohmann::json key = {{"data", data.fingerprint},
                          {"kind", method.kind},
                          {"method", method.settings},
                          {"seed", s.seed},
                          {"code", to_string(s.code)}};
    if (s.vectors > 0)
        key["vectors"] = s.vectors;
    else if (method.kind != "full" && method.kind != "single")
        key["keep"] = s.keep;
    if (s.subsample > 0) key["subsample"] = s.subsample;
    if (method.kind == "compress" && model_needs(method).any) {
        const auto fitted = model(data, method, s);
        key["model"] = fitted ? fitted->key : "none";
    }
    if (method.kind == "structural")
        key["scores"] = data.source.structural.empty() ? "" : data.source.structural.string();
    const auto complete = store_.complete(key);
    const std::string name = RunStore::name(complete);
    auto& result = runs_[name];
    if (!result) {
        if (const auto stored = store_.load(complete)) {
            result = std::make_shared<RunResult>(RunResult::from_json(*stored));
            ++reused_;
        } else {
            auto made = std::make_shared<RunResult>();
            made->skipped = why_not(data, method);
            if (key.value("model", "") == "none")
                made->skipped = "no training dataset of the same encoder";
            else if (made->skipped.empty())
                *made = run_method(method, inputs(data, method, s));
            store_.save(complete, made->to_json());
            result = made;
            ++computed_;
        }
        if (progress_) progress_({"lab " + study_, "runs", computed_ + reused_, 0, data.name() + " " + method.id});
    }
    // Seeds that share one result are one run, and one line of the CSV.
    const std::string record = fmt::format("{} {} {} {}", name, data.name(), method.id, s.leave_out);
    if (recorded_.emplace(record, records_.size()).second)
        records_.push_back({data.name(), method.id, s, name, result});
    return result;
}

std::vector<RunRecord> Workbench::take_records() {
    recorded_.clear();
    return std::exchange(records_, {});
}

}  // namespace marginmerge::lab
