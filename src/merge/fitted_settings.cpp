#include "merge/fitted_settings.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/fail.h"

namespace marginmerge {

std::string to_json(const FittedSettings& s) {
    return nlohmann::json{{"fitted",
                           {{"ridge", s.ridge},
                            {"rounds", s.rounds},
                            {"inner", s.inner},
                            {"cluster_rounds", s.cluster_rounds},
                            {"weight_power", s.weight_power},
                            {"weight_floor", s.weight_floor},
                            {"norm_power", s.norm_power},
                            {"work_limit", s.work_limit},
                            {"least_probes", s.least_probes},
                            {"emphasis", s.emphasis},
                            {"strength", s.strength},
                            {"emphasis_limit", s.emphasis_limit},
                            {"sharpen", s.sharpen},
                            {"sharpen_from", s.sharpen_from},
                            {"sharpen_keep", s.sharpen_keep},
                            {"solver_probes", s.solver_probes},
                            {"starts", s.starts},
                            {"start_probes", s.start_probes},
                            {"start_work", s.start_work}}}}
        .dump();
}

FittedSettings fitted_settings(const std::string& json) {
    FittedSettings s;
    if (json.empty()) return s;
    try {
        const auto j = nlohmann::json::parse(json);
        const auto found = j.find("fitted");
        if (found == j.end()) return s;
        s.ridge = found->value("ridge", s.ridge);
        s.rounds = found->value("rounds", s.rounds);
        s.inner = found->value("inner", s.inner);
        s.cluster_rounds = found->value("cluster_rounds", s.cluster_rounds);
        s.weight_power = found->value("weight_power", s.weight_power);
        s.weight_floor = found->value("weight_floor", s.weight_floor);
        s.norm_power = found->value("norm_power", s.norm_power);
        s.work_limit = found->value("work_limit", s.work_limit);
        s.least_probes = found->value("least_probes", s.least_probes);
        s.emphasis = found->value("emphasis", s.emphasis);
        s.strength = found->value("strength", s.strength);
        s.emphasis_limit = found->value("emphasis_limit", s.emphasis_limit);
        s.sharpen = found->value("sharpen", 0.0);  // models made before it aimed at the page's answers alone
        s.sharpen_from = found->value("sharpen_from", s.sharpen_from);
        s.sharpen_keep = found->value("sharpen_keep", s.sharpen_keep);
        s.solver_probes = found->value("solver_probes", s.solver_probes);
        s.starts = found->value("starts", s.starts);
        s.start_probes = found->value("start_probes", s.start_probes);
        s.start_work = found->value("start_work", s.start_work);
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::corrupt, "settings of fitted: expected numbers, found {}", error.what());
    }
    const bool sound = s.ridge > 0 && s.rounds >= 0 && s.rounds <= 1000 && s.inner >= 1 && s.inner <= 1000 &&
                       s.cluster_rounds >= 0 && s.cluster_rounds <= 1000 && s.weight_floor > 0 && s.work_limit > 0 &&
                       std::abs(s.emphasis) <= 20 && std::abs(s.strength) <= 40 && s.emphasis_limit >= 0 &&
                       s.emphasis_limit <= 20 && s.sharpen >= 0 && s.sharpen <= 10 && std::abs(s.sharpen_from) <= 20 &&
                       s.sharpen_keep > 0 && s.solver_probes > 0 && s.starts >= 1 && s.starts <= 1000 &&
                       s.start_probes > 0 && s.start_work >= 0;
    if (!sound) fail(ErrorCode::corrupt, "settings of fitted: expected positive numbers, found {}", json);
    return s;
}

}  // namespace marginmerge
