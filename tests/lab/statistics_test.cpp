#include "lab/statistics.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/npy.h"

namespace marginmerge::lab {
namespace {

std::vector<double> protocol(const std::string& name) {
    const Matrix m = test::load_floats(test::oracle("protocol/" + name + ".npy"));
    return {m.flat().begin(), m.flat().end()};
}

TEST(Statistics, OneDatasetIsThePapersPairedBootstrap) {
    const Paired pair{protocol("bootstrap_a"), protocol("bootstrap_b")};
    const Interval own = stratified_difference({&pair, 1});
    const Interval paper = paired_bootstrap(pair.a, pair.b);
    EXPECT_DOUBLE_EQ(own.mean, paper.mean);
    EXPECT_DOUBLE_EQ(own.low, paper.low);
    EXPECT_DOUBLE_EQ(own.high, paper.high);
    EXPECT_EQ(own.supported, paper.supported);
}

TEST(Statistics, DatasetsWeighTheSame) {
    const Paired pairs[] = {{{1, 1}, {0, 0}}, {std::vector<double>(100, 0.5), std::vector<double>(100, 0.5)}};
    EXPECT_DOUBLE_EQ(stratified_difference(pairs).mean, 0.5);
}

TEST(Statistics, RankCorrelationWithTies) {
    const std::vector<double> x = {1, 2, 2, 3, 5, 8}, y = {2, 1, 4, 4, 9, 3};
    EXPECT_NEAR(rank_correlation(x, y), 0.4852941176470589, 1e-12);  // scipy.stats.spearmanr
    EXPECT_EQ(rank_correlation(x, std::vector<double>(6, 1)), 0);
    const Interval i = rank_correlation_interval(x, x);
    EXPECT_DOUBLE_EQ(i.mean, 1);
    EXPECT_DOUBLE_EQ(i.high, 1);
}

TEST(Statistics, DeviationIsThePopulations) {
    const std::vector<double> seeds = {0.9245, 0.9246, 0.9324};  // the paper's ArxivQA row
    EXPECT_NEAR(mean(seeds), 0.9272, 5e-5);
    EXPECT_NEAR(deviation(seeds), 0.0037, 5e-5);
}

TEST(Statistics, RatesArePooledWithinADataset) {
    const PairedRates rates{{1, 0}, {1, 9}, {0, 0}, {1, 9}};
    EXPECT_DOUBLE_EQ(stratified_rate_difference({&rates, 1}).mean, 0.1);
}

}  // namespace
}  // namespace marginmerge::lab
