#include "marginmerge/jobs/explain.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "io/multi_vector_file.h"
#include "marginmerge/jobs/model_file.h"
#include "support/compress_case.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using test::CompressCase;
using test::TemporaryDirectory;

void write_case(const CompressCase& c, const TemporaryDirectory& folder) {
    MultiVectorBuilder builder(c.V.cols());
    builder.add("the page", c.V);
    write_multi_vectors(folder / "docs", builder.finish(), ScalarType::f16);
    save_model(folder / "model", c.model);
}

// The way a user gets at the reference values: files in, .npy out.
TEST(Explain, WritesTheReferenceValues) {
    for (const char* name : {"tiny", "photo_238", "page_1024"}) {
        const CompressCase c = test::load_case(name);
        const TemporaryDirectory folder;
        write_case(c, folder);
        const auto result =
            test::run_cli(fmt::format("explain {} --doc 'the page' -m {} --keep {} --anchors coverage --fill index "
                                      "--representative learned -o {}",
                                      (folder / "docs").string(), (folder / "model").string(),
                                      c.meta.at("rho").get<double>(), (folder / "out").string()));
        ASSERT_EQ(result.status, 0) << result.err;
        EXPECT_NE(result.out.find("effective rank"), std::string::npos);
        const auto file = [&](const char* array) { return folder / "out" / (std::string(array) + ".npy"); };
        const auto anchors = test::load_ints(file("anchors"));
        EXPECT_EQ(anchors, c.ints("greedy_order"));
        const auto assign = test::load_ints(file("assign")), expected = c.ints("assign"), ascending = c.ints("anchors");
        for (std::size_t i = 0; i < assign.size(); ++i)
            EXPECT_EQ(anchors[static_cast<std::size_t>(assign[i])], ascending[static_cast<std::size_t>(expected[i])]);
        for (const char* array : {"relevance", "features", "alpha", "responses", "coverage", "omega", "anchor_cos"})
            EXPECT_LE(test::largest_gap(test::load_floats(file(array)), c.floats(array)), 1e-5) << name << ' ' << array;
        EXPECT_LE(test::largest_gap(test::load_floats(file("residual")), c.floats("residual")), 2e-5) << name;
        const Matrix made = test::load_floats(file("representatives")), reference = c.floats("representatives");
        for (std::size_t r = 0; r < anchors.size(); ++r) {
            const auto number =
                static_cast<std::size_t>(std::find(ascending.begin(), ascending.end(), anchors[r]) - ascending.begin());
            EXPECT_LE(test::largest_gap(made.view().middle_rows(r, 1), reference.view().middle_rows(number, 1)), 1e-5);
        }
    }
}

TEST(Explain, EveryMethodWithAndWithoutModel) {
    const CompressCase c = test::load_case("photo_238");
    const TemporaryDirectory folder;
    write_case(c, folder);
    for (const char* representative : {"anchor", "uniform", "response", "learned", "kmeans", "ward", "tome"}) {
        ExplainOptions o;
        o.documents = folder / "docs";
        o.document = "the page";
        o.model = folder / "model";
        o.recipe.representative = representative;
        o.output = folder / representative;
        const ExplainReport report = explain(o);
        EXPECT_EQ(report.clusters.size(), report.kept);
        EXPECT_GT(report.kept_response, 0.3 * report.full_response) << representative;
        std::size_t patches = 0;
        for (const auto& cluster : report.clusters) patches += cluster.patches;
        EXPECT_EQ(patches, 238u);
        EXPECT_TRUE(std::filesystem::exists(folder / representative / "alpha.npy"));
        EXPECT_TRUE(std::filesystem::exists(folder / representative / "meta.json"));
    }
    ExplainOptions o;
    o.documents = folder / "docs";
    o.document = "the page";
    EXPECT_TRUE(explain(o).files.empty());
    o.document = "another";
    test::expect_error(ErrorCode::not_found, {"another"}, [&] { explain(o); });
}

TEST(Explain, LeavesNoFileOfAnotherRecipe) {
    const CompressCase c = test::load_case("tiny");
    const TemporaryDirectory folder;
    write_case(c, folder);
    ExplainOptions o;
    o.documents = folder / "docs";
    o.document = "the page";
    o.model = folder / "model";
    o.output = folder / "out";
    o.recipe.representative = "uniform";
    explain(o);
    EXPECT_TRUE(std::filesystem::exists(folder / "out/greedy_gains.npy"));
    o.recipe.representative = "ward";
    explain(o);
    EXPECT_FALSE(std::filesystem::exists(folder / "out/greedy_gains.npy"));
    EXPECT_TRUE(std::filesystem::exists(folder / "out/anchors.npy"));
}

}  // namespace
}  // namespace marginmerge
