#include "export/folder.h"

#include <unistd.h>

#include <fcntl.h>
#include <cstdio>

#include "core/fail.h"
#include "io/atomic_file.h"
#include "io/folders.h"

namespace marginmerge {

namespace fs = std::filesystem;

namespace {

// What is in the way, or nothing.
void refuse_foreign(const fs::path& path) {
    std::error_code error;
    if (!fs::exists(path, error)) return;
    if (!fs::is_directory(path, error))
        fail(ErrorCode::invalid_argument, "{}: expected a folder to write to, found a file", path.string());
    if (fs::is_empty(path, error) || fs::exists(path / export_marker, error)) return;
    fail(ErrorCode::invalid_argument,
         "{}: expected a new folder, an empty one or an earlier export, found a folder with other files in it",
         path.string());
}

fs::path without_slash(fs::path path) {
    if (!path.has_filename()) path = path.parent_path();
    return path;
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& final_path) : final_(without_slash(final_path)), temporary_(final_) {
    if (final_.empty()) fail(ErrorCode::invalid_argument, "-o: expected the name of a folder, found nothing");
    refuse_foreign(final_);
    temporary_ += ".tmp-" + std::to_string(::getpid());
    std::error_code ignored;
    fs::remove_all(temporary_, ignored);
    make_folder(temporary_);
}

OutputFolder::~OutputFolder() {
    std::error_code ignored;
    if (!committed_) fs::remove_all(temporary_, ignored);
}

void OutputFolder::write(const TextFiles& files) const {
    for (const auto& [name, text] : files) {
        const fs::path path = temporary_ / name;
        std::error_code error;
        fs::create_directories(path.parent_path(), error);
        write_text_file(path, text);
        if (path.extension() == ".sh")
            fs::permissions(path, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                            fs::perm_options::add, error);
    }
}

void OutputFolder::commit() {
    refuse_foreign(final_);
    std::error_code error;
    if (fs::exists(final_, error)) {
        // Both names change at once; the earlier export then has the temporary name.
        if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) != 0) {
            fs::remove_all(final_, error);
            fs::rename(temporary_, final_, error);
        } else {
            fs::remove_all(temporary_, error);
            error.clear();
        }
    } else {
        fs::rename(temporary_, final_, error);
    }
    if (error) fail(ErrorCode::io, "{}: cannot rename into place: {}", final_.string(), error.message());
    committed_ = true;
}

}  // namespace marginmerge
