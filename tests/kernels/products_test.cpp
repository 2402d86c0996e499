#include "kernels/products.h"

#include <algorithm>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/reference.h"
#include "levels.h"

namespace marginmerge {
namespace {

using testing::odd_dimensions;
using testing::random_matrix;

class Products : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Products);

Matrix expected_product(const Matrix& a, const Matrix& b) {
    Matrix out(a.rows(), b.rows());
    for (std::size_t i = 0; i < a.rows(); ++i)
        for (std::size_t j = 0; j < b.rows(); ++j)
            out(i, j) = reference::inner_product(a.row(i), b.row(j), a.cols(), reference::fused_level());
    return out;
}

void expect_product(std::size_t m, std::size_t n, std::size_t d) {
    const Matrix a = random_matrix(m, d, 1);
    const Matrix b = random_matrix(n, d, 2);
    Matrix out(m, n);
    product(a, b, out);
    const Matrix expected = expected_product(a, b);
    ASSERT_TRUE(std::equal(out.flat().begin(), out.flat().end(), expected.flat().begin()))
        << m << " x " << n << " x " << d;
}

TEST_P(Products, ProductEqualsReference) {
    for (const std::size_t d : odd_dimensions) {
        expect_product(37, 53, d);
        expect_product(53, 37, d);
    }
    for (const std::size_t m : {1, 2, 3, 4, 5, 8, 13, 24, 25, 49})
        for (const std::size_t n : {1, 2, 3, 5, 6, 7, 11, 12, 13, 24, 31, 300}) expect_product(m, n, 21);
}

TEST_P(Products, TheFirstOfPackedRows) {
    const Matrix a = random_matrix(10, 33, 5), b = random_matrix(301, 33, 6);
    const PackedRows packed(b);
    for (const std::size_t n : {1, 3, 4, 5, 23, 24, 25, 47, 48, 49, 144, 300, 301}) {
        // One number too many, to see that nothing is written behind the last row.
        std::vector<float> out(10 * n + 1, 7.0f);
        product(a, packed, {out.data(), 10, n});
        const Matrix expected = expected_product(a, Matrix(b.view().middle_rows(0, n)));
        ASSERT_TRUE(std::equal(expected.flat().begin(), expected.flat().end(), out.begin())) << n;
        ASSERT_EQ(out.back(), 7.0f);
    }
}

TEST_P(Products, ResponsesAreClampedWithRowMaxima) {
    for (const std::size_t d : {3, 16, 33, 128}) {
        for (const std::size_t n : {1, 5, 33, 250}) {
            const Matrix z = random_matrix(41, d, 3);
            const Matrix v = random_matrix(n, d, 4);
            Matrix out(41, n);
            std::vector<float> best(41);
            responses(z, v, out, best);
            Matrix again(41, n);
            std::vector<float> again_best(41);
            responses(PackedRows(z.view()), v, again, again_best);
            const Matrix raw = expected_product(z, v);
            for (std::size_t t = 0; t < 41; ++t) {
                float top = -1.0f;
                for (std::size_t i = 0; i < n; ++i) {
                    const float x = std::clamp(raw(t, i), -1.0f, 1.0f);
                    ASSERT_EQ(out(t, i), x) << t << " " << i;
                    ASSERT_EQ(again(t, i), x);
                    top = std::max(top, x);
                }
                ASSERT_EQ(best[t], top);
                ASSERT_EQ(again_best[t], top);
            }
        }
    }
}

TEST_P(Products, NearestEqualsReference) {
    for (const std::size_t d : odd_dimensions) {
        for (const std::size_t k : {1, 2, 7, 8, 9, 25, 60}) {
            const Matrix v = random_matrix(61, d, 5);
            Matrix centres = random_matrix(k, d, 6);
            if (k > 7)  // ties between lanes and between panels: the lower index must win
                for (std::size_t c = k / 2; c < k; ++c) std::copy_n(centres.row(c - k / 2), d, centres.row(c));
            std::vector<std::int32_t> index(61), expected(61);
            std::vector<float> similarity(61), best(61);
            nearest(v, centres, index, similarity);
            reference::winners(v, centres, reference::fused_level(), best, expected);
            ASSERT_EQ(index, expected) << "d " << d << " k " << k;
            ASSERT_EQ(similarity, best);
        }
    }
}

TEST_P(Products, NearestPrefersTheFirstWhenAllAreAlike) {
    const Matrix v = random_matrix(30, 16, 7);
    Matrix centres(19, 16);
    std::vector<std::int32_t> index(30, -5);
    std::vector<float> similarity(30, 5.0f);
    nearest(v, centres, index, similarity);
    for (std::size_t i = 0; i < 30; ++i) {
        EXPECT_EQ(index[i], 0);
        EXPECT_EQ(similarity[i], 0.0f);
    }
}

TEST_P(Products, ClusterSums) {
    for (const std::size_t d : odd_dimensions) {
        const Matrix v = random_matrix(40, d, 8);
        std::vector<std::int32_t> cluster(40);
        std::vector<float> weight(40);
        Random random(3);
        for (std::size_t i = 0; i < 40; ++i) {
            cluster[i] = static_cast<std::int32_t>(random.below(6)) - 1;
            weight[i] = static_cast<float>(random.normal());
        }
        Matrix sums(5, d);
        add_to_clusters(v, cluster, weight, sums);
        std::vector<double> expected(5 * d);
        for (std::size_t i = 0; i < 40; ++i)
            for (std::size_t j = 0; j < d && cluster[i] >= 0; ++j)
                expected[static_cast<std::size_t>(cluster[i]) * d + j] += static_cast<double>(weight[i]) * v(i, j);
        for (std::size_t e = 0; e < expected.size(); ++e) ASSERT_NEAR(sums.flat()[e], expected[e], 2e-5);
        for (const ScalarType type : {ScalarType::f16, ScalarType::bf16}) {
            std::vector<std::uint16_t> halves(v.size());
            from_float(v.flat(), type, halves.data());
            const VectorsView stored(halves.data(), type, v.rows(), d);
            Matrix from_stored(5, d), from_floats(5, d);
            add_to_clusters(stored, cluster, weight, from_stored);
            add_to_clusters(to_float(stored), cluster, weight, from_floats);
            for (std::size_t e = 0; e < expected.size(); ++e)
                ASSERT_EQ(from_stored.flat()[e], from_floats.flat()[e]) << to_string(type) << " d " << d;
            std::vector<float> products(v.rows());
            dot_clusters(stored, cluster, sums, products);
            const Matrix floats = to_float(stored);
            for (std::size_t i = 0; i < v.rows(); ++i) {
                const float whole =
                    cluster[i] < 0 ? 0.0f : dot(sums.row(static_cast<std::size_t>(cluster[i])), floats.row(i), d);
                ASSERT_EQ(products[i], whole) << to_string(type) << " d " << d << " row " << i;
            }
        }
    }
}

TEST_P(Products, DotEqualsReference) {
    for (std::size_t d = 0; d < 140; ++d) {
        const Matrix a = random_matrix(2, d, d + 1);
        ASSERT_EQ(dot(a.row(0), a.row(1), d), reference::dot(a.row(0), a.row(1), d, reference::fused_level())) << d;
    }
}

TEST_P(Products, DotRowsAreDots) {
    for (std::size_t d = 0; d < 140; ++d) {
        const Matrix rows = random_matrix(5, d, d + 2);
        const Matrix x = random_matrix(1, d, d + 3);
        for (std::size_t count = 0; count <= 5; ++count) {
            std::vector<float> out(6, 7.0f);
            dot_rows(x.data(), rows.data(), count, d, out.data());
            for (std::size_t r = 0; r < count; ++r) ASSERT_EQ(out[r], dot(x.data(), rows.row(r), d)) << d;
            ASSERT_EQ(out[count], 7.0f);
        }
    }
}

TEST_P(Products, AddScaledTouchesNothingElse) {
    for (const std::size_t d : odd_dimensions) {
        const Matrix x = random_matrix(1, d, 1);
        std::vector<float> y(d + 1, 0.5f);
        add_scaled(2.0f, x.data(), y.data(), d);
        for (std::size_t j = 0; j < d; ++j) ASSERT_NEAR(y[j], 0.5f + 2.0f * x(0, j), 1e-6f);
        ASSERT_EQ(y[d], 0.5f);
    }
}

TEST_P(Products, NormalisedRows) {
    for (const std::size_t d : odd_dimensions) {
        Matrix m = random_matrix(5, d, 9);
        std::fill_n(m.row(2), d, 0.0f);
        const float first = m(0, 0);
        double square = 0.0;
        for (std::size_t j = 0; j < d; ++j) square += static_cast<double>(m(0, j)) * m(0, j);
        normalise_rows(m);
        EXPECT_NEAR(m(0, 0), first / std::sqrt(square), 1e-6);
        for (std::size_t j = 0; j < d; ++j) ASSERT_EQ(m(2, j), 0.0f);
        EXPECT_NEAR(reference::dot(m.row(4), m.row(4), d, false), 1.0f, 1e-5f);
    }
}

}  // namespace
}  // namespace marginmerge
