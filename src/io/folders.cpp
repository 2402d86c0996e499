#include "io/folders.h"

#include "core/fail.h"

namespace marginmerge {

void make_folder(const std::filesystem::path& folder) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) fail(ErrorCode::io, "{}: cannot create: {}", folder.string(), error.message());
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
    return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

}  // namespace marginmerge
