#include "merge/ward_tree.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/compress_case.h"

namespace marginmerge {
namespace {

std::vector<WardMerge> by_height(std::vector<WardMerge> merges) {
    std::stable_sort(merges.begin(), merges.end(),
                     [](const WardMerge& x, const WardMerge& y) { return x.height < y.height; });
    return merges;
}

TEST(WardTree, DistancesAndCentroidsGrowTheSameTree) {
    PageWorkspace w;
    for (const std::size_t n : {2u, 15u, 16u, 17u, 33u, 250u}) {
        const Matrix v = test::random_page(n, 24, 7, 0.8, n);
        const auto kept = by_height(ward_tree(v, w, n));
        const auto counted = by_height(ward_tree(v, w, 0));
        ASSERT_EQ(kept.size(), n - 1);
        ASSERT_EQ(counted.size(), n - 1);
        for (std::size_t m = 0; m + 1 < n; ++m) {
            EXPECT_NEAR(kept[m].height, counted[m].height, 1e-5 * (1 + counted[m].height)) << n << " rows, merge " << m;
            EXPECT_EQ(kept[m].a, counted[m].a) << n << " rows, merge " << m;
            EXPECT_EQ(kept[m].b, counted[m].b) << n << " rows, merge " << m;
        }
    }
}

TEST(WardTree, EqualVectorsJoinFirstAndAtNoHeight) {
    Matrix v = test::random_page(40, 16, 40, 0.8, 3);
    for (std::size_t i = 20; i < 40; ++i) std::copy_n(v.row(i - 20), v.cols(), v.row(i));
    PageWorkspace w;
    for (const std::size_t limit : {std::size_t{0}, ward_distance_rows}) {
        const auto merges = by_height(ward_tree(v, w, limit));
        for (std::size_t m = 0; m < 20; ++m) {
            EXPECT_NEAR(merges[m].height, 0, 1e-6);
            EXPECT_EQ(merges[m].b, merges[m].a + 20);
        }
        EXPECT_GT(merges[20].height, 1e-3);
    }
}

TEST(WardTree, FewVectors) {
    PageWorkspace w;
    EXPECT_TRUE(ward_tree({nullptr, 0, 16}, w).empty());
    EXPECT_TRUE(ward_tree(test::random_page(1, 16, 1, 0.8, 1), w).empty());
}

}  // namespace
}  // namespace marginmerge
