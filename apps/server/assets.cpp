#include "assets.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/fail.h"

namespace marginmerge::server {

namespace fs = std::filesystem;

namespace {

using Type = std::pair<std::string_view, std::string_view>;
constexpr std::array<Type, 7> image_types{{{".png", "image/png"},
                                           {".jpg", "image/jpeg"},
                                           {".jpeg", "image/jpeg"},
                                           {".webp", "image/webp"},
                                           {".avif", "image/avif"},
                                           {".gif", "image/gif"},
                                           {".svg", "image/svg+xml"}}};
constexpr std::array<Type, 2> text_types{{{".txt", "text/plain; charset=utf-8"}, {".md", "text/plain; charset=utf-8"}}};

template <std::size_t N>
std::optional<Asset> find(const Assets& assets, const std::array<Type, N>& types, const std::string& id,
                          std::string_view named) {
    if (!assets.available()) return std::nullopt;
    if (!named.empty()) {
        std::string ending = fs::path(named).extension().string();
        std::transform(ending.begin(), ending.end(), ending.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
        for (const auto& [extension, type] : types) {
            if (ending != extension) continue;
            if (const auto path = assets.resolve(named)) return Asset{*path, std::string(type)};
        }
    }
    for (const auto& [extension, type] : types) {
        if (const auto path = assets.resolve(id + std::string(extension))) return Asset{*path, std::string(type)};
    }
    return std::nullopt;
}

}  // namespace

Assets::Assets(const fs::path& folder) {
    std::error_code error;
    root_ = fs::canonical(folder, error);
    if (error || !fs::is_directory(root_))
        fail(ErrorCode::not_found, "--assets {}: expected a folder", folder.string());
}

std::optional<fs::path> Assets::resolve(std::string_view relative) const {
    if (!available() || relative.empty() || relative.size() > 1024 || relative.find('\0') != relative.npos)
        return std::nullopt;
    const fs::path wanted(relative);
    if (wanted.is_absolute()) return std::nullopt;
    for (const auto& part : wanted) {
        if (part.empty() || part.native().front() == '.') return std::nullopt;  // "..", "." and hidden files
    }
    std::error_code error;
    const fs::path found = fs::canonical(root_ / wanted, error);
    if (error || !fs::is_regular_file(found, error)) return std::nullopt;
    const auto [root_end, ignored] = std::mismatch(root_.begin(), root_.end(), found.begin(), found.end());
    if (root_end != root_.end()) return std::nullopt;  // a link led outside
    return found;
}

std::optional<Asset> Assets::image(const std::string& id, std::string_view named) const {
    return find(*this, image_types, id, named);
}
std::optional<Asset> Assets::text(const std::string& id, std::string_view named) const {
    return find(*this, text_types, id, named);
}

}  // namespace marginmerge::server
