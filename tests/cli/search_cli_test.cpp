// search, evaluate and index as a user runs them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

struct Files {
    test::TemporaryDirectory directory;
    std::string docs = (directory / "docs.safetensors").string();
    std::string queries = (directory / "queries.safetensors").string();
    std::string index = (directory / "index").string();
    Files() {
        write_multi_vectors(docs, test::random_pages(25, 9, 32, 1), ScalarType::f16);
        write_multi_vectors(queries, test::random_pages(4, 6, 32, 2, "q"), ScalarType::f16);
    }
};

TEST(SearchCommand, PrintsATrecRun) {
    const Files f;
    const auto r = test::run_cli("search " + f.docs + " --queries " + f.queries + " -k 100");
    ASSERT_EQ(r.status, 0) << r.err;
    std::istringstream lines(r.out);
    std::string query, q0, doc, tag;
    std::size_t rank = 0, count = 0, expected = 1;
    float score = 0, previous = 0;
    while (lines >> query >> q0 >> doc >> rank >> score >> tag) {
        EXPECT_EQ(q0, "Q0");
        if (rank == 1) expected = 1;
        EXPECT_EQ(rank, expected++);
        if (rank > 1) {
            EXPECT_LE(score, previous);
        }
        previous = score;
        ++count;
    }
    EXPECT_EQ(count, 4U * 25);
    const auto single = test::run_cli("search " + f.docs + " --queries " + f.queries + " -k 100 --threads 1");
    EXPECT_EQ(single.out, r.out);
}

TEST(SearchCommand, WritesFilesAndJson) {
    const Files f;
    const auto run = f.directory / "out.run";
    ASSERT_EQ(test::run_cli("search " + f.docs + " --queries " + f.queries + " -o " + run.string()).status, 0);
    EXPECT_GT(std::filesystem::file_size(run), 100U);
    const auto r = test::run_cli("search " + f.docs + " --queries " + f.queries + " -k 3 --json --quiet");
    const auto json = nlohmann::json::parse(r.out);
    EXPECT_EQ(json["results"].size(), 4U);
    EXPECT_EQ(json["results"][0]["hits"].size(), 3U);
    EXPECT_EQ(r.err, "");
}

TEST(SearchCommand, SaysWhatIsWrong) {
    const Files f;
    EXPECT_EQ(test::run_cli("search " + f.docs).status, 2);
    EXPECT_EQ(test::run_cli("search /nonexistent --queries " + f.queries).status, 1);
    EXPECT_EQ(test::run_cli("search " + f.docs + " --queries " + f.queries + " --filter 'year >'").status, 2);
    EXPECT_EQ(test::run_cli("search " + f.docs + " --queries " + f.queries + " --full").status, 2);
    auto r = test::run_cli("search " + f.directory.path().string() + " --queries " + f.queries);
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    r = test::run_cli("search " + f.docs + " --queries " + f.queries + " --filter year=2020");
    EXPECT_EQ(r.status, 0);
    EXPECT_THAT(r.err, testing::HasSubstr("no page passes the filter"));
}

TEST(IndexCommand, AddSearchDeleteCompactVerify) {
    const Files f;
    const auto metadata = (f.directory / "meta.jsonl").string();
    {
        std::ofstream out(metadata);
        for (int i = 0; i < 25; ++i) out << R"({"id":"page-)" << i << R"(","year":)" << 2000 + i << "}\n";
    }
    auto r = test::run_cli("index add " + f.index + " " + f.docs + " --metadata " + metadata + " --example-queries " +
                           f.queries);
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(test::run_cli("index add " + f.index + " " + f.docs).status, 2);  // there already
    r = test::run_cli("search " + f.index + " --queries " + f.queries +
                      " -k 99 --filter 'year>=2020' --filter 'year<2023' --json");
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(nlohmann::json::parse(r.out)["results"][0]["hits"].size(), 3U);
    EXPECT_EQ(test::run_cli("index delete " + f.index + " page-3 page-4").status, 0);
    EXPECT_EQ(test::run_cli("index delete " + f.index + " page-3").status, 1);
    EXPECT_EQ(test::run_cli("index delete " + f.index).status, 2);
    r = test::run_cli("index compact " + f.index + " --code int8 --json");
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(nlohmann::json::parse(r.out)["pages"], 23);
    r = test::run_cli("index verify " + f.index);
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("23 pages"), std::string::npos) << r.out;
    {
        std::fstream damage(f.index + "/pages-00000003.safetensors", std::ios::in | std::ios::out | std::ios::binary);
        ASSERT_TRUE(damage.good());
        damage.seekp(-5, std::ios::end);
        damage.put('#');
    }
    r = test::run_cli("index verify " + f.index);
    EXPECT_EQ(r.status, 1);
    EXPECT_NE(r.err.find("xxh64"), std::string::npos) << r.err;
}

TEST(EvaluateCommand, JudgesAndReports) {
    const Files f;
    const auto html = f.directory / "report.html";
    auto r =
        test::run_cli("evaluate --full " + f.docs + " --index " + f.docs + " --queries " + f.queries +
                      " --no-labels --report " + html.string() + " --per-query " + (f.directory / "q.csv").string());
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_NE(r.out.find("docs"), std::string::npos);
    EXPECT_GT(std::filesystem::file_size(html), 3000U);
    r = test::run_cli("evaluate --full " + f.docs + " --index " + f.docs + " --queries " + f.queries +
                      " --no-labels --json");
    EXPECT_EQ(nlohmann::json::parse(r.out)["indexes"][0]["fidelity"]["flip_rate"], 0.0);
    EXPECT_EQ(test::run_cli("evaluate --full " + f.docs + " --index " + f.docs + " --queries " + f.queries).status, 2);
}

}  // namespace
}  // namespace marginmerge
