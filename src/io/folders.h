#pragma once

#include <filesystem>

namespace marginmerge {

/// Makes a folder and those above it; nothing happens when it is there. Error(io) says why it cannot be made.
void make_folder(const std::filesystem::path& folder);

}  // namespace marginmerge
