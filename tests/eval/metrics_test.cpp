#include "marginmerge/eval/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/npy.h"

namespace marginmerge {
namespace {

nlohmann::json reference() { return nlohmann::json::parse(std::ifstream(test::oracle("protocol/metrics.json"))); }

TEST(Metrics, AgreeWithTheReferenceProtocol) {
    const Matrix full = test::load_floats(test::oracle("protocol/metric_full_scores.npy"));
    const Matrix index = test::load_floats(test::oracle("protocol/metric_compressed_scores.npy"));
    const auto gold = test::load_ints(test::oracle("protocol/metric_gold.npy"));
    const Matrix ndcg_full = test::load_floats(test::oracle("protocol/metric_ndcg5_full.npy"));
    const Matrix ndcg_index = test::load_floats(test::oracle("protocol/metric_ndcg5_compressed.npy"));
    const auto expected = reference();
    Fidelity all;
    double sum_full = 0, sum_index = 0;
    for (std::size_t q = 0; q < full.rows(); ++q) {
        const Relevance r{{static_cast<std::size_t>(gold[q])}, {1}, {1}};
        const auto f = full.view().row_span(q), c = index.view().row_span(q);
        EXPECT_NEAR(ndcg(rank_pages(f, 5), r, 5), ndcg_full(0, q), 1e-6);
        EXPECT_NEAR(ndcg(rank_pages(c, 5), r, 5), ndcg_index(0, q), 1e-6);
        sum_full += ndcg(rank_pages(f, 5), r, 5);
        sum_index += ndcg(rank_pages(c, 5), r, 5);
        all.add(fidelity(f, c, r, 1));
    }
    const auto n = static_cast<double>(full.rows());
    EXPECT_NEAR(sum_full / n, expected["ndcg5_full"].get<double>(), 1e-9);
    EXPECT_NEAR(sum_index / n, expected["ndcg5_compressed"].get<double>(), 1e-9);
    EXPECT_DOUBLE_EQ(all.flip_rate(), expected["flip_rate"].get<double>());
    EXPECT_DOUBLE_EQ(all.reversal_rate(), expected["reversal_rate"].get<double>());
    EXPECT_NEAR(all.mean_margin_error(), expected["margin_abs_err"].get<double>(), 1e-5);
    EXPECT_NEAR(all.mean_score_error(), expected["score_abs_err"].get<double>(), 1e-5);
    std::size_t binned = 0, flipped = 0;
    for (const auto& bin : all.by_margin) {
        binned += bin.pairs;
        flipped += bin.flips;
    }
    EXPECT_EQ(binned, all.pairs);
    EXPECT_EQ(flipped, all.flips);
}

TEST(Metrics, GradesAndSeveralRelevantPages) {
    // Grades 3 and 1 exist in the corpus, a judged page of grade 2 does not.
    const Relevance r{{1, 4}, {1, 3}, {1, 3, 2}};
    const std::vector<float> scores{0.5f, 0.9f, 0.1f, 0.8f, 0.7f};
    const auto ranking = rank_pages(scores, 5);
    EXPECT_EQ(ranking, (std::vector<std::size_t>{1, 3, 4, 0, 2}));
    const double got = 1 / std::log2(2.0) + 7 / std::log2(4.0);
    const double best = 7 / std::log2(2.0) + 3 / std::log2(3.0) + 1 / std::log2(4.0);
    EXPECT_NEAR(ndcg(ranking, r, 5), got / best, 1e-12);
    EXPECT_NEAR(ndcg(ranking, r, 1), 1.0 / 7.0, 1e-12);
    EXPECT_NEAR(recall(ranking, r, 1), 1.0 / 3, 1e-12);
    EXPECT_NEAR(recall(ranking, r, 5), 2.0 / 3, 1e-12);
    EXPECT_EQ(reciprocal_rank(scores, r), 1);
    EXPECT_EQ(reciprocal_rank(scores, {{2}, {1}, {1}}), 0.2);
    EXPECT_EQ(reciprocal_rank(scores, {{}, {}, {1}}), 0);
    EXPECT_EQ(ndcg(ranking, {}, 5), 0);
}

TEST(Metrics, TiesAndNotANumber) {
    const std::vector<float> scores{1, NAN, 1, 2, -INFINITY};
    EXPECT_EQ(rank_pages(scores, 9), (std::vector<std::size_t>{3, 0, 2, 1, 4}));
    EXPECT_EQ(reciprocal_rank(scores, {{2}, {1}, {1}}), 1.0 / 3);
}

TEST(Metrics, OverlapCountsSharedPages) {
    const std::vector<std::size_t> a{1, 2, 3, 4}, b{4, 3, 9, 8};
    EXPECT_EQ(overlap(a, b, 4), 0.5);
    EXPECT_EQ(overlap(a, b, 1), 0);
    EXPECT_EQ(overlap(a, a, 100), 1);
    EXPECT_EQ(overlap(a, {}, 4), 0);
}

}  // namespace
}  // namespace marginmerge
