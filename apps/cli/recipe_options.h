#pragma once

#include <CLI/CLI.hpp>

#include "marginmerge/jobs/presets.h"

namespace marginmerge::cli {

/// Adds --keep, --vectors, --anchors, --fill, --representative, --preset, --seed and --unit-norm.
void add_recipe_options(CLI::App& command, RecipeChoice& choice);

/// "coverage anchors, farthest fill, learned representatives, keep 0.05"
std::string describe(const Recipe& recipe);

}  // namespace marginmerge::cli
