#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "marginmerge/merge/model.h"
#include "marginmerge/merge/recipe.h"

namespace marginmerge {

/// A named, complete recipe.
struct Preset {
    std::string_view name;
    std::string_view summary;  ///< one line for --help
    std::string_view anchors;
    std::string_view fill;
    std::string_view representative;
    Budget::Rounding rounding = Budget::Rounding::up;
};

std::span<const Preset> presets();
/// The recipe of that name; Error(invalid_argument) lists the names there are.
Recipe preset_recipe(std::string_view name);
/// What is used when there is no model and nothing was asked for. Needs no model.
std::string_view default_preset();

/// What a user asked for; everything left out comes from the preset, else from the model, else
/// from the default preset.
struct RecipeChoice {
    std::optional<std::string> preset;
    std::optional<std::string> anchors;
    std::optional<std::string> fill;
    std::optional<std::string> representative;
    std::optional<double> keep;          ///< share of each page's vectors
    std::optional<std::size_t> vectors;  ///< a fixed count a page instead
    bool balance = false;                ///< the share is that of all pages together (Budget::balanced)
    std::optional<bool> unit_norm;
    std::optional<bool> align;  ///< whether what the model learned from judgements is applied
    std::optional<std::uint64_t> seed;
};

/// The recipe to run on the pages between these offsets. Checks names and ranges, and that the model has what the
/// recipe needs (Error(invalid_argument) says what is missing). `model` may be null.
Recipe resolve_recipe(const RecipeChoice& choice, const Model* model, std::span<const std::int64_t> offsets);

}  // namespace marginmerge
