#include "recipe_options.h"

#include <fmt/core.h>

#include "merge/registry.h"
#include "select/registry.h"

namespace marginmerge::cli {

namespace {

// "a|b|c" of a table's names.
template <class Table>
std::string names(const Table& table) {
    std::string text;
    for (const auto& entry : table) text += (text.empty() ? "" : "|") + std::string(entry.name);
    return text;
}

}  // namespace

void add_recipe_options(CLI::App& command, RecipeChoice& choice) {
    const auto text = [&](const char* flag, std::optional<std::string>& value, const std::string& help) {
        command.add_option_function<std::string>(
            flag, [&value](const std::string& v) { value = v; }, help);
    };
    command.add_option_function<double>(
        "--keep", [&choice](double v) { choice.keep = v; },
        "Share of each page's vectors to keep, above 0 and at most 1");
    command.add_option_function<std::size_t>(
        "--vectors", [&choice](std::size_t v) { choice.vectors = v; }, "A fixed number of vectors a page instead");
    command.add_flag("--balance", choice.balance,
                     "Make --keep the share of all pages together: more of short pages, less of long ones");
    text("--preset", choice.preset, "A whole recipe: " + names(presets()));
    text("--anchors", choice.anchors, names(anchor_rules()));
    text("--fill", choice.fill, "Anchors left after coverage is exhausted: " + names(fill_rules()));
    text("--representative", choice.representative, names(representative_rules()));
    command.add_option_function<std::uint64_t>(
        "--seed", [&choice](std::uint64_t v) { choice.seed = v; }, "Seed of random and k-center anchors");
    command.add_flag_function(
        "--unit-norm", [&choice](std::int64_t) { choice.unit_norm = true; },
        "Scale representatives to unit norm, for engines that only know cosine");
    command.add_flag_function(
        "--no-align", [&choice](std::int64_t) { choice.align = false; },
        "Leave out what the model learned from judgements");
}

std::string describe(const Recipe& recipe) {
    const RepresentativeRule& rule = representative_rule(recipe.representative);
    std::string text;
    if (rule.uses_anchors) {
        text = recipe.anchors + " anchors, ";
        if (anchor_rule(recipe.anchors).uses_fill) text += recipe.fill + " fill, ";
    }
    text += recipe.representative + " representatives, ";
    text += recipe.budget.vectors > 0
                ? fmt::format("{} vectors a page", recipe.budget.vectors)
                : fmt::format("keep {}{}", recipe.budget.keep, recipe.budget.scale > 0 ? ", balanced" : "");
    if (recipe.align) text += ", aligned";
    if (!recipe.preset.empty()) text += fmt::format(" (preset {})", recipe.preset);
    return text;
}

}  // namespace marginmerge::cli
