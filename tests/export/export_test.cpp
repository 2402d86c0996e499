// export as a job and as a command, for targets that are files.
#include "marginmerge/jobs/export.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "export/survey.h"
#include "export/target.h"
#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "marginmerge/index/index_writer.h"
#include "support/expect_error.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

namespace fs = std::filesystem;

struct Fixture {
    test::TemporaryDirectory directory;
    fs::path docs = directory / "docs.safetensors", queries = directory / "queries.safetensors";
    fs::path index = directory / "index", out = directory / "out";
    MultiVectorSet pages = test::random_pages(30, 9, 32, 1), questions = test::random_pages(5, 6, 32, 2, "q");
    Fixture() {
        write_multi_vectors(docs, pages, ScalarType::f32);
        write_multi_vectors(queries, questions, ScalarType::f32);
    }
    ExportOptions options(const std::string& target) const {
        ExportOptions o;
        o.index = docs;
        o.target = target;
        o.output = out;
        o.queries = queries;
        return o;
    }
    std::string text(const std::string& name) const { return test::read_file(out / name); }
};

TEST(Export, EveryTargetWritesAllItsParts) {
    for (const ExportTarget* target : export_targets()) {
        const Fixture f;
        const ExportReport report = export_index(f.options(std::string(target->name())));
        EXPECT_EQ(report.pages, 30U);
        EXPECT_EQ(report.vectors, f.pages.total_vectors());
        for (const char* file : {"README.md", "expected.tsv", "export.json"})
            EXPECT_TRUE(fs::exists(f.out / file)) << target->name() << " " << file;
        const std::string readme = f.text("README.md");
        EXPECT_NE(readme.find("30 pages"), std::string::npos);
        EXPECT_EQ(readme.find("{{"), std::string::npos) << target->name();
        bool query = false;
        for (const auto& entry : fs::recursive_directory_iterator(f.out)) {
            query = query || entry.path().filename().string().rfind("query", 0) == 0;
            if (entry.is_regular_file() && entry.file_size() < (1U << 16) && entry.path().extension() != ".native") {
                const std::string content = test::read_file(entry.path());
                EXPECT_EQ(content.find("{{name"), std::string::npos) << entry.path();
                EXPECT_EQ(content.find("{{dim"), std::string::npos) << entry.path();
            }
        }
        EXPECT_TRUE(query) << target->name();
    }
}

TEST(Export, ExpectedIsOurOwnAnswer) {
    const Fixture f;
    ExportOptions o = f.options("parquet");
    o.query = "q3";
    EXPECT_EQ(export_index(o).query_id, "q3");
    std::istringstream lines(f.text("expected.tsv"));
    std::string header, rank, id;
    float score = 0;
    std::getline(lines, header);
    for (const Hit& hit : Index::open(f.docs)->search(f.questions.vectors(3))) {
        ASSERT_TRUE(lines >> rank >> id >> score);
        EXPECT_EQ(id, hit.id);
        EXPECT_EQ(score, hit.score);
    }
}

TEST(Export, LeavesTombstonesOutAndCarriesMetadata) {
    const Fixture f;
    {
        IndexWriter writer(f.index);
        std::vector<std::string> metadata(30);
        metadata[4] = R"({"source":"tab\there \\ and \"quotes\"","year":2020})";
        writer.add(f.pages, metadata, {.example_queries = &f.questions});
        writer.remove(std::vector<std::string>{f.pages.id(0), f.pages.id(7)});
    }
    ExportOptions o = f.options("pgvector");
    o.index = f.index;
    o.queries.clear();
    const ExportReport report = export_index(o);
    EXPECT_EQ(report.pages, 28U);
    EXPECT_EQ(report.query_id, "q0");
    std::istringstream lines(f.text("pages.copy"));
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count) {
        std::istringstream fields(line);
        std::string position, id, metadata, vectors;
        std::getline(fields, position, '\t');
        std::getline(fields, id, '\t');
        std::getline(fields, metadata, '\t');
        std::getline(fields, vectors, '\t');
        EXPECT_EQ(position, std::to_string(count));
        EXPECT_NE(id, f.pages.id(0));
        EXPECT_NE(id, f.pages.id(7));
        if (id == f.pages.id(4))
            EXPECT_EQ(metadata, R"({"source":"tab\\there \\\\ and \\"quotes\\"","year":2020})");
        else
            EXPECT_EQ(metadata, "\\N");
        EXPECT_EQ(vectors.substr(0, 3), "{\"[");
        EXPECT_EQ(vectors.substr(vectors.size() - 3), "]\"}");
    }
    EXPECT_EQ(count, 28U);
}

TEST(Export, ClickHouseBlocksHoldTheFloats) {
    const Fixture f;
    export_index(f.options("clickhouse"));
    const std::string bytes = f.text("pages.native");
    EXPECT_EQ(bytes.substr(0, 2), std::string("\x04\x1E", 2));  // columns, rows
    EXPECT_NE(bytes.find("\x15"
                         "Array(Array(Float32))"),
              std::string::npos);
    const Matrix last = to_float(f.pages.vectors(29));
    EXPECT_EQ(bytes.substr(bytes.size() - last.size() * 4),
              std::string(reinterpret_cast<const char*>(last.data()), last.size() * 4));
}

