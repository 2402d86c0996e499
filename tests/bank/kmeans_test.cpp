#include "bank/kmeans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "bank/lloyd.h"
#include "bank/relocate.h"
#include "bank/seeding.h"
#include "support/compress_case.h"

namespace marginmerge {
namespace {

struct Points {
    Matrix rows;
    std::vector<float> weights;
    WeightedPoints view() const { return {rows, weights}; }
};

Points made_up(std::size_t count, std::size_t directions, double noise) {
    Points p{test::random_page(count, 17, directions, noise, 5), std::vector<float>(count)};
    for (std::size_t i = 0; i < count; ++i) p.weights[i] = 1.0f + 0.1f * static_cast<float>(i % 7);
    return p;
}

Matrix every_nth(ConstMatrix rows, std::size_t step, std::size_t count) {
    Matrix m(count, rows.cols);
    for (std::size_t c = 0; c < count; ++c) std::copy_n(rows.row(c * step), rows.cols, m.row(c));
    return m;
}

TEST(Lloyd, AnAssignmentBroughtUpToDateIsTheSameAsANewOne) {
    const Points p = made_up(3000, 40, 0.5);
    Matrix centres = every_nth(p.rows, 90, 30);
    Assignment kept;
    assign_points(p.view(), centres, 1, kept);
    // A few centres move; two come to lie on others, above and below them: ties go to the lower.
    std::copy_n(p.rows.row(7), 17, centres.row(4));
    std::copy_n(centres.row(20), 17, centres.row(11));
    std::copy_n(centres.row(2), 17, centres.row(25));
    assign_points(p.view(), centres, 2, kept);
    Assignment fresh;
    assign_points(p.view(), centres, 1, fresh);
    EXPECT_EQ(kept.label, fresh.label);
    EXPECT_EQ(kept.score, fresh.score);
    EXPECT_EQ(kept.sums, fresh.sums);
    EXPECT_EQ(kept.inertia, fresh.inertia);
    EXPECT_EQ(std::count(kept.label.begin(), kept.label.end(), 20), 0);
    EXPECT_EQ(std::count(kept.label.begin(), kept.label.end(), 25), 0);
}

TEST(Lloyd, DistancesAreThoseOfTheDefinition) {
    const Points p = made_up(500, 10, 0.5);
    const Matrix centres = every_nth(p.rows, 23, 20);
    const WeightedPoints points = p.view();
    Assignment a;
    assign_points(points, centres, 1, a);
    double inertia = 0;
    for (std::size_t i = 0; i < 500; ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < 20; ++c) {
            double sum = 0;
            for (std::size_t j = 0; j < 17; ++j) {
                const double gap = static_cast<double>(p.rows(i, j)) - centres(c, j);
                sum += gap * gap;
            }
            least = std::min(least, sum);
        }
        EXPECT_NEAR(a.distance(points, i), least, 1e-5);
        inertia += p.weights[i] * least;
    }
    EXPECT_NEAR(a.inertia, inertia, 1e-4 * inertia);
}

TEST(Seeding, GoesOnFromTheCentresThereAre) {
    const Points p = made_up(600, 6, 0.01);
    const WeightedPoints points = p.view();
    std::vector<float> distance(600, std::numeric_limits<float>::infinity());
    const Matrix first = seed_centres(points, {4, 5, 1, 1}, distance);
    ASSERT_EQ(first.rows(), 4u);
    const Matrix rest = seed_centres(points, {2, 5, 2, 1}, distance);
    ASSERT_EQ(rest.rows(), 2u);
    EXPECT_LT(*std::max_element(distance.begin(), distance.end()), 0.1f);  // one in each direction
}

TEST(Seeding, ProductsThatAreKeptChangeNoBit) {
    const Points p = made_up(2500, 40, 0.5);  // more than a block
    WeightedPoints points = p.view();
    const auto seed = [&](std::vector<float>& distance) {
        distance.assign(2500, std::numeric_limits<float>::infinity());
        return seed_centres(points, {30, 6, 1, 2}, distance);
    };
    std::vector<float> fresh, kept;
    const Matrix expected = seed(fresh);
    points.keep_products(2499, 2);
    EXPECT_EQ(points.products.size(), 0u);  // too few draws to be worth it
    points.keep_products(2500, 2);
    ASSERT_EQ(points.products.rows(), 2500u);
    const Matrix centres = seed(kept);
    ASSERT_EQ(centres.rows(), expected.rows());
    EXPECT_TRUE(std::equal(centres.data(), centres.data() + centres.size(), expected.data()));
    EXPECT_EQ(kept, fresh);
}

TEST(Relocate, LeavesABadLocalMinimum) {
    // 24 tight clusters; two centres sit in each of the first four, none in the last four. Lloyd's iterations alone
    // cannot repair that.
    const Points p = made_up(2400, 24, 0.02);
    const WeightedPoints points = p.view();
    std::vector<float> distance(2400, std::numeric_limits<float>::infinity());
    Matrix planted = seed_centres(points, {24, 5, 1, 1}, distance);
    Assignment good;
    lloyd(points, {}, planted, good);
    Matrix centres = planted;
    for (std::size_t c = 0; c < 4; ++c) {
        const auto inside = std::find(good.label.begin(), good.label.end(), static_cast<std::int32_t>(c));
        std::copy_n(p.rows.row(static_cast<std::size_t>(inside - good.label.begin())), 17, centres.row(20 + c));
    }
    Assignment a;
    lloyd(points, {}, centres, a);
    ASSERT_GT(a.inertia, 5 * good.inertia);
    relocate_centres(points, {}, centres, a);
    EXPECT_LT(a.inertia, 1.01 * good.inertia);
    Assignment fresh;
    assign_points(points, centres, 1, fresh);
    EXPECT_EQ(a.inertia, fresh.inertia);
}

TEST(KMeans, RelocationNeverCosts) {
    const Points p = made_up(4000, 100, 0.7);
    KMeansOptions options;
    options.clusters = 64;
    for (const std::size_t above : {1000u, 100000u}) {
        options.mini_batch_above = above;
        options.mini_batch = 1024;
        for (options.seed = 1; options.seed < 4; ++options.seed) {
            options.rounds = 0;
            const double without = weighted_kmeans(p.rows, p.weights, options).inertia;
            options.rounds = 12;
            EXPECT_LT(weighted_kmeans(p.rows, p.weights, options).inertia, without * (above == 1000u ? 1.005 : 1.0));
        }
    }
}

}  // namespace
}  // namespace marginmerge
