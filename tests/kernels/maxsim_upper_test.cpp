#include "kernels/maxsim_upper.h"

#include <cmath>
#include <limits>

#include "kernels/convert.h"
#include "levels.h"

namespace marginmerge {
namespace {

using testing::odd_dimensions;
using testing::random_matrix;

class Upper : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Upper);

std::vector<float> bounds_of(ConstMatrix tokens, VectorsView page) {
    std::vector<float> out(tokens.rows);
    const TokenRange all{0, tokens.rows};
    token_bounds(UpperTokens(tokens), UpperPage(page), {&all, 1}, out);
    return out;
}

std::vector<float> responses_of(ConstMatrix tokens, VectorsView page) {
    std::vector<float> best(tokens.rows);
    std::vector<std::int32_t> winner(tokens.rows);
    maxsim_winners(PreparedQuery(tokens), page, best, winner);
    return best;
}

double norm_of(ConstMatrix m, std::size_t i) {
    double square = 0;
    for (std::size_t j = 0; j < m.cols; ++j) square += static_cast<double>(m(i, j)) * m(i, j);
    return std::sqrt(square);
}

// Bounds hold, and are no further away than the rounding of both sides explains; a sum that wrapped would be off by
// twice the product of the norms.
void expect_bounds(ConstMatrix tokens, VectorsView page, double looseness) {
    const auto bounds = bounds_of(tokens, page), best = responses_of(tokens, page);
    const Matrix v = to_float(page);
    double largest = 0;
    for (std::size_t i = 0; i < v.rows(); ++i) largest = std::max(largest, norm_of(v, i));
    for (std::size_t t = 0; t < bounds.size(); ++t) {
        ASSERT_GE(bounds[t], best[t]) << "d " << page.dim << " rows " << page.rows << " token " << t;
        ASSERT_LE(bounds[t] - best[t], looseness * norm_of(tokens, t) * largest)
            << "d " << page.dim << " rows " << page.rows << " token " << t;
    }
}

TEST_P(Upper, HoldsAndIsTightAtEveryDimension) {
    for (const std::size_t d : odd_dimensions) {
        for (const std::size_t tokens : {20U, 1U, 33U}) {
            for (const std::size_t rows : {1U, 2U, 3U, 5U, 7U, 8U, 9U, 26U, 195U, 301U})
                expect_bounds(random_matrix(tokens, d, d + tokens), random_matrix(rows, d, rows), d < 300 ? 0.1 : 0.15);
        }
    }
}

TEST_P(Upper, HoldsForEveryStorageType) {
    const Matrix tokens = random_matrix(30, 128, 1), page = random_matrix(50, 128, 3);
    std::vector<std::uint16_t> halves(page.size());
    for (const ScalarType type : {ScalarType::f16, ScalarType::bf16}) {
        from_float(page.flat(), type, halves.data());
        expect_bounds(tokens, VectorsView(halves.data(), type, page.rows(), page.cols()), 0.1);
    }
}

// Sums that wrap in 16 bits must come out right: vectors along an axis, along the diagonal, opposite, a token and
// a vector that coincide.
TEST_P(Upper, HoldsForExtremeVectors) {
    for (const std::size_t d : {16U, 128U, 130U, 256U, 300U}) {
        std::vector<Matrix> made;
        for (const float sign : {1.0f, -1.0f}) {
            Matrix axis(1, d), pair(1, d), even(1, d), signs(1, d);
            axis(0, d / 2) = sign;
            pair(0, 0) = pair(0, 1) = sign;
            for (std::size_t j = 0; j < d; ++j) {
                even(0, j) = sign;
                signs(0, j) = j % 2 == 0 ? sign : -sign;
            }
            for (Matrix* m : {&axis, &pair, &even, &signs}) made.push_back(*m);
        }
        Matrix all(made.size(), d);
        for (std::size_t i = 0; i < made.size(); ++i) std::copy_n(made[i].data(), d, all.row(i));
        for (const Matrix& page : made) expect_bounds(all, page, 0.2);
        expect_bounds(all, all, 0.2);
    }
}

TEST_P(Upper, NormsOfAnySizeAndZeros) {
    for (const float size : {0.0f, 1e-25f, 1e-12f, 1e6f, 1e15f}) {
        Matrix tokens = random_matrix(5, 40, 4), page = random_matrix(11, 40, 5);
        for (float& x : tokens.flat()) x *= size;
        Matrix scaled = page;
        for (std::size_t i = 0; i < scaled.rows(); i += 2)
            for (std::size_t j = 0; j < 40; ++j) scaled(i, j) *= size;
        Matrix usual = random_matrix(5, 40, 6);
        for (const Matrix* u : {&tokens, &usual}) {
            const auto bounds = bounds_of(*u, scaled), best = responses_of(*u, scaled);
            for (std::size_t t = 0; t < bounds.size(); ++t) EXPECT_GE(bounds[t], best[t]) << size;
        }
    }
}

TEST_P(Upper, WhatIsNotFiniteHasNoBound) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
        Matrix page = random_matrix(9, 24, 7);
        page(4, 5) = bad;
        for (const float b : bounds_of(random_matrix(3, 24, 8), page))
            EXPECT_EQ(b, std::numeric_limits<float>::infinity());
        Matrix tokens = random_matrix(3, 24, 9);
        tokens(1, 1) = bad;
        const auto bounds = bounds_of(tokens, random_matrix(9, 24, 10));
        for (std::size_t t = 0; t < 3; ++t) EXPECT_EQ(std::isfinite(bounds[t]), t != 1);
    }
}

TEST_P(Upper, EmptyPagesAndNoTokens) {
    for (const float b : bounds_of(random_matrix(3, 24, 8), VectorsView(Matrix(0, 24))))
        EXPECT_EQ(b, -std::numeric_limits<float>::infinity());
    EXPECT_TRUE(bounds_of(Matrix(0, 24), random_matrix(4, 24, 1)).empty());
}

// Tokens picked from anywhere give what they give all together.
TEST_P(Upper, RangesInAnyOrder) {
    for (const std::size_t d : {24U, 128U, 300U}) {
        const Matrix tokens = random_matrix(140, d, 3), page = random_matrix(31, d, 4);
        const UpperTokens coded(tokens);
        const auto all = bounds_of(tokens, page);
        const std::vector<TokenRange> ranges = {{7, 8}, {3, 3}, {90, 140}, {0, 30}, {20, 75}, {139, 140}};
        std::vector<float> some(1 + 50 + 30 + 55 + 1);
        for (int again = 0; again < 2; ++again) {
            token_bounds(coded, UpperPage(page), ranges, some);
            std::size_t k = 0;
            for (const TokenRange& range : ranges) {
                for (std::size_t t = range.begin; t < range.end; ++t) ASSERT_EQ(some[k++], all[t]) << d << " " << t;
            }
            ASSERT_EQ(k, some.size());
        }
    }
}

// AVX3 has two ways, of which a processor uses one.
TEST_P(Upper, EveryWayOfSummingGivesTheSameBits) {
    for (const std::size_t d : odd_dimensions) {
        const Matrix tokens = random_matrix(50, d, d), page = random_matrix(29, d, d + 1);
        const TokenRange all{0, tokens.rows()};
        std::vector<float> best(tokens.rows()), halves(tokens.rows());
        token_bounds(UpperTokens(tokens), UpperPage(page), {&all, 1}, best);
        token_bounds(UpperTokens(tokens, ByteSums::halves), UpperPage(page), {&all, 1}, halves);
        EXPECT_EQ(best, halves) << d;
    }
}

}  // namespace
}  // namespace marginmerge
