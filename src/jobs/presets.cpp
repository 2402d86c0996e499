#include "marginmerge/jobs/presets.h"

#include <array>

#include "core/fail.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

// The one table of recipes. The first entry that needs no model is what users get without one.
constexpr std::array table = {
    Preset{"compact", "spherical k-means from k-center anchors, free norms; needs no model", "kcenter", "farthest",
           "kmeans"},
    Preset{"paper", "coverage anchors, learned weights, exactly as the paper's program", "coverage", "index",
           "learned"},
    Preset{"coverage", "coverage anchors with farthest fill, learned weights", "coverage", "farthest", "learned"},
    Preset{"centroid", "coverage anchors, plain means; needs prototypes only", "coverage", "farthest", "uniform"},
    Preset{"pooling", "Ward hierarchical pooling", "kcenter", "farthest", "ward"},
    Preset{"merging", "bipartite token merging", "kcenter", "farthest", "tome", Budget::Rounding::nearest_even},
};

}  // namespace

std::span<const Preset> presets() { return table; }
std::string_view default_preset() { return table.front().name; }

Recipe preset_recipe(std::string_view name) {
    std::string names;
    for (const Preset& preset : table) {
        names += (names.empty() ? "" : ", ") + std::string(preset.name);
        if (preset.name != name) continue;
        Recipe recipe;
        recipe.preset = preset.name;
        recipe.anchors = preset.anchors;
        recipe.fill = preset.fill;
        recipe.representative = preset.representative;
        recipe.budget.rounding = preset.rounding;
        return recipe;
    }
    fail(ErrorCode::invalid_argument, "preset: expected one of {}, found '{}'", names, name);
}

Recipe resolve_recipe(const RecipeChoice& choice, const Model* model, std::span<const std::int64_t> offsets) {
    Recipe recipe = model != nullptr ? model->recipe : preset_recipe(default_preset());
    if (choice.preset) {
        Recipe named = preset_recipe(*choice.preset);
        named.budget = recipe.budget;
        named.constants = recipe.constants;
        named.seed = recipe.seed;
        recipe = named;
    }
    if (choice.anchors || choice.fill || choice.representative) recipe.preset.clear();
    if (choice.anchors) recipe.anchors = *choice.anchors;
    if (choice.fill) recipe.fill = *choice.fill;
    if (choice.representative) recipe.representative = *choice.representative;
    if (choice.keep && choice.vectors) fail(ErrorCode::invalid_argument, "keep and vectors exclude each other");
    if (choice.keep) {
        recipe.budget.keep = *choice.keep;
        recipe.budget.vectors = 0;
        recipe.budget.scale = 0;
    }
    if (choice.vectors) {
        if (*choice.vectors == 0) fail(ErrorCode::invalid_argument, "vectors: expected at least 1, found 0");
        recipe.budget.vectors = *choice.vectors;
    }
    if (choice.unit_norm) recipe.unit_norm = *choice.unit_norm;
    if (choice.align) recipe.align = *choice.align;
    if (choice.seed) recipe.seed = *choice.seed;
    recipe.budget.rounding = representative_rule(recipe.representative).rounding;
    if (choice.balance && recipe.budget.vectors > 0)
        fail(ErrorCode::invalid_argument, "balance: expected a share to keep, found {} vectors a page",
             recipe.budget.vectors);
    static const Model none;
    check_recipe(recipe, model != nullptr ? *model : none);
    if (choice.balance) recipe.budget = recipe.budget.balanced(offsets);
    return recipe;
}

}  // namespace marginmerge
