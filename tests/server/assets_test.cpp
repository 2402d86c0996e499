#include "assets.h"

#include <gtest/gtest.h>

#include "io/atomic_file.h"
#include "marginmerge/core/error.h"
#include "support/temporary_directory.h"

namespace marginmerge::server {

TEST(Assets, NeverLeavesItsFolder) {
    const test::TemporaryDirectory directory;
    namespace fs = std::filesystem;
    fs::create_directories(directory / "assets/sub");
    fs::create_directories(directory / "assets-of-others");
    write_text_file(directory / "assets/a.png", "a");
    write_text_file(directory / "assets/sub/b.png", "b");
    write_text_file(directory / "assets/.hidden.png", "h");
    write_text_file(directory / "secret.png", "s");
    write_text_file(directory / "assets-of-others/c.png", "c");
    fs::create_symlink(directory / "secret.png", directory / "assets/link.png");
    fs::create_directory_symlink(directory.path(), directory / "assets/up");
    fs::create_symlink(directory / "assets/a.png", directory / "assets/inner.png");
    const Assets assets(directory / "assets");
    EXPECT_TRUE(assets.resolve("a.png"));
    EXPECT_TRUE(assets.resolve("sub/b.png"));
    EXPECT_TRUE(assets.resolve("inner.png"));
    for (const std::string bad :
         {"", ".", "..", "../secret.png", "sub/../../secret.png", "/etc/passwd", ".hidden.png", "link.png",
          "up/secret.png", "sub", "../assets-of-others/c.png", "a.png/", "sub/./b.png", "nothing.png"}) {
        EXPECT_FALSE(assets.resolve(bad)) << bad;
    }
    EXPECT_FALSE(assets.resolve(std::string("a.png\0", 6)));
    EXPECT_FALSE(assets.image("../secret", ""));
    EXPECT_FALSE(assets.image("x", "../secret.png"));
    EXPECT_EQ(assets.image("x", "sub/b.png")->content_type, "image/png");
    EXPECT_FALSE(assets.text("a", "a.png")) << "only text files are texts";
    EXPECT_THROW(Assets(directory / "absent"), Error);
}

}  // namespace marginmerge::server
