#pragma once

#include <filesystem>

#include "marginmerge/merge/model.h"

namespace marginmerge {

/// Schema name of a model file, in __metadata__.
inline constexpr const char* model_schema = "marginmerge.model";

/// Reads a model. Every part is optional except that what is there must be whole: a bank has
/// prototypes and frequencies, a network has its six tensors and the feature scaling. Settings
/// that are absent take the paper's values. Throws Error(corrupt|unsupported|not_found|io).
Model load_model(const std::filesystem::path& path);

/// Writes a model, atomically.
void save_model(const std::filesystem::path& path, const Model& model);

}  // namespace marginmerge
