// The command as a user runs it, on tiny graphs: ids, boxes, assets, faults, shards, going on after a stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "encode/image.h"
#include "encode/json_fields.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::run_cli;

std::string slurp(const std::filesystem::path& path) { return read_text_file(path.string(), 1 << 28); }

class EncodeJob : public testing::Test {
protected:
    void SetUp() override {
        std::filesystem::create_directories(in_);
        std::ofstream(in_ / "a.txt") << "the first page\fthe second page";
        std::ofstream(in_ / "b.txt") << "another file";
        Image image(56, 56);
        std::ofstream(in_ / "c.png", std::ios::binary) << encode_png(image);
    }
    std::string encode(const std::string& more, const std::string& out = "docs.safetensors") const {
        return "encode " + in_.string() + " --encoder " + ENCODE_TEST_MODELS + "/colqwen.json -o " +
               (folder_ / out).string() + " " + more;
    }
    test::TemporaryDirectory folder_;
    std::filesystem::path in_ = folder_ / "in";
};

TEST_F(EncodeJob, PagesBecomeDocumentsWithPlaces) {
    const auto result = run_cli(encode("--json"));
    ASSERT_EQ(result.status, 0) << result.err;
    const auto report = nlohmann::json::parse(result.out);
    EXPECT_EQ(report["pages"], 4);
    EXPECT_EQ(report["files"], 3);
    const MultiVectorSet set = read_multi_vectors(folder_ / "docs.safetensors");
    ASSERT_EQ(set.size(), 4U);
    EXPECT_EQ(set.id(0), "a.txt#1");
    EXPECT_EQ(set.id(1), "a.txt#2");
    EXPECT_EQ(set.id(3), "c.png#1");
    EXPECT_EQ(set.type(), ScalarType::f16);
    EXPECT_TRUE(set.has_boxes());
    EXPECT_EQ(set.metadata().at("encoder"), "colqwen2.5-v0.1");
    std::ifstream lines(folder_ / "docs.safetensors.assets/pages.jsonl");
    std::string line;
    std::size_t count = 0;
    while (std::getline(lines, line)) {
        const auto page = nlohmann::json::parse(line);
        EXPECT_EQ(page["id"], set.id(count++));
        EXPECT_TRUE(std::filesystem::exists(folder_ / "docs.safetensors.assets" / page["image"].get<std::string>()));
        EXPECT_TRUE(
            std::filesystem::exists(folder_ / "docs.safetensors.assets" / page.value("text_file", "pages.jsonl")));
    }
    EXPECT_EQ(count, 4U);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "docs.safetensors.partial"));
}

TEST_F(EncodeJob, ThreadsDoNotChangeTheBytes) {
    ASSERT_EQ(run_cli(encode("--threads 1", "one")).status, 0);
    ASSERT_EQ(run_cli(encode("--threads 3", "three")).status, 0);
    EXPECT_EQ(slurp(folder_ / "one"), slurp(folder_ / "three"));
    EXPECT_EQ(slurp(folder_ / "one.assets/pages.jsonl"), slurp(folder_ / "three.assets/pages.jsonl"));
}

TEST_F(EncodeJob, BrokenFilesAreReportedAndSkipped) {
    std::ofstream(in_ / "broken.pdf") << "%PDF-1.4 but not really";
    std::ofstream(in_ / "empty.png") << "";
    const auto result = run_cli(encode(""));
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, testing::HasSubstr("skipped broken.pdf: "));
    EXPECT_THAT(result.err, testing::HasSubstr("skipped empty.png: "));
    EXPECT_THAT(result.err, testing::HasSubstr("2 of 6 were skipped"));
    EXPECT_EQ(read_multi_vectors(folder_ / "docs.safetensors").size(), 4U);
    const auto strict = run_cli(encode("--strict", "strict"));
    EXPECT_EQ(strict.status, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "strict"));
}

