#include "marginmerge/jobs/compress.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/random.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "marginmerge/jobs/compress_pages.h"
#include "marginmerge/jobs/model_file.h"
#include "merge/construct.h"
#include "support/compress_case.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"
#include "support/thread_cluster.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::TemporaryDirectory;

// Ragged pages, one of them empty, with grids, and a model that suits them.
class Compress : public testing::Test {
protected:
    Compress() {
        MultiVectorBuilder builder(24);
        for (std::size_t i = 0; i < 23; ++i)
            builder.add(fmt::format("page-{}", i), test::random_page(i == 5 ? 0 : 30 + 7 * i, 24, 12, 0.6, i), {5, 6});
        write_multi_vectors(folder / "docs", builder.finish(), ScalarType::f16);
        save_model(folder / "model", test::random_model(16, 24, 3));
    }

    CompressOptions options(const std::string& output) const {
        CompressOptions o;
        o.documents = folder / "docs";
        o.model = folder / "model";
        o.output = folder / output;
        o.recipe.keep = 0.1;
        o.recipe.fill = "farthest";
        o.threads = 1;
        o.chunk_bytes = 20000;  // several pages a chunk
        return o;
    }

    bool leftovers(const std::string& output) const {
        for (const auto& entry : fs::directory_iterator(folder.path()))
            if (entry.path().filename().string().starts_with(output + ".")) return true;
        return false;
    }

    TemporaryDirectory folder;
};

TEST_F(Compress, WritesWhatThePagesGive) {
    const CompressReport report = compress(options("out"));
    const MultiVectorSet docs = read_multi_vectors(folder / "docs"), out = read_multi_vectors(folder / "out");
    const Model model = load_model(folder / "model");
    ASSERT_EQ(out.size(), 23u);
    EXPECT_EQ(report.pages, 23u);
    EXPECT_EQ(report.vectors_out, out.total_vectors());
    EXPECT_EQ(report.vectors_in, docs.total_vectors());
    EXPECT_EQ(out.type(), ScalarType::f16);
    EXPECT_FALSE(leftovers("out"));
    PageWorkspace w;
    for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_EQ(out.id(i), docs.id(i));
        EXPECT_EQ(out.grid(i).columns, 5);
        ASSERT_EQ(out.vectors_of(i), Budget{0.1}.count(docs.vectors_of(i)));
        const Matrix v = to_float(docs.vectors(i));
        const CompressedPage page = compress_page({v, {5, 6}, mix_seed(42, i)}, model, report.recipe, w);
        EXPECT_LE(test::largest_gap(to_float(out.vectors(i)), page.representatives), 1e-3);
        EXPECT_TRUE(std::ranges::equal(out.owner(i), page.owner));
    }
}

TEST_F(Compress, SameBytesForAnyThreadsAndChunks) {
    for (const char* representative : {"learned", "kmeans", "ward", "tome"}) {
        auto o = options("one");
        o.recipe.representative = representative;
        compress(o);
        o.output = folder / "three";
        o.threads = 3;
        o.chunk_bytes = 5000;
        compress(o);
        EXPECT_EQ(test::read_file(folder / "one"), test::read_file(folder / "three")) << representative;
    }
}

TEST_F(Compress, SameBytesForAnyNumberOfProcesses) {
    compress(options("one"));
    for (const std::size_t size : {2u, 4u}) {
        const auto reports = test::on_cluster(size, [&](Cluster* cluster) {
            auto o = options("several");
            o.cluster = cluster;
            return compress(o);
        });
        EXPECT_EQ(test::read_file(folder / "one"), test::read_file(folder / "several"));
        EXPECT_EQ(reports[0].pages, 23u);
        for (std::size_t r = 1; r < size; ++r) EXPECT_EQ(reports[r].pages, 0u) << "only the first reports";
        EXPECT_FALSE(leftovers("several"));
    }
}

// Pages in memory, each where it lies, give the vectors and owners of the file.
TEST_F(Compress, PagesInMemoryGiveTheSameVectors) {
    compress(options("file"));
    const MultiVectorSet docs = read_multi_vectors(folder / "docs"), file = read_multi_vectors(folder / "file");
    const Model model = load_model(folder / "model");
    CompressPagesOptions o;
    o.recipe = options("").recipe;
    o.type = ScalarType::f16;
    const MultiVectorSet set = compress_pages(docs, &model, o).pages;
    ASSERT_EQ(set.all_vectors().bytes(), file.all_vectors().bytes());
    EXPECT_EQ(std::memcmp(set.all_vectors().data, file.all_vectors().data, set.all_vectors().bytes()), 0);
    for (std::size_t i = 0; i < set.size(); ++i) {
        EXPECT_TRUE(std::ranges::equal(set.owner(i), file.owner(i)));
        EXPECT_EQ(set.id(i), file.id(i));
        EXPECT_EQ(set.grid(i).rows, 6);
    }
    EXPECT_THROW(compress_pages(set, &model, o), Error) << "compressed already";
    o.ids = {"one name for many pages"};
    EXPECT_THROW(compress_pages(docs, &model, o), Error);
}

