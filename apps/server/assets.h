#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace marginmerge::server {

struct Asset {
    std::filesystem::path path;
    std::string content_type;
};

/// Images and texts of pages in one folder. A page's file is named by its metadata ("image",
/// "text_file") or by its id: ID.png, ID.jpg, ID.webp, ID.svg …, ID.txt, ID.md.
class Assets {
public:
    Assets() = default;
    /// Throws Error(not_found) when there is no such folder.
    explicit Assets(const std::filesystem::path& folder);

    bool available() const { return !root_.empty(); }
    std::optional<Asset> image(const std::string& id, std::string_view named) const;
    std::optional<Asset> text(const std::string& id, std::string_view named) const;

    /// The regular file `relative` names inside the folder, links resolved; nothing when it is
    /// elsewhere, hidden or absent.
    std::optional<std::filesystem::path> resolve(std::string_view relative) const;

private:
    std::filesystem::path root_;
};

}  // namespace marginmerge::server
