#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "marginmerge/merge/recipe.h"

namespace marginmerge {

/// A recipe as it stands in model and compressed files.
nlohmann::json recipe_to_json(const Recipe& recipe);

/// The inverse. Absent fields keep the values of `base`; wrong types or values are Error(corrupt)
/// naming `source`.
Recipe recipe_from_json(const std::string& text, const Recipe& base, const std::string& source);

}  // namespace marginmerge