// The process dies without any chance to clean up, again and again, at other places.
TEST_F(Compress, KilledAndStartedAgainGivesTheSameFile) {
    compress(options("whole"));
    for (const std::size_t survive : {2u, 5u, 9u, 14u, 22u}) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            Progress die = [&](const ProgressUpdate& u) {
                if (u.done >= survive) ::kill(::getpid(), SIGKILL);
            };
            auto o = options("killed");
            for (;;) compress(o, die);  // progress is not reported for every page: insist
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        ASSERT_TRUE(WIFSIGNALED(status));
    }
    EXPECT_TRUE(fs::exists(folder / "killed.partial"));
    std::ofstream(folder / "killed.tmp-1-0") << "left behind";
    const CompressReport report = compress(options("killed"));
    EXPECT_GT(report.resumed_pages, 0u);
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "killed"));
    EXPECT_FALSE(leftovers("killed"));
}

TEST_F(Compress, AbandonedThenResumedAfterDamage) {
    compress(options("whole"));
    auto o = options("out");
    std::size_t chunks = 0;
    const auto stop_late = [&](const ProgressUpdate& u) {
        if (u.done == u.total) throw std::runtime_error("stop");
    };
    EXPECT_THROW(compress(o, stop_late), std::runtime_error);
    for (const auto& entry : fs::directory_iterator(folder / "out.partial")) {
        if (entry.path().extension() != ".chunk") continue;
        if (++chunks % 2 == 0) continue;
        std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(3);
        file.put('?');  // a flipped byte must not reach the output
    }
    EXPECT_GE(chunks, 3u);
    EXPECT_EQ(compress(o).pages, 23u);
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "out"));
}

TEST_F(Compress, OtherSettingsDiscardAnInterruptedRun) {
    auto o = options("out");
    EXPECT_THROW(compress(o,
                          [](const ProgressUpdate& u) {
                              if (u.done == u.total) throw std::runtime_error("stop");
                          }),
                 std::runtime_error);
    o.recipe.keep = 0.2;
    const CompressReport report = compress(o);
    EXPECT_EQ(report.resumed_pages, 0u);
    ASSERT_EQ(report.notes.size(), 1u);
    EXPECT_NE(report.notes[0].find("discarded"), std::string::npos);
}

TEST_F(Compress, ShardsJoinToTheWholeFile) {
    compress(options("whole"));
    std::vector<fs::path> parts;
    for (std::size_t i = 1; i <= 4; ++i) {
        auto o = options(fmt::format("part{}", i));
        o.shard = {i, 4};
        compress(o);
        parts.insert(parts.begin(), o.output);  // any order
    }
    join_shards(parts, folder / "joined");
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "joined"));
    expect_error(ErrorCode::invalid_argument, {"4 shards"}, [&] { join_shards({parts[0], parts[1]}, folder / "x"); });
    expect_error(ErrorCode::invalid_argument, {"shard"}, [&] { join_shards({folder / "whole"}, folder / "x"); });
    auto other = options("part1");
    other.shard = {1, 4};
    other.recipe.keep = 0.3;
    compress(other);
    expect_error(ErrorCode::invalid_argument, {"recipe"}, [&] { join_shards(parts, folder / "x"); });
    EXPECT_FALSE(fs::exists(folder / "x"));
}

TEST_F(Compress, BalancedSharesTheBudgetOfTheWholeCorpusInEveryShard) {
    const auto plain = compress(options("plain"));
    auto o = options("whole");
    o.recipe.balance = true;
    const auto whole = compress(o);
    EXPECT_LE(whole.vectors_out, plain.vectors_out);
    EXPECT_GT(whole.recipe.budget.scale, 0);
    const auto set = read_multi_vectors(folder / "whole");
    for (std::size_t p = 0; p < set.size(); ++p)
        EXPECT_EQ(set.vectors_of(p), whole.recipe.budget.count(set.source_vectors_of(p)));
    EXPECT_THAT(set.metadata().at("recipe"), testing::HasSubstr("\"balance\""));
    std::vector<fs::path> parts;
    for (std::size_t i = 1; i <= 2; ++i) {
        o.output = folder / fmt::format("part{}", i);
        o.shard = {i, 2};
        compress(o);
        parts.push_back(o.output);
    }
    join_shards(parts, folder / "joined");
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "joined"));
    o = options("out");
    o.recipe.balance = true;
    o.recipe.keep.reset();
    o.recipe.vectors = 3;
    expect_error(ErrorCode::invalid_argument, {"balance", "3 vectors"}, [&] { compress(o); });
}

