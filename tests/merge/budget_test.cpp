#include <gtest/gtest.h>

#include <vector>

#include "marginmerge/merge/recipe.h"

namespace marginmerge {
namespace {

std::vector<std::int64_t> offsets_of(const std::vector<std::size_t>& lengths) {
    std::vector<std::int64_t> offsets{0};
    for (const auto n : lengths) offsets.push_back(offsets.back() + static_cast<std::int64_t>(n));
    return offsets;
}

std::size_t total(const Budget& budget, const std::vector<std::size_t>& lengths) {
    std::size_t sum = 0;
    for (const auto n : lengths) sum += budget.count(n);
    return sum;
}

TEST(Budget, RoundsUpAndKeepsAtLeastOne) {
    EXPECT_EQ((Budget{0.07}.count(100)), 7U);
    EXPECT_EQ((Budget{0.05}.count(21)), 2U);
    EXPECT_EQ((Budget{0.05}.count(1)), 1U);
    EXPECT_EQ((Budget{0.05}.count(0)), 0U);
    EXPECT_EQ((Budget{1.0}.count(9)), 9U);
    EXPECT_EQ((Budget{0.05, 12}.count(9)), 9U);
    EXPECT_EQ((Budget{0.25, 0, Budget::Rounding::nearest_even}.count(10)), 2U);
}

TEST(Budget, BalancedKeepsTheTotalAndGivesShortPagesMore) {
    std::vector<std::size_t> lengths;
    for (std::size_t i = 0; i < 1000; ++i) lengths.push_back(20 + i * i % 997);
    const Budget plain{0.05};
    const Budget balanced = plain.balanced(offsets_of(lengths));
    EXPECT_LE(total(balanced, lengths), total(plain, lengths));
    EXPECT_GE(total(balanced, lengths), total(plain, lengths) - 10);
    EXPECT_GT(balanced.count(20), plain.count(20));
    EXPECT_LT(balanced.count(1000), plain.count(1000));
    std::size_t before = 0;
    for (std::size_t n = 1; n < 2000; ++n) {
        EXPECT_GE(balanced.count(n), before);
        EXPECT_LE(balanced.count(n), n);
        before = balanced.count(n);
    }
}

TEST(Budget, BalancedLeavesEqualPagesAsTheyAre) {
    for (const double keep : {0.001, 0.05, 0.5, 1.0}) {
        const std::vector<std::size_t> lengths(50, 196);
        const Budget plain{keep};
        EXPECT_EQ(plain.balanced(offsets_of(lengths)).count(196), plain.count(196)) << keep;
    }
    EXPECT_LE((Budget{0.05}.balanced(offsets_of({})).count(10)), 10U);
    EXPECT_EQ((Budget{0.05}.balanced(offsets_of({0, 0})).count(0)), 0U);
}

TEST(Budget, AScaleFromAFileNeverGivesMoreThanThePage) {
    Budget budget;
    budget.scale = 1e300;
    budget.power = 1e300;
    EXPECT_EQ(budget.count(7), 7U);
    EXPECT_EQ(budget.count(0), 0U);
    budget.scale = 1e-300;
    budget.power = 1e-3;
    EXPECT_EQ(budget.count(7), 1U);
}

}  // namespace
}  // namespace marginmerge
