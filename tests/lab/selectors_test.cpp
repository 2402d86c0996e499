#include "lab/selectors.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lab/logistic.h"
#include "merge/baselines.h"
#include "support/npy.h"

namespace marginmerge::lab {
namespace {

Matrix baseline(const std::string& name) { return test::load_floats(test::oracle("baselines/" + name + ".npy")); }

// Coefficients of scikit-learn's LogisticRegression(class_weight="balanced", C=1) on the standardised reference
// features.
TEST(Selectors, LikelihoodRegressionAgreesWithScikitLearn) {
    const Matrix x = baseline("selector_features"), labels = baseline("winner_labels");
    const LinearScore score = fit_logistic(x, labels.flat());
    const double expected[] = {0.15719, 0.15719, 0.44464, 0.46897, -0.08659, 0.08659};
    for (std::size_t j = 0; j < 6; ++j) EXPECT_NEAR(score.weight[j], expected[j], 2e-4) << j;
    EXPECT_NEAR(score.bias, -0.4269, 2e-4);
    std::vector<std::pair<double, int>> order;
    for (std::size_t i = 0; i < x.rows(); ++i) order.emplace_back(-score(x.view().row_span(i)), static_cast<int>(i));
    std::sort(order.begin(), order.end());
    std::vector<int> kept;
    for (std::size_t i = 0; i < 6; ++i) kept.push_back(order[i].second);
    std::sort(kept.begin(), kept.end());
    EXPECT_EQ(kept, (std::vector<int>{1, 6, 15, 20, 45, 49}));
}

TEST(Selectors, OneClassGivesNoPreference) {
    const Matrix x = baseline("selector_features");
    const LinearScore score = fit_logistic(x, std::vector<float>(x.rows(), 1.0f));
    EXPECT_EQ(score(x.view().row_span(0)), score(x.view().row_span(5)));
}

TEST(Selectors, UntrainedOnesNeedNoQueries) {
    const Matrix v = baseline("doc");
    const Dataset none;
    for (const char* name : {"random", "kcenter", "importance", "salience"}) {
        auto kept = make_selector({{"selector", name}}, none, 42, 1)->keep(v, 9, 7);
        ASSERT_EQ(kept.size(), 9u) << name;
        std::sort(kept.begin(), kept.end());
        EXPECT_EQ(std::unique(kept.begin(), kept.end()), kept.end()) << name;
        EXPECT_GE(kept.front(), 0);
        EXPECT_LT(static_cast<std::size_t>(kept.back()), v.rows());
    }
    // The most distinct patches are the least important ones.
    const auto salient = make_selector({{"selector", "salience"}}, none, 42, 1)->keep(v, v.rows(), 0);
    const auto important = importance_kept(v, 1);
    EXPECT_EQ(salient.back(), important.front());
}

}  // namespace
}  // namespace marginmerge::lab
