#include "learn/mining_bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/random.h"

namespace marginmerge {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// Tokens scattered about a common direction, as those of a query are; `spread` 0 makes copies.
Matrix similar_tokens(std::size_t rows, std::size_t d, double spread, Random& random) {
    Matrix m(rows, d);
    std::vector<double> common(d);
    for (double& x : common) x = random.normal();
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < d; ++j) m(i, j) = static_cast<float>(common[j] + spread * random.normal());
    return m;
}

struct Case {
    std::vector<PreparedQuery> queries;
    std::vector<const PreparedQuery*> pointers;
    explicit Case(const std::vector<Matrix>& tokens) {
        for (const Matrix& m : tokens) queries.emplace_back(ConstMatrix(m));
        for (const PreparedQuery& q : queries) pointers.push_back(&q);
    }
};

struct Bounds {
    std::vector<float> found, upper;
};

Bounds first_look(const MiningBounds& bounds, VectorsView page) {
    Bounds b{std::vector<float>(bounds.first_tokens()), std::vector<float>(bounds.queries())};
    bounds.look(page, b.found, b.upper);
    return b;
}

TEST(MiningBounds, HoldAfterEveryStepAndEndTight) {
    Random random(5);
    std::vector<Matrix> tokens;
    for (const std::size_t n : {1U, 2U, 3U, 5U, 21U, 40U, 150U}) {
        for (const double spread : {0.0, 0.3, 1.0, 5.0}) tokens.push_back(similar_tokens(n, 40, spread, random));
    }
    Matrix zeros = similar_tokens(6, 40, 1, random);
    for (std::size_t j = 0; j < 40; ++j) zeros(0, j) = zeros(3, j) = 0;
    tokens.push_back(zeros);
    const Case c(tokens);
    const MiningBounds bounds(c.pointers);
    for (const std::size_t rows : {1U, 7U, 50U}) {
        const Matrix page = similar_tokens(rows, 40, 2, random);
        const Bounds start = first_look(bounds, page);
        std::vector<float> exact;
        for (const PreparedQuery& q : c.queries) exact.push_back(maxsim(q, VectorsView(page)));
        for (std::size_t q = 0; q < exact.size(); ++q) ASSERT_GE(start.upper[q], exact[q]) << q;

        // Nothing can be below -infinity, so every token is looked at.
        std::vector<float> least(exact.size(), -infinity), upper = start.upper;
        bounds.tighten(page, start.found, least, upper);
        for (std::size_t q = 0; q < exact.size(); ++q) {
            ASSERT_GE(upper[q], exact[q]) << q;
            ASSERT_LE(upper[q], start.upper[q]) << q;
            ASSERT_LE(upper[q] - exact[q], 0.1 * static_cast<double>(c.queries[q].tokens()) * 40 * 8) << q;
        }
        // Half-way: those that fall below stay above their scores; a bound that already decides is left alone.
        for (std::size_t q = 0; q < exact.size(); ++q) least[q] = (start.upper[q] + upper[q]) / 2;
        least[0] = infinity;
        std::vector<float> halfway = start.upper;
        bounds.tighten(page, start.found, least, halfway);
        EXPECT_EQ(halfway[0], start.upper[0]);
        for (std::size_t q = 1; q < exact.size(); ++q) ASSERT_GE(halfway[q], exact[q]) << q;
    }
}

TEST(MiningBounds, SimilarTokensAreKnownThroughEachOther) {
    Random random(6);
    const Case c({similar_tokens(20, 64, 0.05, random)});
    const MiningBounds bounds(c.pointers);
    EXPECT_EQ(bounds.first_tokens(), 8U);
    const Matrix page = similar_tokens(30, 64, 1, random);
    const float exact = maxsim(c.queries[0], VectorsView(page));
    const float first = first_look(bounds, page).upper[0];
    double norms = 0, longest = 0;
    for (std::size_t t = 0; t < 20; ++t) {
        double square = 0;
        for (std::size_t j = 0; j < 64; ++j) square += std::pow(c.queries[0].rows()(t, j), 2);
        norms += std::sqrt(square);
    }
    for (std::size_t i = 0; i < 30; ++i) {
        double square = 0;
        for (std::size_t j = 0; j < 64; ++j) square += std::pow(page(i, j), 2);
        longest = std::max(longest, std::sqrt(square));
    }
    EXPECT_LT(first - exact, 0.1 * norms * longest);
}

TEST(MiningBounds, EmptyAndNotFinite) {
    Random random(7);
    std::vector<Matrix> tokens = {similar_tokens(9, 24, 1, random), Matrix(0, 24), similar_tokens(9, 24, 1, random)};
    tokens[2](4, 4) = std::numeric_limits<float>::quiet_NaN();
    const Case c(tokens);
    const MiningBounds bounds(c.pointers);
    for (const float u : first_look(bounds, VectorsView(Matrix(0, 24))).upper) EXPECT_EQ(u, -infinity);
    Matrix page = similar_tokens(5, 24, 1, random);
    Bounds b = first_look(bounds, page);
    const std::vector<float> least(3, -infinity);
    bounds.tighten(page, b.found, least, b.upper);
    EXPECT_TRUE(std::isfinite(b.upper[0]));
    EXPECT_EQ(b.upper[1], 0.0f);
    EXPECT_FALSE(std::isfinite(b.upper[2]));
    page(2, 2) = infinity;
    b = first_look(bounds, page);
    bounds.tighten(page, b.found, least, b.upper);
    for (const float u : b.upper) EXPECT_EQ(u, infinity);
}

}  // namespace
}  // namespace marginmerge
