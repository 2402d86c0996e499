#pragma once

#include <filesystem>
#include <vector>

namespace marginmerge {

/// Before any work: refuses an output that would replace one of the inputs, or a file in an input folder.
/// Error(invalid_argument). Empty inputs count for nothing.
void check_output(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs);

/// Refuses an output whose folder does not exist, where the work before it would be lost.
void check_output_folder(const std::filesystem::path& output);

}  // namespace marginmerge
