#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace marginmerge::lab {

/// A JSON file of this folder, embedded in the binary.
struct Resource {
    std::string_view name;  ///< path under lab/, for example "studies/matched.json"
    std::string_view text;
};
std::span<const Resource> resources();

/// Names in a folder without ".json", in alphabetical order.
std::vector<std::string> resource_names(std::string_view folder);
/// The parsed file; Error(invalid_argument) lists the names there are.
nlohmann::json resource(std::string_view folder, const std::string& name);
/// A JSON file from disk; Error names the file.
nlohmann::json read_json(const std::string& path);

}  // namespace marginmerge::lab
