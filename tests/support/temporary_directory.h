#pragma once

#include <filesystem>
#include <string>

namespace marginmerge::test {

/// A fresh folder that disappears with the object.
class TemporaryDirectory {
public:
    TemporaryDirectory();
    ~TemporaryDirectory();
    TemporaryDirectory(const TemporaryDirectory&) = delete;
    TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
    const std::filesystem::path& path() const { return path_; }
    std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

private:
    std::filesystem::path path_;
};

/// How many entries a folder has.
std::size_t files_in(const std::filesystem::path& folder);

/// Runs the built command line with these arguments (a shell string) and returns its exit status;
/// stdout and stderr are captured.
struct CommandResult {
    int status = 0;
    std::string out;
    std::string err;
};
CommandResult run_cli(const std::string& arguments);

}  // namespace marginmerge::test
