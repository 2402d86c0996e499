#include "learn/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "learn/train_oracle.h"
#include "support/npy.h"

namespace marginmerge {
namespace {

// Three epochs over queries 0-17, four to an update; the two left over at an epoch's end are dropped.
TEST(AdamW, TrajectoriesOfTheReference) {
    const test::TrainOracle data;
    for (const std::string name : {"full", "margin", "score_reconstruction"}) {
        std::ifstream in(test::oracle("train/trajectory/" + name + "/meta.json"));
        const auto meta = nlohmann::json::parse(in);
        Parameters parameters = data.start;
        AdamWState state;
        const Objective objective = objective_named(name == "score_reconstruction" ? "score" : name);
        for (int epoch = 0; epoch < 3; ++epoch) {
            double sum = 0;
            for (std::size_t first = 0; first < 18; first += 4) {
                std::vector<TrainingExample> examples;
                for (std::size_t q = first; q < std::min<std::size_t>(18, first + 4); ++q)
                    examples.push_back(data.example(q));
                BatchPass pass;
                Gradient gradient{};
                for (const LossTerms& loss : pass.run(objective, parameters, 5, examples, 4, 1, gradient))
                    sum += loss.total;
                if (examples.size() == 4) adamw_step(AdamWOptions{}, gradient, state, parameters);
            }
            const double expected = meta.at("epoch_mean_loss").at(static_cast<std::size_t>(epoch));
            EXPECT_NEAR(sum / 18, expected, 1e-4 * expected) << name << " epoch " << epoch;
        }
        EXPECT_EQ(state.steps, 12U);
        const Network expected = test::load_network("train/trajectory/" + name);
        for (std::size_t i = 0; i < Network::parameter_count; ++i) {
            EXPECT_NEAR(parameters.network.parameters[i], expected.parameters[i], 1e-5) << name << " parameter " << i;
        }
        EXPECT_EQ(parameters.base[0], data.start.base[0]);
    }
}

TEST(AdamW, ClipsTheNormAndMovesTheBaseOnlyWhenAsked) {
    Gradient gradient{};
    gradient[0] = 30;
    gradient[Parameters::norm_power] = 40;
    AdamWOptions options;
    options.base_rate = 0.01;
    AdamWState state;
    Parameters parameters;
    EXPECT_NEAR(adamw_step(options, gradient, state, parameters), 50, 1e-4);
    EXPECT_NEAR(state.first[0], 0.1 * 30 / 50, 1e-6);
    EXPECT_LT(parameters.base[2], 1.0F);
    options.base_rate = 0;
    Parameters fixed;
    AdamWState fresh;
    EXPECT_NEAR(adamw_step(options, gradient, fresh, fixed), 30, 1e-4);
    EXPECT_EQ(fixed.base[2], 1.0F);
}

}  // namespace
}  // namespace marginmerge
