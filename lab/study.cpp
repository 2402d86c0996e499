#include "lab/study.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/fail.h"
#include "lab/resources.h"

namespace marginmerge::lab {

namespace {

struct Kind {
    const char* name;
    StudyOutput (*run)(Workbench&, const StudySpec&);
};

constexpr std::array study_kinds = {
    Kind{"grid", study_grid},       Kind{"factorial", study_factorial}, Kind{"seeds", study_seeds},
    Kind{"losses", study_losses},   Kind{"transfer", study_transfer},   Kind{"compressibility", study_compressibility},
    Kind{"pruning", study_pruning}, Kind{"cost", study_cost},           Kind{"advisor", study_advisor},
};

const Kind& kind_named(const StudySpec& spec) {
    std::string names;
    for (const Kind& kind : study_kinds) {
        if (spec.kind == kind.name) return kind;
        names += (names.empty() ? "" : ", ") + std::string(kind.name);
    }
    fail(ErrorCode::invalid_argument, "study {}: kind: expected one of {}, found '{}'", spec.id, names, spec.kind);
}

}  // namespace

std::vector<double> StudySpec::numbers(const char* field) const {
    return fields.contains(field) ? fields.at(field).get<std::vector<double>>() : std::vector<double>();
}

std::vector<std::string> study_names() {
    std::vector<std::pair<int, std::string>> order;
    for (const auto& name : resource_names("studies"))
        order.emplace_back(resource("studies", name).value("order", 100), name);
    std::sort(order.begin(), order.end());
    std::vector<std::string> names;
    names.reserve(order.size());
    for (auto& [number, name] : order) names.push_back(std::move(name));
    return names;
}

StudySpec load_study(const std::string& name, bool quick, std::optional<std::uint64_t> seed) {
    StudySpec spec;
    const bool file = name.ends_with(".json");
    spec.fields = file ? read_json(name) : resource("studies", name);
    spec.id = file ? std::filesystem::path(name).stem().string() : name;
    spec.quick = quick;
    if (quick && spec.fields.contains("quick")) spec.fields.merge_patch(nlohmann::json(spec.fields["quick"]));
    spec.fields.erase("quick");
    try {
        spec.title = spec.fields.value("title", spec.id);
        spec.kind = spec.fields.value("kind", "");
        spec.summary = spec.fields.value("summary", "");
        spec.seeds = spec.fields.value("seeds", std::vector<std::uint64_t>{42, 43, 44});
        spec.keeps = spec.fields.value("keeps", std::vector<double>{0.05, 0.1});
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::corrupt, "study {}: {}", spec.id, error.what());
    }
    if (spec.seeds.empty() || spec.keeps.empty())
        fail(ErrorCode::invalid_argument, "study {}: expected seeds and keeps", spec.id);
    if (seed)
        for (std::size_t i = 0; i < spec.seeds.size(); ++i) spec.seeds[i] = *seed + i;
    kind_named(spec);
    return spec;
}

StudyOutput run_study(Workbench& bench, const StudySpec& spec) {
    bench.set_study(spec.id);
    StudyOutput output;
    try {
        output = kind_named(spec).run(bench, spec);
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::corrupt, "study {}: {}", spec.id, error.what());
    }
    output.id = spec.id;
    output.title = spec.title;
    output.summary = spec.summary;
    return output;
}

std::string percent(double share) { return fmt::format("{:g}%", share * 100); }

}  // namespace marginmerge::lab
