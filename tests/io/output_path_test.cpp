#include "io/output_path.h"

#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

TEST(OutputPath, NeverReplacesAnInput) {
    const test::TemporaryDirectory directory;
    test::write_file(directory / "in", "x");
    fs::create_symlink("in", directory / "link");
    check_output(directory / "out", {directory / "in", {}});
    for (const char* name : {"in", "link", "./in"})
        expect_error(ErrorCode::invalid_argument, {"an input"}, [&] {
            check_output(directory / name, {{}, directory / "in"});
        });
    // Two outputs that do not exist yet.
    expect_error(ErrorCode::invalid_argument, {"an input"},
                 [&] { check_output(directory / "out", {directory / "a/../out"}); });
}

TEST(OutputPath, LeavesTheFilesOfAnInputFolderAlone) {
    const test::TemporaryDirectory directory;
    test::write_file(directory / "meta.json", "{}");
    check_output(directory / "new", {directory.path()});
    expect_error(ErrorCode::invalid_argument, {"meta.json", "input folder"},
                 [&] { check_output(directory / "meta.json", {directory.path()}); });
}

TEST(OutputPath, FolderMustBeThereBeforeTheWork) {
    const test::TemporaryDirectory directory;
    check_output_folder(directory / "x");
    check_output_folder("x");
    expect_error(ErrorCode::not_found, {"nowhere"}, [&] { check_output_folder(directory / "nowhere/x"); });
}

}  // namespace
}  // namespace marginmerge
