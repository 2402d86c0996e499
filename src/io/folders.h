#pragma once

#include <filesystem>

namespace marginmerge {

/// Makes a folder and those above it; nothing happens when it is there. Error(io) says why it cannot be made.
void make_folder(const std::filesystem::path& folder);

/// The folder a file lies in; "." when its name says nothing of one.
std::filesystem::path folder_of(const std::filesystem::path& file);

}  // namespace marginmerge
