#include "learn/validation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/npy.h"

namespace marginmerge {
namespace {

TEST(Validation, FiguresOfTheReference) {
    const Matrix full = test::load_floats(test::oracle("protocol/metric_full_scores.npy"));
    const Matrix compressed = test::load_floats(test::oracle("protocol/metric_compressed_scores.npy"));
    const auto gold = test::load_ints(test::oracle("protocol/metric_gold.npy"));
    const Matrix ndcg_full = test::load_floats(test::oracle("protocol/metric_ndcg5_full.npy"));
    const Matrix ndcg_compressed = test::load_floats(test::oracle("protocol/metric_ndcg5_compressed.npy"));
    std::ifstream in(test::oracle("protocol/metrics.json"));
    const auto expected = nlohmann::json::parse(in);
    std::vector<RelevantSet> relevant(full.rows());
    double mean_full = 0, mean_compressed = 0;
    for (std::size_t q = 0; q < full.rows(); ++q) {
        relevant[q] = {{static_cast<std::size_t>(gold[q])}, {1}};
        mean_full += ndcg_full.data()[q] / static_cast<double>(full.rows());
        mean_compressed += ndcg_compressed.data()[q] / static_cast<double>(full.rows());
    }
    const ValidationFigures figures = validation_figures(full, compressed, relevant);
    EXPECT_NEAR(figures.full_ndcg, mean_full, 1e-6);
    EXPECT_NEAR(figures.ndcg, mean_compressed, 1e-6);
    EXPECT_NEAR(figures.flips, expected.at("flip_rate").get<double>(), 1e-9);
}

TEST(Validation, EqualScoresHaveNoFlipsAndNoError) {
    Matrix full(2, 4);
    for (std::size_t i = 0; i < 8; ++i) full.data()[i] = static_cast<float>((i * 5) % 7);
    const auto relevant = top_as_relevant(full, 2);
    EXPECT_EQ(relevant[0].columns, (std::vector<std::size_t>{1, 2}));
    const ValidationFigures same = validation_figures(full, full, relevant);
    EXPECT_EQ(same.flips, 0);
    EXPECT_EQ(same.error, 0);
    EXPECT_EQ(same.ndcg, 1);
    Matrix reversed(2, 4);
    for (std::size_t i = 0; i < 8; ++i) reversed.data()[i] = -full.data()[i];
    EXPECT_EQ(validation_figures(full, reversed, relevant).flips, 1);
}

TEST(Validation, GradesAndSeveralRelevantDocuments) {
    Matrix scores(1, 3);
    scores(0, 0) = 3;
    scores(0, 1) = 2;
    scores(0, 2) = 1;
    const std::vector<RelevantSet> relevant{{{1, 2}, {1, 2}}};
    const double expected = (1 / std::log2(3.0) + 3 / 2.0) / (3 + 1 / std::log2(3.0));
    EXPECT_NEAR(validation_figures(scores, scores, relevant).ndcg, expected, 1e-12);
}

}  // namespace
}  // namespace marginmerge