TEST(Export, SmallBatchesGiveTheSameRows) {
    const Fixture f;
    ExportOptions o = f.options("clickhouse");
    o.batch_bytes = 2000;
    export_index(o);
    EXPECT_GT(f.text("pages.native").size(), f.pages.total_vectors() * 32 * 4 + 1000);
}

TEST(Export, UnitNormsAreMeasured) {
    test::TemporaryDirectory directory;
    // Ten pages in one direction each; odd ones are short, so that cosine ranks them otherwise.
    MultiVectorBuilder builder(16), asking(16);
    for (std::size_t p = 0; p < 12; ++p) {
        Matrix row(1, 16);
        row(0, 0) = 1;
        row(0, 1) = 0.1F * static_cast<float>(p);
        const auto scale = p % 2 == 1 ? 0.3F : 1.0F;
        for (float& x : row.flat()) x *= scale;
        builder.add(fmt::format("p{}", p), row);
    }
    Matrix query(1, 16);
    query(0, 0) = 1;
    asking.add("q", query);
    write_multi_vectors(directory / "docs", builder.finish(), ScalarType::f32);
    write_multi_vectors(directory / "queries", asking.finish(), ScalarType::f32);
    ExportOptions o;
    o.index = directory / "docs";
    o.queries = directory / "queries";
    o.target = "parquet";
    o.output = directory / "out";
    o.unit_norm = true;
    const ExportReport report = export_index(o);
    ASSERT_TRUE(report.unit_norm);
    EXPECT_EQ(report.unit_norm->queries, 1U);
    EXPECT_EQ(report.unit_norm->list_changed, 1U);
    EXPECT_EQ(report.unit_norm->first_changed, 0U);
    EXPECT_LT(report.unit_norm->overlap, 1);
    // By cosine the order is that of the angle.
    const std::string expected = test::read_file(directory / "out/expected.tsv");
    for (std::size_t p = 0; p < 10; ++p)
        EXPECT_NE(expected.find(fmt::format("{}\tp{}\t", p + 1, p)), std::string::npos) << expected;
}

TEST(Export, RankingsAreCompared) {
    const auto hits = [](std::vector<std::size_t> positions) {
        std::vector<Hit> list;
        for (const auto p : positions) list.push_back({p, std::to_string(p), 0});
        return list;
    };
    const NormCost cost =
        compare_rankings({hits({1, 2}), hits({3, 4}), hits({5, 6})}, {hits({1, 2}), hits({4, 3}), hits({5, 9})});
    EXPECT_EQ(cost.queries, 3U);
    EXPECT_EQ(cost.first_changed, 1U);
    EXPECT_EQ(cost.list_changed, 2U);
    EXPECT_NEAR(cost.overlap, (1 + 1 + 0.5) / 3, 1e-12);
}

TEST(Export, SaysWhatIsWrong) {
    const Fixture f;
    const auto wrong = [&](ErrorCode code, std::initializer_list<const char*> words, auto change) {
        ExportOptions o = f.options("parquet");
        change(o);
        test::expect_error(code, words, [&] { export_index(o); });
        EXPECT_FALSE(fs::exists(f.out));
    };
    wrong(ErrorCode::invalid_argument, {"--to", "lancedb"}, [](auto& o) { o.target = "mongodb"; });
    wrong(ErrorCode::invalid_argument, {"--name", "drop table"}, [](auto& o) { o.name = "drop table"; });
    wrong(ErrorCode::invalid_argument, {"--url", "parquet"}, [](auto& o) { o.url = "http://localhost"; });
    wrong(ErrorCode::invalid_argument, {"--ann", "parquet"}, [](auto& o) { o.ann = true; });
    wrong(ErrorCode::not_found, {"query 'q99'"}, [](auto& o) { o.query = "q99"; });
    wrong(ErrorCode::not_found, {"nowhere"}, [](auto& o) { o.index = "/nowhere"; });
    write_multi_vectors(f.directory / "narrow", test::random_pages(2, 3, 16, 2, "q"), ScalarType::f32);
    wrong(ErrorCode::invalid_argument, {"narrow", "32 dimensions", "16"},
          [&](auto& o) { o.queries = f.directory / "narrow"; });
}

TEST(ExportCommand, RunsAndExplainsItself) {
    const Fixture f;
    auto r = test::run_cli("export " + f.docs.string() + " --to lancedb -o " + f.out.string() + " --json");
    ASSERT_EQ(r.status, 0) << r.err;
    const auto json = nlohmann::json::parse(r.out);
    EXPECT_EQ(json["pages"], 30);
    EXPECT_NE(r.err.find("no queries given"), std::string::npos);
    r = test::run_cli("export " + f.docs.string() + " --to nothing -o " + f.out.string());
    EXPECT_EQ(r.status, 2);
    r = test::run_cli("export --help");
    for (const ExportTarget* target : export_targets())
        EXPECT_NE(r.out.find(std::string("  ") + std::string(target->name())), std::string::npos);
}

}  // namespace
}  // namespace marginmerge
