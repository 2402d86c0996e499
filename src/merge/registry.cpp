#include "merge/registry.h"

#include <array>
#include <string>

#include "core/fail.h"

namespace marginmerge {

namespace {

constexpr auto up = Budget::Rounding::up;
constexpr auto nearest_even = Budget::Rounding::nearest_even;

// name, summary, anchors, prototypes, network, probes, rounding
constexpr std::array table = {
    RepresentativeRule{"anchor", "the anchors themselves", true, false, false, false, up, represent_anchor},
    RepresentativeRule{"uniform", "mean of each anchor's cluster", true, false, false, false, up, represent_uniform},
    RepresentativeRule{"response", "mean weighted by anchor similarity and relevance", true, true, false, false, up,
                       represent_response},
    RepresentativeRule{"learned", "the same weights corrected by a network (the paper's)", true, true, true, false, up,
                       represent_learned},
    RepresentativeRule{"kmeans", "spherical k-means started from the anchors", true, false, false, false, up,
                       represent_kmeans},
    RepresentativeRule{"fitted", "vectors moved until they answer query tokens as the page does", false, false, false,
                       true, up, represent_fitted},
    RepresentativeRule{"ward", "Ward hierarchical pooling", false, false, false, false, up, represent_ward},
    RepresentativeRule{"tome", "bipartite token merging", false, false, false, false, nearest_even, represent_tome},
};

}  // namespace

std::span<const RepresentativeRule> representative_rules() { return table; }

const RepresentativeRule& representative_rule(std::string_view name) {
    std::string names;
    for (const auto& rule : table) {
        if (rule.name == name) return rule;
        names += (names.empty() ? "" : ", ") + std::string(rule.name);
    }
    fail(ErrorCode::invalid_argument, "representative: expected one of {}, found '{}'", names, name);
}

void check_recipe(const Recipe& recipe, const Model& model) {
    const RepresentativeRule& rule = representative_rule(recipe.representative);
    const AnchorRule& anchors = anchor_rule(recipe.anchors);
    const FillRule& fill = fill_rule(recipe.fill);
    if (!(recipe.budget.keep > 0) || recipe.budget.keep > 1)
        fail(ErrorCode::invalid_argument, "keep: expected a share above 0 and at most 1, found {}", recipe.budget.keep);
    const auto need = [](bool needed, bool there, std::string_view what, std::string_view who) {
        if (needed && !there)
            fail(ErrorCode::invalid_argument, "{} needs a model with {}: give one with -m, or choose another method",
                 who, what);
    };
    const bool bank = !model.bank.empty();
    need(rule.needs_network, model.network.has_value() && model.scaling.has_value(), "a network",
         "representative " + std::string(rule.name));
    need(rule.needs_prototypes, bank, "prototypes", "representative " + std::string(rule.name));
    need(rule.needs_probes, !model.probes.empty(), "probes", "representative " + std::string(rule.name));
    need(recipe.align, !model.alignment.empty() || !model.memory.empty(), "an alignment or a memory", "align");
    if (!rule.uses_anchors) return;
    need(anchors.needs_prototypes, bank, "prototypes", "anchors " + std::string(anchors.name));
    need(anchors.uses_fill && fill.needs_prototypes, bank, "prototypes", "fill " + std::string(fill.name));
}

}  // namespace marginmerge
