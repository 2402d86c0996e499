#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/fail.h"
#include "lab/resources.h"

namespace marginmerge::lab {

std::vector<std::string> resource_names(std::string_view folder) {
    std::vector<std::string> names;
    const std::string prefix = std::string(folder) + "/";
    for (const Resource& r : resources())
        if (r.name.starts_with(prefix))
            names.emplace_back(r.name.substr(prefix.size(), r.name.size() - prefix.size() - 5));
    std::sort(names.begin(), names.end());
    return names;
}

nlohmann::json resource(std::string_view folder, const std::string& name) {
    const std::string path = folder.empty() ? name + ".json" : std::string(folder) + "/" + name + ".json";
    for (const Resource& r : resources())
        if (r.name == path) return nlohmann::json::parse(r.text);
    std::string names;
    for (const auto& n : resource_names(folder)) names += (names.empty() ? "" : ", ") + n;
    fail(ErrorCode::invalid_argument, "{}: expected one of {} or a .json file, found '{}'", folder, names, name);
}

nlohmann::json read_json(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        fail(ErrorCode::not_found, "{}: expected a JSON file, found none", path);
    if (std::filesystem::file_size(path, error) > (16u << 20))
        fail(ErrorCode::unsupported, "{}: expected at most 16 MB", path);
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    auto json = nlohmann::json::parse(text.str(), nullptr, false);
    if (!json.is_object()) fail(ErrorCode::corrupt, "{}: expected a JSON object", path);
    return json;
}

}  // namespace marginmerge::lab
