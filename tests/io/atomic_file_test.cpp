#include "io/atomic_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "io/file_system.h"
#include "io/safetensors.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;

// Fails the Nth of the calls that matter; optionally pretends that unnamed files do not exist.
class Faulty : public FileSystem {
public:
    explicit Faulty(int fail_at, bool named = false) : left_(fail_at), named_(named) {
        before_ = exchange_file_system(this);
    }
    ~Faulty() override { exchange_file_system(before_); }
    Faulty(const Faulty&) = delete;
    Faulty& operator=(const Faulty&) = delete;

    int create_unnamed(const fs::path& directory, int& fd) override {
        return named_ ? ENOTSUP : due() ? EIO : FileSystem::create_unnamed(directory, fd);
    }
    int create(const fs::path& path, int& fd) override { return due() ? EACCES : FileSystem::create(path, fd); }
    int write_at(int fd, std::uint64_t position, std::span<const std::byte> bytes, std::size_t& written) override {
        if (due()) return ENOSPC;
        // Short writes are allowed; the caller must go on.
        return FileSystem::write_at(fd, position, bytes.first((bytes.size() + 1) / 2), written);
    }
    int sync(int fd) override { return due() ? EIO : FileSystem::sync(fd); }
    int link(int fd, const fs::path& path) override { return due() ? EIO : FileSystem::link(fd, path); }
    int rename(const fs::path& from, const fs::path& to) override { return due() ? EIO : FileSystem::rename(from, to); }

    bool fired() const { return left_ <= 0; }

private:
    bool due() { return --left_ == 0; }
    int left_;
    bool named_;
    FileSystem* before_;
};

TEST(AtomicFile, EveryFaultLeavesTheOldFileAndNothingElse) {
    for (const bool named : {false, true}) {
        int faults = 0;
        for (int fail_at = 1; fail_at < 100; ++fail_at) {
            const test::TemporaryDirectory directory;
            test::write_file(directory / "f", "old");
            bool failed = false;
            bool fired = false;
            {
                Faulty faulty(fail_at, named);
                try {
                    write_text_file(directory / "f", "something new");
                } catch (const Error& error) {
                    EXPECT_EQ(error.code(), ErrorCode::io);
                    EXPECT_THAT(error.what(), ::testing::HasSubstr("/f: cannot"));
                    failed = true;
                }
                fired = faulty.fired();
            }
            EXPECT_EQ(failed, fired);
            EXPECT_EQ(test::files_in(directory.path()), 1U) << "fault " << fail_at;
            EXPECT_EQ(test::read_file(directory / "f"), failed ? "old" : "something new");
            if (!fired) break;
            ++faults;
        }
        EXPECT_GE(faults, 5);  // create, several writes, sync, rename
    }
}

TEST(AtomicFile, EveryFaultOfASafetensorsWriterLeavesNothing) {
    for (int fail_at = 1; fail_at < 200; ++fail_at) {
        const test::TemporaryDirectory directory;
        bool fired = false;
        {
            Faulty faulty(fail_at);
            try {
                SafetensorsWriter writer(directory / "f", {{"a", "b"}});
                writer.declare("x", DType::f32, {4});
                const float values[] = {1, 2, 3, 4};
                writer.write("x", 0, std::span<const float>(values));
                writer.commit();
            } catch (const Error&) {
            }
            fired = faulty.fired();
        }
        EXPECT_EQ(test::files_in(directory.path()), fired ? 0U : 1U) << "fault " << fail_at;
        if (!fired) return;
    }
    ADD_FAILURE() << "the writer never finished";
}

TEST(AtomicFile, NothingIsVisibleBeforeCommit) {
    const test::TemporaryDirectory directory;
    {
        AtomicFile file(directory / "f");
        file.append("half");
        EXPECT_FALSE(fs::exists(directory / "f"));
    }
    EXPECT_EQ(test::files_in(directory.path()), 0U);
}

TEST(AtomicFile, ReadsBack) {
    const test::TemporaryDirectory directory;
    AtomicFile file(directory / "f");
    file.append("0123456789");
    std::byte part[4];
    file.read_at(3, part);
    EXPECT_EQ(std::memcmp(part, "3456", 4), 0);
    test::expect_error(ErrorCode::io, {"read back"}, [&] { file.read_at(8, part); });
}

TEST(AtomicFile, RefusesAFolder) {
    const test::TemporaryDirectory directory;
    test::expect_error(ErrorCode::io, {"directory"}, [&] { write_text_file(directory.path(), "x"); });
    test::expect_error(ErrorCode::io, {"cannot create"}, [&] { write_text_file(directory / "none" / "f", "x"); });
}

TEST(AtomicFile, RefusesPipesAndKeepsLinks) {
    const test::TemporaryDirectory directory;
    ASSERT_EQ(::mkfifo((directory / "pipe").c_str(), 0600), 0);
    for (const fs::path& path : {directory / "pipe", fs::path("-")})
        test::expect_error(ErrorCode::invalid_argument, {"expected"}, [&] { write_text_file(path, "new"); });
    EXPECT_TRUE(fs::is_fifo(directory / "pipe"));

    test::write_file(directory / "target", "old");
    fs::create_symlink("target", directory / "link");
    write_text_file(directory / "link", "new");
    EXPECT_TRUE(fs::is_symlink(directory / "link"));
    EXPECT_EQ(test::read_file(directory / "target"), "new");
}

}  // namespace
}  // namespace marginmerge
