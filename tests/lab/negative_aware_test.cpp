#include "lab/negative_aware.h"

#include <gtest/gtest.h>

#include "core/random.h"

namespace marginmerge::lab {
namespace {

Matrix random_matrix(std::size_t rows, std::size_t cols, std::uint64_t seed) {
    Matrix m(rows, cols);
    Random random(seed);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    return m;
}

TEST(NegativeAware, GradientAgreesWithFiniteDifferences) {
    const Matrix inputs[] = {random_matrix(9, 5, 1), random_matrix(7, 5, 2), random_matrix(11, 5, 3)};
    std::vector<GatedPage> pages;
    for (std::size_t i = 0; i < 3; ++i) {
        GatedPage page{&inputs[i], random_matrix(4, inputs[i].rows(), 10 + i)};
        for (float& a : page.answers.flat()) a = 0.5f + 0.2f * a;
        pages.push_back(std::move(page));
    }
    std::vector<double> theta = {0.3, -0.2, 0.1, 0.4, -0.5, -0.1}, gradient(6, 0), unused(6, 0);
    gate_loss(pages, theta, 0.2, 3, gradient);
    for (std::size_t j = 0; j < theta.size(); ++j) {
        constexpr double step = 1e-6;
        auto up = theta, down = theta;
        up[j] += step;
        down[j] -= step;
        const double slope =
            (gate_loss(pages, up, 0.2, 3, unused) - gate_loss(pages, down, 0.2, 3, unused)) / (2 * step);
        EXPECT_NEAR(gradient[j], slope, 1e-6) << j;
    }
}

}  // namespace
}  // namespace marginmerge::lab
