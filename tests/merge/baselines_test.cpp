#include "merge/baselines.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "data/redundancy.h"
#include "merge/construct.h"
#include "support/compress_case.h"

namespace marginmerge {
namespace {

Matrix reference(const std::string& name) { return test::load_floats(test::oracle("baselines/" + name + ".npy")); }
std::size_t tenth(std::size_t n) { return Budget{0.1, 0, Budget::Rounding::nearest_even}.count(n); }

TEST(Baselines, Importance) {
    const Matrix v = reference("doc");
    EXPECT_EQ(importance_kept(v, tenth(v.rows())), test::load_ints(test::oracle("baselines/importance_top10pct.npy")));
}

TEST(Baselines, SingleVector) {
    const auto document = single_vector(reference("doc"));
    EXPECT_LE(test::largest_gap({document.data(), 1, document.size()}, reference("single_vector_doc")), 1e-5);
    const auto query = single_vector(test::load_floats(test::oracle("train/queries/query_00.npy")));
    EXPECT_LE(test::largest_gap({query.data(), 1, query.size()}, reference("single_vector_query")), 1e-5);
}

TEST(Baselines, SelectorFeaturesAndWinners) {
    const Matrix v = reference("doc");
    EXPECT_LE(test::largest_gap(selector_features(v), reference("selector_features")), 1e-5);
    const auto labels = winner_labels(v, reference("winner_queries"));
    EXPECT_EQ(test::largest_gap({labels.data(), 1, labels.size()}, reference("winner_labels")), 0);
}

TEST(Baselines, QueryConditioned) {
    const Matrix expected = reference("query_conditioned_scores_10pct");
    for (std::size_t q = 0; q < expected.rows(); ++q) {
        const Matrix query = test::load_floats(test::oracle(fmt::format("train/queries/query_{:02}.npy", q)));
        for (std::size_t d = 0; d < expected.cols(); ++d) {
            const Matrix v = test::load_floats(test::oracle(fmt::format("train/docs/doc_{:02}.npy", d)));
            EXPECT_NEAR(query_conditioned_score(query, v, tenth(v.rows())), expected(q, d), 1e-5);
        }
    }
}

// Our order is by size, the reference's by merging: compare as sets of rows.
TEST(Baselines, BipartiteMerging) {
    const Matrix v = reference("doc");
    PageWorkspace w;
    for (const auto& [name, keep] :
         {std::pair{"tome_rho05", 0.05}, {"tome_rho10", 0.1}, {"tome_rho20", 0.2}, {"tome_rho50", 0.5}}) {
        Recipe recipe;
        recipe.representative = "tome";
        recipe.budget = {keep, 0, Budget::Rounding::nearest_even};
        const CompressedPage page = compress_page({v, {}, 42}, Model{}, recipe, w);
        const Matrix expected = reference(name);
        ASSERT_EQ(page.representatives.rows(), expected.rows());
        std::vector<char> used(expected.rows(), 0);
        for (std::size_t r = 0; r < expected.rows(); ++r) {
            std::size_t match = 0;
            while (match < expected.rows() &&
                   (used[match] || test::largest_gap(page.representatives.view().middle_rows(r, 1),
                                                     expected.view().middle_rows(match, 1)) > 1e-5))
                ++match;
            ASSERT_LT(match, expected.rows()) << name << " row " << r;
            used[match] = 1;
        }
        std::vector<int> size(expected.rows(), 0);
        for (const auto owner : page.owner) ++size[static_cast<std::size_t>(owner)];
        EXPECT_TRUE(std::is_sorted(size.rbegin(), size.rend()));
    }
}

// Joining the globally closest pair, with all distances anew each time: what chains must equal.
std::vector<std::int32_t> naive_ward(ConstMatrix v, std::size_t k) {
    std::vector<std::vector<std::size_t>> clusters(v.rows);
    for (std::size_t i = 0; i < v.rows; ++i) clusters[i] = {i};
    const auto mean = [&](const std::vector<std::size_t>& c, std::size_t j) {
        double sum = 0;
        for (const auto i : c) sum += v(i, j);
        return sum / static_cast<double>(c.size());
    };
    while (clusters.size() > k) {
        double least = 1e300;
        std::size_t a = 0, b = 0;
        for (std::size_t x = 0; x < clusters.size(); ++x)
            for (std::size_t y = x + 1; y < clusters.size(); ++y) {
                double gap = 0;
                for (std::size_t j = 0; j < v.cols; ++j) {
                    const double step = mean(clusters[x], j) - mean(clusters[y], j);
                    gap += step * step;
                }
                const auto p = static_cast<double>(clusters[x].size()), q = static_cast<double>(clusters[y].size());
                gap *= p * q / (p + q);
                if (gap < least) least = gap, a = x, b = y;
            }
        clusters[a].insert(clusters[a].end(), clusters[b].begin(), clusters[b].end());
        clusters.erase(clusters.begin() + static_cast<std::ptrdiff_t>(b));
    }
    std::vector<std::int32_t> label(v.rows);
    for (std::size_t c = 0; c < k; ++c)
        for (const auto i : clusters[c]) label[i] = static_cast<std::int32_t>(c);
    return label;
}

TEST(Baselines, WardChainsFindTheTreeOfClosestPairs) {
    PageWorkspace w;
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        const Matrix v = test::random_page(60, 16, 9, 0.8, seed);
        for (const std::size_t k : {1u, 4u, 9u, 30u}) {
            Recipe recipe;
            recipe.representative = "ward";
            recipe.budget.vectors = k;
            const auto page = compress_page({v, {}, 42}, Model{}, recipe, w);
            const auto expected = naive_ward(v, k);
            for (std::size_t i = 0; i < v.rows(); ++i)
                for (std::size_t j = 0; j < i; ++j)
                    ASSERT_EQ(page.owner[i] == page.owner[j], expected[i] == expected[j])
                        << "seed " << seed << " k " << k;
        }
    }
}

TEST(Baselines, KMeansNormsAreFreeUnlessAskedOtherwise) {
    const Matrix v = test::random_page(200, 16, 10, 0.9, 2);
    PageWorkspace w;
    Recipe recipe;
    recipe.representative = "kmeans";
    recipe.anchors = "kcenter";
    const auto norm = [](const CompressedPage& page, std::size_t r) {
        double sum = 0;
        for (const float x : page.representatives.view().row_span(r)) sum += static_cast<double>(x) * x;
        return std::sqrt(sum);
    };
    const auto free_norms = compress_page({v, {}, 42}, Model{}, recipe, w);
    recipe.unit_norm = true;
    const auto unit = compress_page({v, {}, 42}, Model{}, recipe, w);
    double most = 0;
    for (std::size_t r = 0; r < unit.representatives.rows(); ++r) {
        EXPECT_NEAR(norm(unit, r), 1, 1e-5);
        EXPECT_GE(norm(free_norms, r), 1 - 1e-5);
        most = std::max(most, norm(free_norms, r));
    }
    EXPECT_GT(most, 1.05);
}

TEST(Redundancy, EffectiveRank) {
    for (const auto& name : test::compress_cases()) {
        const auto c = test::load_case(name);
        EXPECT_NEAR(effective_rank(c.V), c.meta.at("effective_rank").get<double>(), 1e-3) << name;
    }
    EXPECT_EQ(effective_rank({}), 0);
}

}  // namespace
}  // namespace marginmerge
