#include "select/farthest_first.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/random.h"

namespace marginmerge {
namespace {

Matrix random_rows(std::size_t rows, std::size_t d, std::uint64_t seed) {
    Random random(seed);
    Matrix m(rows, d);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    return m;
}

// Weighted squared distances by their definition, every patch to every pick.
std::vector<std::int32_t> by_definition(const Matrix& v, const std::vector<float>& weight, std::size_t count,
                                        std::int32_t first) {
    std::vector<std::int32_t> order{first};
    std::vector<double> nearest(v.rows(), std::numeric_limits<double>::infinity());
    while (order.size() < count) {
        const float* pick = v.row(static_cast<std::size_t>(order.back()));
        for (std::size_t i = 0; i < v.rows(); ++i) {
            double square = 0;
            for (std::size_t j = 0; j < v.cols(); ++j) square += (v(i, j) - pick[j]) * (v(i, j) - pick[j]);
            nearest[i] = std::min(nearest[i], square * weight[i]);
        }
        order.push_back(static_cast<std::int32_t>(std::max_element(nearest.begin(), nearest.end()) - nearest.begin()));
    }
    return order;
}

TEST(FarthestFirst, WeightedDistancesAsDefined) {
    for (const std::size_t d : {3U, 16U, 33U, 128U}) {
        const Matrix v = random_rows(150, d, d);
        Random random(7);
        std::vector<float> weight(v.rows()), square(v.rows());
        for (std::size_t i = 0; i < v.rows(); ++i) {
            weight[i] = static_cast<float>(0.3 + random.uniform());
            for (const float x : v.view().row_span(i)) square[i] += x * x;
        }
        FarthestWorkspace w;
        std::vector<std::int32_t> order{42};
        extend_farthest(v, {weight, square}, 60, w, order);
        EXPECT_EQ(order, by_definition(v, weight, 60, 42)) << d;
    }
}

TEST(FarthestFirst, CopiesOfOneVectorGoByNumber) {
    Matrix v(5, 4);
    for (float& x : v.flat()) x = 0.5F;
    const std::vector<float> weight(5, 1.0F), square(5, 1.0F);
    FarthestWorkspace w;
    std::vector<std::int32_t> order{2};
    extend_farthest(v, {weight, square}, 5, w, order);
    EXPECT_EQ(order, (std::vector<std::int32_t>{2, 0, 1, 3, 4}));
}

}  // namespace
}  // namespace marginmerge
