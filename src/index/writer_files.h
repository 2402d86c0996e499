#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "index/manifest.h"
#include "index/segment_writer.h"

namespace marginmerge {

/// Files of the folder that a writer may have left when it was killed: they bear names only we give,
/// and the manifest does not mention them.
std::vector<std::string> leftovers(const std::filesystem::path& folder, const Manifest& manifest);
void remove_leftovers(const std::filesystem::path& folder, const Manifest& manifest);

/// Whether a folder without a manifest holds nothing that is not ours.
bool only_leftovers(const std::filesystem::path& folder);

/// Full vectors of pages of several segments as one file, in this order.
FileEntry merge_full(const std::filesystem::path& path, std::span<const PageSource> pages);

/// Larger keeps more of the vectors.
int code_fineness(VectorCode code);

}  // namespace marginmerge
