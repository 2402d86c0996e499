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

struct Queries {
    std::vector<PreparedQuery> prepared;
    UpperBoundBatch batch;

    explicit Queries(const std::vector<Matrix>& tokens) : prepared(prepare(tokens)), batch(pointers(prepared)) {}
    static std::vector<PreparedQuery> prepare(const std::vector<Matrix>& tokens) {
        std::vector<PreparedQuery> out;
        for (const Matrix& m : tokens) out.emplace_back(VectorsView(m));
        return out;
    }
    static std::vector<const PreparedQuery*> pointers(const std::vector<PreparedQuery>& prepared) {
        std::vector<const PreparedQuery*> out;
        for (const PreparedQuery& q : prepared) out.push_back(&q);
        return out;
    }
};

// Bounds hold, and are no further away than the rounding of both sides explains; a sum that wrapped would be off by
// twice the product of the norms.
void expect_bounds(const Queries& queries, VectorsView page, double looseness) {
    std::vector<float> bounds(queries.prepared.size());
    upper_bounds(queries.batch, page, bounds);
    for (std::size_t q = 0; q < bounds.size(); ++q) {
        const float score = maxsim(queries.prepared[q], page);
        ASSERT_GE(bounds[q], score) << "d " << page.dim << " rows " << page.rows << " query " << q;
        double most = 0, largest = 0;
        for (std::size_t t = 0; t < queries.prepared[q].tokens(); ++t) {
            const ConstMatrix u = queries.prepared[q].rows();
            double square = 0;
            for (std::size_t j = 0; j < u.cols; ++j) square += static_cast<double>(u(t, j)) * u(t, j);
            most += std::sqrt(square);
        }
        const Matrix v = to_float(page);
        for (std::size_t i = 0; i < v.rows(); ++i) {
            double square = 0;
            for (std::size_t j = 0; j < v.cols(); ++j) square += static_cast<double>(v(i, j)) * v(i, j);
            largest = std::max(largest, std::sqrt(square));
        }
        ASSERT_LE(bounds[q] - score, looseness * most * largest) << "d " << page.dim << " rows " << page.rows;
    }
}

TEST_P(Upper, HoldsAndIsTightAtEveryDimension) {
    for (const std::size_t d : odd_dimensions) {
        const Queries queries({random_matrix(20, d, d), random_matrix(1, d, d + 1), random_matrix(33, d, d + 2)});
        for (const std::size_t rows : {1U, 2U, 3U, 5U, 7U, 8U, 9U, 26U, 195U, 301U})
            expect_bounds(queries, random_matrix(rows, d, rows), d < 300 ? 0.1 : 0.15);
    }
}

TEST_P(Upper, HoldsForEveryStorageType) {
    const Queries queries({random_matrix(21, 128, 1), random_matrix(9, 128, 2)});
    const Matrix page = random_matrix(50, 128, 3);
    std::vector<std::uint16_t> halves(page.size());
    for (const ScalarType type : {ScalarType::f16, ScalarType::bf16}) {
        from_float(page.flat(), type, halves.data());
        expect_bounds(queries, VectorsView(halves.data(), type, page.rows(), page.cols()), 0.1);
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
        const Queries queries(made);
        for (const Matrix& page : made) expect_bounds(queries, page, 0.2);
        Matrix all(made.size(), d);
        for (std::size_t i = 0; i < made.size(); ++i) std::copy_n(made[i].data(), d, all.row(i));
        expect_bounds(queries, all, 0.2);
    }
}

TEST_P(Upper, NormsOfAnySizeAndZeros) {
    for (const float size : {0.0f, 1e-25f, 1e-12f, 1e6f, 1e15f}) {
        Matrix tokens = random_matrix(5, 40, 4), page = random_matrix(11, 40, 5);
        for (float& x : tokens.flat()) x *= size;
        Matrix scaled = page;
        for (std::size_t i = 0; i < scaled.rows(); i += 2)
            for (std::size_t j = 0; j < 40; ++j) scaled(i, j) *= size;
        const Queries large({tokens}), usual({random_matrix(5, 40, 6)});
        for (const Queries* queries : {&large, &usual}) {
            std::vector<float> bound(1);
            upper_bounds(queries->batch, scaled, bound);
            EXPECT_GE(bound[0], maxsim(queries->prepared[0], VectorsView(scaled))) << size;
        }
    }
}

TEST_P(Upper, WhatIsNotFiniteHasNoBound) {
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
        Matrix page = random_matrix(9, 24, 7);
        const Queries queries({random_matrix(3, 24, 8)});
        page(4, 5) = bad;
        std::vector<float> bound(1);
        upper_bounds(queries.batch, page, bound);
        EXPECT_EQ(bound[0], std::numeric_limits<float>::infinity());
        Matrix tokens = random_matrix(3, 24, 9);
        tokens(1, 1) = bad;
        upper_bounds(Queries({tokens}).batch, random_matrix(9, 24, 10), bound);
        EXPECT_FALSE(std::isfinite(bound[0]));
    }
}

TEST_P(Upper, EmptyPagesAndQueries) {
    const Queries queries({random_matrix(3, 24, 8), Matrix(0, 24)});
    std::vector<float> bounds(2);
    upper_bounds(queries.batch, VectorsView(Matrix(0, 24)), bounds);
    for (const float b : bounds) EXPECT_EQ(b, -std::numeric_limits<float>::infinity());
    upper_bounds(queries.batch, random_matrix(4, 24, 1), bounds);
    EXPECT_EQ(bounds[1], 0.0f);
}

}  // namespace
}  // namespace marginmerge
