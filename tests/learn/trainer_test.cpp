#include "learn/trainer.h"

#include <gtest/gtest.h>

#include "learn/train_oracle.h"
#include "support/expect_error.h"

namespace marginmerge {
namespace {

struct Trained {
    test::TrainOracle data;
    std::vector<TrainingExample> examples;
    std::vector<ValidationSide> sides;

    Trained() {
        for (std::size_t q = 0; q < 16; ++q) examples.push_back(data.example(q));
        ValidationSide side;
        for (const auto& page : data.pages) side.pages.push_back(&page);
        side.full_scores = Matrix(4, data.pages.size());
        for (std::size_t q = 16; q < 20; ++q) {
            side.queries.push_back(&data.queries[q]);
            side.relevant.push_back({{static_cast<std::size_t>(data.gold[q])}, {1}});
            for (std::size_t i = 0; i < data.pages.size(); ++i) side.full_scores(q - 16, i) = data.full_scores(q, i);
        }
        sides.push_back(std::move(side));
    }
};

TEST(Trainer, LowersTheLossAndKeepsTheBestEpoch) {
    const Trained s;
    TrainerOptions options;
    options.epochs = 12;
    options.patience = 100;
    options.optimiser.learning_rate = 3e-3;
    options.rule = CheckpointRule::fidelity;
    TrainerState state;
    state.parameters = s.data.start;
    train(options, s.examples, s.sides, state);
    ASSERT_EQ(state.curve.size(), 13U);
    EXPECT_EQ(state.curve[0].epoch, 0U);
    EXPECT_LT(state.curve.back().loss.total, 0.9 * state.curve[1].loss.total);
    double least = 1e9;
    for (const auto& e : state.curve) least = std::min(least, e.validation.error);
    EXPECT_EQ(state.best_figures.error, least);
    EXPECT_EQ(judge_parameters(s.sides, state.best, 5, 1).error, least);
}

TEST(Trainer, PatienceEndsItAndThreadsDoNotMatter) {
    const Trained s;
    TrainerOptions options;
    options.epochs = 50;
    options.patience = 2;
    options.optimiser.learning_rate = 0;
    TrainerState state;
    state.parameters = s.data.start;
    train(options, s.examples, s.sides, state);
    EXPECT_EQ(state.epoch, 2U);
    EXPECT_EQ(state.best_epoch, 0U);

    options = {};
    options.epochs = 3;
    options.threads = 1;
    TrainerState one;
    one.parameters = s.data.start;
    train(options, s.examples, s.sides, one);
    for (const std::size_t threads : {2, 3, 7}) {  // an update has four examples: threads for some, or several for each
        options.threads = threads;
        TrainerState several;
        several.parameters = s.data.start;
        train(options, s.examples, s.sides, several);
        EXPECT_EQ(one.parameters.network.parameters, several.parameters.network.parameters) << threads;
    }
}

TEST(Trainer, ResumingGivesTheSameWeights) {
    const Trained s;
    TrainerOptions options;
    options.epochs = 5;
    TrainerState whole, saved;
    whole.parameters = s.data.start;
    train(options, s.examples, s.sides, whole, [&](const TrainerState& now) {
        if (now.epoch == 2) saved = now;
    });
    ASSERT_EQ(saved.epoch, 2U);
    train(options, s.examples, s.sides, saved);
    EXPECT_EQ(whole.parameters.network.parameters, saved.parameters.network.parameters);
    EXPECT_EQ(whole.curve.size(), saved.curve.size());
}

TEST(Trainer, StartsAreSeededAndMayBeginAtZero) {
    EXPECT_EQ(initial_network(42, 1).parameters, initial_network(42, 1).parameters);
    EXPECT_NE(initial_network(42, 1).parameters, initial_network(43, 1).parameters);
    const Network zero = initial_network(42, 0);
    for (std::size_t i = Network::w3; i < Network::parameter_count; ++i) EXPECT_EQ(zero.parameters[i], 0);
    for (std::size_t i = 0; i < Network::w2; ++i) EXPECT_LE(std::abs(zero.parameters[i]), 0.2582F);
}

TEST(Trainer, SaysThatItDiverged) {
    const Trained s;
    TrainerOptions options;
    options.epochs = 5;
    TrainerState state;
    state.parameters = s.data.start;
    for (const double rate : {1e30, std::numeric_limits<double>::quiet_NaN()}) {
        options.optimiser.learning_rate = rate;
        options.optimiser.base_rate = rate;
        TrainerState own = state;
        test::expect_error(ErrorCode::invalid_argument, {"training", "--lr"},
                           [&] { train(options, s.examples, s.sides, own); });
    }
}

}  // namespace
}  // namespace marginmerge