TEST_F(Compress, MoreShardsThanPages) {
    std::vector<fs::path> parts;
    compress(options("whole"));
    for (std::size_t i = 1; i <= 40; ++i) {
        auto o = options(fmt::format("part{}", i));
        o.shard = {i, 40};
        compress(o);
        parts.push_back(o.output);
    }
    join_shards(parts, folder / "joined");
    EXPECT_EQ(test::read_file(folder / "whole"), test::read_file(folder / "joined"));
}

TEST_F(Compress, RefusesWhatMakesNoSense) {
    auto o = options("out");
    o.model.clear();
    o.recipe.preset = "paper";
    o.recipe.fill.reset();
    expect_error(ErrorCode::invalid_argument, {"model", "network"}, [&] { compress(o); });
    o = options("out");
    o.shard = {5, 4};
    expect_error(ErrorCode::invalid_argument, {"shard"}, [&] { compress(o); });
    o = options("docs");
    expect_error(ErrorCode::invalid_argument, {"an input"}, [&] { compress(o); });
    compress(options("out"));
    o = options("again");
    o.documents = folder / "out";
    expect_error(ErrorCode::invalid_argument, {"already compressed"}, [&] { compress(o); });
    save_model(folder / "model", test::random_model(16, 32, 3));
    o = options("out");
    expect_error(ErrorCode::invalid_argument, {"24", "32"}, [&] { compress(o); });
    o.documents = folder / "nowhere";
    expect_error(ErrorCode::not_found, {"nowhere"}, [&] { compress(o); });
    EXPECT_FALSE(leftovers("again"));
}

TEST_F(Compress, NamesTheDocumentAndRowOfNaN) {
    MultiVectorBuilder builder(24);
    Matrix bad = test::random_page(9, 24, 3, 0.5, 1);
    bad(7, 2) = NAN;
    builder.add("good", test::random_page(9, 24, 3, 0.5, 1));
    builder.add("bad", bad);
    write_multi_vectors(folder / "docs", builder.finish(), ScalarType::f32);
    expect_error(ErrorCode::corrupt, {"'bad'", "vector 7"}, [&] { compress(options("out")); });
    EXPECT_FALSE(fs::exists(folder / "out"));
}

TEST_F(Compress, CommandLine) {
    const auto file = [&](const char* name) { return (folder / name).string(); };
    const auto ok = test::run_cli(fmt::format("compress {} -m {} --keep 0.1 --fill farthest -o {} --json", file("docs"),
                                              file("model"), file("out")));
    EXPECT_EQ(ok.status, 0) << ok.err;
    EXPECT_EQ(nlohmann::json::parse(ok.out).at("pages"), 23);
    compress(options("library"));
    EXPECT_EQ(test::read_file(folder / "out"), test::read_file(folder / "library"));
    EXPECT_EQ(test::run_cli(fmt::format("compress {} --preset paper -o {}", file("docs"), file("x"))).status, 2);
    EXPECT_EQ(test::run_cli(fmt::format("compress {} --keep 0 -o {}", file("docs"), file("x"))).status, 2);
    EXPECT_EQ(test::run_cli(fmt::format("compress {} -o {}", file("absent"), file("x"))).status, 1);
}

TEST_F(Compress, NumbersThatAreNoneLeaveNothingBehind) {
    const MultiVectorSet set = read_multi_vectors(folder / "docs");
    MultiVectorBuilder builder(24);
    for (std::size_t i = 0; i < set.size(); ++i) {
        Matrix v = to_float(set.vectors(i));
        if (i == 20) v(4, 0) = std::nanf("");  // not in the first chunk
        builder.add(set.id(i), v);
    }
    write_multi_vectors(folder / "bad", builder.finish(), ScalarType::f16);
    CompressOptions o = options("out");
    o.documents = folder / "bad";
    expect_error(ErrorCode::corrupt, {"page-20", "finite"}, [&] { compress(o); });
    EXPECT_FALSE(fs::exists(folder / "out"));
    EXPECT_FALSE(leftovers("out"));
    o = options("model");
    expect_error(ErrorCode::invalid_argument, {"an input"}, [&] { compress(o); });
}

}  // namespace
}  // namespace marginmerge
