#include "learn/label_trial.h"

#include <gtest/gtest.h>

#include <cmath>

namespace marginmerge {
namespace {

// Two queries, 100 pairs each; of both the same loss and flips at each strength.
LabelTrial trial_of(std::vector<double> losses, std::vector<std::size_t> flips) {
    std::vector<double> strengths(losses.size());
    for (std::size_t i = 0; i < strengths.size(); ++i) strengths[i] = static_cast<double>(i);
    LabelTrial trial(strengths);
    for (int q = 0; q < 2; ++q) {
        std::vector<RankingEffect> effects;
        for (std::size_t i = 0; i < losses.size(); ++i) effects.push_back({losses[i], 0.5, flips[i], 100});
        trial.add(effects);
    }
    return trial;
}

TEST(LabelTrial, CountsPairsAndGains) {
    const LabelTrial trial = trial_of({3, 2.5, 4}, {0, 1, 5});
    EXPECT_DOUBLE_EQ(trial.flips(1), 0.01);
    EXPECT_DOUBLE_EQ(trial.flips(2), 0.05);
    EXPECT_DOUBLE_EQ(trial.gain(1), 1);
    EXPECT_DOUBLE_EQ(trial.gain(2), -2);
}

TEST(LabelTrial, HelpsWhenTheGainIsMoreThanItsStandardError) {
    LabelTrial trial({0, 1, 2});
    const double none[] = {0.2, 0.4, 0.6, 0.8};
    const double sure[] = {0.31, 0.5, 0.7, 0.89}, unsure[] = {0.9, 0.1, 0.6, 0.5};
    for (int q = 0; q < 4; ++q)
        trial.add(std::vector<RankingEffect>{{0, none[q], 0, 10}, {0, sure[q], 0, 10}, {0, unsure[q], 0, 10}});
    EXPECT_NEAR(trial.ndcg(1), 0.6, 1e-12);
    // Differences .11, .1, .1, .09: deviation sqrt(2e-4 / 3), of their mean half as much.
    EXPECT_NEAR(trial.standard_error(1), std::sqrt(2e-4 / 3) / 2, 1e-12);
    EXPECT_TRUE(trial.helps(1));
    EXPECT_FALSE(trial.helps(2));
    EXPECT_FALSE(trial.helps(0));
    LabelTrial dear({0, 1});
    dear.add(std::vector<RankingEffect>{{0, 0.5, 0, 100}, {0, 0.52, 1, 100}});  // .02 for 1% of the pairs
    EXPECT_TRUE(dear.pays(1, 1.99));
    EXPECT_FALSE(dear.pays(1, 2.01));
}

TEST(LabelTrial, TwoThingsShareThePairsThatMayChange) {
    // What a can do gains 1 for 2% of the pairs, 1.5 for 4%; b gains .8 for 1% and 1.6 for 3%.
    const LabelTrial a = trial_of({5, 4, 3.5}, {0, 2, 4}), b = trial_of({5, 4.2, 3.4}, {0, 1, 3});
    EXPECT_EQ(best_together(a, b, 1), std::pair(std::size_t{2}, std::size_t{2}));
    EXPECT_EQ(best_together(a, b, 0.0501), std::pair(std::size_t{1}, std::size_t{2}));
    EXPECT_EQ(best_together(a, b, 0.0301), std::pair(std::size_t{1}, std::size_t{1}));
    EXPECT_EQ(best_together(a, b, 0.0201), std::pair(std::size_t{1}, std::size_t{0}));
    EXPECT_EQ(best_together(a, b, 0.0101), std::pair(std::size_t{0}, std::size_t{1}));
    EXPECT_EQ(best_together(a, b, 0), std::pair(std::size_t{0}, std::size_t{0}));
    const LabelTrial nothing({0});
    EXPECT_EQ(best_together(nothing, b, 0.02), std::pair(std::size_t{0}, std::size_t{1}));
}

TEST(LabelTrial, WhatOnlyHarmsIsLeftOut) {
    const LabelTrial harm = trial_of({1, 2, 3}, {0, 0, 0});
    EXPECT_EQ(best_together(harm, harm, 1), std::pair(std::size_t{0}, std::size_t{0}));
}

}  // namespace
}  // namespace marginmerge
