#include "marginmerge/eval/bootstrap.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "marginmerge/core/error.h"
#include "support/npy.h"

namespace marginmerge {
namespace {

std::vector<double> load(const char* name) {
    const Matrix m = test::load_floats(test::oracle(std::string("protocol/") + name));
    return {m.flat().begin(), m.flat().end()};
}

TEST(Bootstrap, AgreesWithTheReferenceProtocol) {
    const auto a = load("bootstrap_a.npy"), b = load("bootstrap_b.npy");
    const auto expected = nlohmann::json::parse(std::ifstream(test::oracle("protocol/bootstrap.json")));
    const Interval i = paired_bootstrap(a, b);
    EXPECT_NEAR(i.mean, expected["mean"].get<double>(), 1e-6);
    EXPECT_NEAR(i.low, expected["lo"].get<double>(), 1e-6);
    EXPECT_NEAR(i.high, expected["hi"].get<double>(), 1e-6);
    EXPECT_TRUE(i.supported);
    const Interval reversed = paired_bootstrap(b, a);
    EXPECT_NEAR(reversed.high, -i.low, 1e-12);
    EXPECT_TRUE(reversed.supported);
}

TEST(Bootstrap, TinyAndUncertainDifferencesAreNotSupported) {
    const std::vector<double> zero(50, 0.0), tiny(50, 0.004), fair(50, 0.006);
    EXPECT_FALSE(paired_bootstrap(zero, zero).supported);
    EXPECT_FALSE(paired_bootstrap(tiny, zero).supported);  // certain, but smaller than 0.005
    EXPECT_TRUE(paired_bootstrap(fair, zero).supported);
    std::vector<double> noisy(50);
    for (std::size_t i = 0; i < noisy.size(); ++i) noisy[i] = i % 2 == 0 ? 1.0 : -0.98;
    EXPECT_FALSE(paired_bootstrap(noisy, zero).supported);
    EXPECT_EQ(paired_bootstrap({}, {}).mean, 0);
    EXPECT_THROW(paired_bootstrap(zero, std::vector<double>(3)), Error);
}

TEST(Bootstrap, RatesArePooled) {
    const std::vector<double> part{1, 0, 3}, whole{10, 10, 80};
    const Interval i = ratio_bootstrap(part, whole);
    EXPECT_NEAR(i.mean, 0.04, 1e-12);
    EXPECT_GE(i.mean, i.low);
    EXPECT_LE(i.mean, i.high);
    EXPECT_EQ(i.low, 0);  // all three draws may be the query without any
}

}  // namespace
}  // namespace marginmerge
