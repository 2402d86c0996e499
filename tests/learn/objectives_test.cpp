#include "learn/objectives.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "learn/train_oracle.h"
#include "marginmerge/core/error.h"
#include "support/npy.h"

namespace marginmerge {
namespace {

// The reference calls score reconstruction by its long name.
std::string our_name(const std::string& name) { return name == "score_reconstruction" ? "score" : name; }

const std::vector<std::string> names = {"full", "margin", "no_listwise", "no_boundary", "score_reconstruction"};

TEST(Objectives, LossesOfTheReference) {
    const test::TrainOracle data;
    std::ifstream in(test::oracle("train/losses.json"));
    const auto reference = nlohmann::json::parse(in);
    for (const auto& name : names) {
        for (std::size_t q = 0; q < 4; ++q) {
            BatchPass pass;
            Gradient gradient{};
            const std::vector<TrainingExample> examples{data.example(q)};
            const LossTerms loss =
                pass.run(objective_named(our_name(name)), data.start, 5, examples, 1, 1, gradient).at(0);
            const auto& expected = reference.at(name).at(q);
            const auto check = [&](double actual, double wanted, const char* term) {
                EXPECT_NEAR(actual, wanted, 1e-4 * std::max(1e-2, std::abs(wanted))) << name << " " << q << " " << term;
            };
            check(loss.total, expected.at("total"), "total");
            check(loss.weight, expected.at("weight"), "weight");
            if (name == "score_reconstruction") {
                check(loss.score, expected.at("score_pos").get<double>() + expected.at("score_neg").get<double>(),
                      "score");
            } else {
                check(loss.margin, expected.at("margin"), "margin");
                check(loss.rank, expected.at("rank"), "rank");
                check(loss.entropy, expected.at("entropy"), "entropy");
                check(loss.anchor, expected.at("anchor"), "anchor");
                check(loss.list, expected.at("list"), "list");
            }
        }
    }
}

TEST(Objectives, EveryGradientTensorOfTheReference) {
    const test::TrainOracle data;
    for (const auto& name : names) {
        for (std::size_t q = 0; q < 4; ++q) {
            BatchPass pass;
            Gradient gradient{};
            const std::vector<TrainingExample> examples{data.example(q)};
            pass.run(objective_named(our_name(name)), data.start, 5, examples, 1, 1, gradient);
            const Network expected = test::load_network("train/gradients/" + name + "/query_0" + std::to_string(q));
            // Tensor by tensor: the error's norm against the tensor's norm.
            const std::size_t bounds[] = {
                Network::w1, Network::b1, Network::w2, Network::b2, Network::w3, Network::b3, Network::parameter_count};
            for (std::size_t t = 0; t + 1 < std::size(bounds); ++t) {
                double error = 0, size = 0;
                for (std::size_t i = bounds[t]; i < bounds[t + 1]; ++i) {
                    error += std::pow(gradient[i] - expected.parameters[i], 2);
                    size += std::pow(expected.parameters[i], 2);
                }
                EXPECT_LE(std::sqrt(error), 1e-4 * std::sqrt(size) + 1e-7) << name << " query " << q << " tensor " << t;
            }
        }
    }
}

// Central differences along random directions for the network, alone for each base constant; every
// term on, several positives, residuals partly clipped and anchors partly starved.
TEST(Objectives, FiniteDifferences) {
    const test::TrainOracle data;
    Objective objective;
    objective.score = 0.3;
    objective.weight = 0.05;
    objective.entropy = 0.7;
    objective.anchor = 20;
    Parameters start = data.start;
    start.base[0] = 9.0F;
    start.base[1] = 0.4F;
    start.base[2] = 1.4F;
    for (std::size_t i = Network::w3; i < Network::b3; ++i) start.network.parameters[i] *= 6;
    std::vector<TrainingPage> pages = data.pages;
    for (auto& page : pages) {
        for (std::size_t i = 0; i < page.patches(); ++i) page.log_relevance[i] = -0.3F * static_cast<float>(i % 5);
        for (std::size_t c = 0; c < page.clusters(); c += 2) {
            page.log_relevance[static_cast<std::size_t>(page.anchors[c])] = -28.0F;
        }
    }
    TrainingExample example = data.example(1);
    for (std::size_t i = 0; i < example.pages.size(); ++i) {
        example.pages[i] = &pages[static_cast<std::size_t>(example.pages[i] - data.pages.data())];
    }
    example.positive_weight = {0.75, 0.25};
    const std::vector<TrainingExample> examples{example};
    const auto loss = [&](const Parameters& p) {
        BatchPass pass;
        Gradient ignored{};
        return pass.run(objective, p, 1.5, examples, 1, 1, ignored).at(0).total;
    };
    BatchPass pass;
    Gradient gradient{};
    const LossTerms terms = pass.run(objective, start, 1.5, examples, 1, 1, gradient).at(0);
    EXPECT_GT(terms.anchor, 0);
    EXPECT_GT(terms.entropy, 0);

    std::uint64_t state = 1;
    const auto sign = [&] {
        return ((state = state * 6364136223846793005ULL + 1442695040888963407ULL) >> 63) ? 1.0F : -1.0F;
    };
    for (int trial = 0; trial < 8; ++trial) {
        const float step = 2e-4F;
        Parameters up = start, down = start;
        double expected = 0;
        for (std::size_t i = 0; i < Network::parameter_count; ++i) {
            const float s = sign();
            up.at(i) += s * step;
            down.at(i) -= s * step;
            expected +=
                static_cast<double>(gradient[i]) * (static_cast<double>(up.at(i)) - static_cast<double>(down.at(i)));
        }
        EXPECT_NEAR(loss(up) - loss(down), expected, 0.03 * std::abs(expected) + 3e-6) << trial;
    }
    for (std::size_t i = Network::parameter_count; i < Parameters::count; ++i) {
        const float step = 1e-3F * std::max(1.0F, std::abs(start.get(i)));
        Parameters up = start, down = start;
        up.at(i) += step;
        down.at(i) -= step;
        const double slope =
            (loss(up) - loss(down)) / (static_cast<double>(up.get(i)) - static_cast<double>(down.get(i)));
        EXPECT_NEAR(gradient[i], slope, 0.02 * std::abs(slope) + 2e-4)
            << "base constant " << i - Network::parameter_count;
    }
}

TEST(Objectives, ResultDoesNotDependOnThreads) {
    const test::TrainOracle data;
    std::vector<TrainingExample> examples;
    for (std::size_t q = 0; q < 4; ++q) examples.push_back(data.example(q));
    Gradient one{}, two{};
    BatchPass a, b;
    a.run(Objective{}, data.start, 5, examples, 4, 1, one);
    b.run(Objective{}, data.start, 5, examples, 4, 2, two);
    EXPECT_EQ(one, two);
}

TEST(Objectives, SeveralPositivesAverageToTheirSingleLosses) {
    const std::vector<double> full{4, 3, 2, 1}, compressed{3.5, 3.1, 2.6, 0.2};
    Objective objective = objective_named("margin");
    std::vector<double> d(4);
    const double both = score_loss(objective, full, compressed, std::vector<double>{0.5, 0.5}, d).margin;
    std::vector<double> d1(3);
    const double first = score_loss(objective, std::vector<double>{4, 2, 1}, std::vector<double>{3.5, 2.6, 0.2},
                                    std::vector<double>{1.0}, d1)
                             .margin;
    const double second = score_loss(objective, std::vector<double>{3, 2, 1}, std::vector<double>{3.1, 2.6, 0.2},
                                     std::vector<double>{1.0}, d1)
                              .margin;
    EXPECT_NEAR(both, 0.5 * first + 0.5 * second, 1e-12);
    EXPECT_NEAR(d[0] + d[1] + d[2] + d[3], 0, 1e-12);
}

TEST(Objectives, UnknownNameIsRefused) { EXPECT_THROW(objective_named("best"), Error); }

}  // namespace
}  // namespace marginmerge