TEST_F(EncodeJob, ShardsAddUpToTheWhole) {
    ASSERT_EQ(run_cli(encode("", "whole")).status, 0);
    std::set<std::string> ids;
    for (const std::string shard : {"1/2", "2/2"}) {
        ASSERT_EQ(run_cli(encode("--shard " + shard, "part" + shard.substr(0, 1))).status, 0);
        const auto part = read_multi_vectors(folder_ / ("part" + shard.substr(0, 1)));
        for (std::size_t i = 0; i < part.size(); ++i) EXPECT_TRUE(ids.insert(part.id(i)).second);
    }
    EXPECT_EQ(ids.size(), 4U);
    EXPECT_EQ(run_cli(encode("--shard 3/2")).status, 2);
    EXPECT_EQ(run_cli(encode("--shard x")).status, 2);
}

TEST_F(EncodeJob, GoesOnAfterAStop) {
    ASSERT_EQ(run_cli(encode("", "whole")).status, 0);
    // More pages than one unit holds, and a file at the end that stops a strict run.
    std::string pages;
    for (int i = 0; i < 40; ++i) pages += "page " + std::to_string(i) + "\f";
    std::ofstream(in_ / "a.txt") << pages;
    Image wide(3000, 3);
    std::ofstream(in_ / "z.png", std::ios::binary) << encode_png(wide);
    ASSERT_EQ(run_cli(encode("--strict --threads 1")).status, 1);
    EXPECT_TRUE(std::filesystem::exists(folder_ / "docs.safetensors.partial"));
    std::filesystem::remove(in_ / "z.png");
    const auto again = run_cli(encode("--json"));
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_GE(nlohmann::json::parse(again.out)["reused"].get<int>(), 32);
    ASSERT_EQ(run_cli(encode("--fresh", "fresh")).status, 0);
    EXPECT_EQ(slurp(folder_ / "docs.safetensors"), slurp(folder_ / "fresh"));
}

TEST_F(EncodeJob, PcaWritesACardForQueries) {
    const auto result = run_cli(encode("--pca 4 --json --type f32"));
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(read_multi_vectors(folder_ / "docs.safetensors").dim(), 4U);
    std::ofstream(folder_ / "q.tsv") << "q1\tthe first\nq2\tand the second\n";
    const auto queries =
        run_cli("encode --queries " + (folder_ / "q.tsv").string() + " -o " + (folder_ / "q").string() + " --encoder " +
                nlohmann::json::parse(result.out)["encoder"].get<std::string>());
    ASSERT_EQ(queries.status, 0) << queries.err;
    const auto set = read_multi_vectors(folder_ / "q");
    EXPECT_EQ(set.dim(), 4U);
    EXPECT_EQ(set.id(1), "q2");
}

TEST_F(EncodeJob, QueryFiles) {
    const std::string rest =
        std::string(" --encoder ") + ENCODE_TEST_MODELS + "/colpali.json -o " + (folder_ / "q").string();
    std::ofstream(folder_ / "q.txt") << "what is this\n\nthe price\n";
    ASSERT_EQ(run_cli("encode --queries " + (folder_ / "q.txt").string() + rest).status, 0);
    EXPECT_EQ(read_multi_vectors(folder_ / "q").size(), 2U);
    std::ofstream(folder_ / "q.jsonl") << R"({"_id": "x", "text": "what"})"
                                       << "\n"
                                       << R"({"id": 7, "text": "the"})"
                                       << "\n";
    ASSERT_EQ(run_cli("encode --queries " + (folder_ / "q.jsonl").string() + rest).status, 0);
    EXPECT_EQ(read_multi_vectors(folder_ / "q").id(1), "7");
    std::ofstream(folder_ / "bad.tsv") << "no tab here\n";
    const auto bad = run_cli("encode --queries " + (folder_ / "bad.tsv").string() + rest);
    EXPECT_EQ(bad.status, 1);
    EXPECT_THAT(bad.err, testing::HasSubstr("line 1: expected an id, a tab and the query"));
    EXPECT_EQ(run_cli("encode" + rest).status, 2);
}

}  // namespace
}  // namespace marginmerge
