#include "export/folder.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;

std::size_t entries(const fs::path& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(OutputFolder, AppearsWhole) {
    const test::TemporaryDirectory directory;
    {
        OutputFolder folder(directory / "out");
        folder.write({{"a.txt", "a"}, {"deep/run.sh", "#!/bin/sh\n"}, {export_marker, "{}"}});
        EXPECT_FALSE(fs::exists(directory / "out"));
        folder.commit();
    }
    EXPECT_EQ(test::read_file(directory / "out/a.txt"), "a");
    EXPECT_NE(fs::status(directory / "out/deep/run.sh").permissions() & fs::perms::owner_exec, fs::perms::none);
    EXPECT_EQ(entries(directory.path()), 1U);
}

TEST(OutputFolder, LeavesNothingWithoutCommit) {
    const test::TemporaryDirectory directory;
    { OutputFolder(directory / "out").write({{"a.txt", "a"}}); }
    EXPECT_EQ(entries(directory.path()), 0U);
}

TEST(OutputFolder, ReplacesAnEarlierExportOnly) {
    const test::TemporaryDirectory directory;
    for (const char* text : {"1", "2"}) {
        OutputFolder folder(directory / "out/");
        folder.write({{"n", text}, {export_marker, "{}"}});
        folder.commit();
    }
    EXPECT_EQ(test::read_file(directory / "out/n"), "2");
    EXPECT_EQ(entries(directory.path()), 1U);

    fs::create_directory(directory / "mine");
    test::write_file(directory / "mine/thesis.txt", "dear");
    test::expect_error(ErrorCode::invalid_argument, {"mine", "other files"},
                       [&] { OutputFolder folder(directory / "mine"); });
    test::expect_error(ErrorCode::invalid_argument, {"found a file"},
                       [&] { OutputFolder folder(directory / "mine/thesis.txt"); });
    EXPECT_EQ(test::read_file(directory / "mine/thesis.txt"), "dear");
}

}  // namespace
}  // namespace marginmerge
