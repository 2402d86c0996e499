#include "lab/scoring.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "io/multi_vector_file.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace marginmerge::lab {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

class Scoring : public testing::Test {
protected:
    Scoring()
        : data_(load_dataset(dataset_source(std::string(MARGINMERGE_TEST_DATA) + "/lab_caches/ArxivQA"), {},
                             work_.path(), 2)) {}

    RunResult run(const nlohmann::json& method, double keep) {
        const Method m = parse_method(method);
        RunInputs in{*data_};
        in.budget.keep = keep;
        in.threads = 2;
        std::unique_ptr<Selector> selector;
        if (m.kind == "select") selector = make_selector(m.settings, *data_, 42, 2);
        in.selector = selector.get();
        in.recipe.representative = m.text("representative");
        in.recipe.budget.keep = keep;
        return run_method(m, in);
    }

    test::TemporaryDirectory work_;
    std::unique_ptr<Dataset> data_;
};

TEST_F(Scoring, TheFullIndexDiffersFromItselfInNothing) {
    const RunResult r = run("full", 1);
    EXPECT_EQ(r.ndcg, data_->full_ndcg);
    EXPECT_EQ(sum(r.flips), 0);
    EXPECT_GT(sum(r.pairs), 0);
    EXPECT_EQ(run({{"id", "all"}, {"kind", "select"}, {"selector", "random"}}, 1).ndcg, data_->full_ndcg);
    EXPECT_DOUBLE_EQ(run("random", 1).extra.at("winner_coverage"), 1);
}

TEST_F(Scoring, BudgetsAreKept) {
    const RunResult r = run("random", 0.1);
    double expected = 0;
    for (std::size_t p = 0; p < data_->documents.size(); ++p)
        expected += std::ceil(0.1 * static_cast<double>(data_->documents.vectors_of(p)));
    EXPECT_DOUBLE_EQ(r.vectors, expected / static_cast<double>(data_->documents.size()));
    EXPECT_DOUBLE_EQ(r.bytes, r.vectors * 16 * 4);
    EXPECT_EQ(run("single", 0.1).vectors, 1);
}

TEST_F(Scoring, LookingAtTheQueryFirstLosesLeast) {
    EXPECT_LE(sum(run("query_conditioned", 0.1).loss), sum(run("random", 0.1).loss));
}

TEST_F(Scoring, ARunSurvivesTheStore) {
    const RunResult r = run("random", 0.1), back = RunResult::from_json(nlohmann::json::parse(r.to_json().dump()));
    EXPECT_EQ(back.ndcg, r.ndcg);
    EXPECT_EQ(back.loss, r.loss);
    EXPECT_EQ(back.extra, r.extra);
    EXPECT_EQ(back.vectors, r.vectors);
}

TEST_F(Scoring, StructuralScoresDecideAndMissingPagesAreLeftOut) {
    EXPECT_NE(run("structural", 0.1).skipped, "");
    MultiVectorBuilder scores(1);
    for (std::size_t p = 0; p < data_->documents.size(); ++p) {
        if (p == 3) continue;
        Matrix column(data_->documents.vectors_of(p), 1);
        for (std::size_t i = 0; i < column.rows(); ++i) column(i, 0) = static_cast<float>(i);
        scores.add(data_->documents.id(p), column);
    }
    data_->source.structural = work_ / "structural.safetensors";
    write_multi_vectors(data_->source.structural, scores.finish(), ScalarType::f32);
    const RunResult r = run("structural", 0.1);
    EXPECT_EQ(r.skipped, "");
    EXPECT_NEAR(r.extra.at("subset"), 23.0 / 24, 1e-12);
    // Everything kept: what is left of the full index on the same pages.
    EXPECT_EQ(sum(run("structural", 1).flips), 0);

    MultiVectorBuilder wrong(1);
    wrong.add(data_->documents.id(0), Matrix(2, 1));
    data_->source.structural = work_ / "wrong.safetensors";
    write_multi_vectors(data_->source.structural, wrong.finish(), ScalarType::f32);
    test::expect_error(ErrorCode::corrupt, {"scores", "found 2"}, [&] { run("structural", 0.1); });
}

}  // namespace
}  // namespace marginmerge::lab
