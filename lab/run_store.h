#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace marginmerge::lab {

/// Finished runs on disk, one file each, named by a hash of everything the result depends on: contents of the
/// data, method, settings, seed, program. What is there is not computed again, so a killed study continues.
class RunStore {
public:
    /// `any_build`: accept runs of other builds of the same version.
    RunStore(std::filesystem::path folder, bool any_build);

    /// The key with the program's part added; what runs are filed under.
    nlohmann::json complete(nlohmann::json key) const;
    static std::string name(const nlohmann::json& complete_key);

    /// A file that cannot be read or belongs to another key counts as absent.
    std::optional<nlohmann::json> load(const nlohmann::json& complete_key) const;
    void save(const nlohmann::json& complete_key, const nlohmann::json& value) const;

    /// Where a model of that key is kept (it may not exist yet).
    std::filesystem::path model_file(const nlohmann::json& complete_key) const;
    const std::filesystem::path& folder() const { return folder_; }

private:
    std::filesystem::path folder_;
    nlohmann::json program_;
};

/// Hash of the running executable: another build is another program.
std::string build_hash();

}  // namespace marginmerge::lab
