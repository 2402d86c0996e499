#include "kernels/probe.h"

#include "levels.h"

namespace marginmerge {
namespace {

class Probe : public testing::EveryLevel {};
MARGINMERGE_EVERY_LEVEL(Probe);

TEST_P(Probe, CountsItsOperations) {
    EXPECT_GT(fma_burst(10), 0.0);
    EXPECT_EQ(fma_burst(20), 2 * fma_burst(10));
    // Eight products in the place of one, ten chains instead of twelve.
    EXPECT_EQ(int8_burst(12) * 12, fma_burst(12) * 8 * 10);
}

TEST_P(Probe, ReadsEverything) {
    const std::vector<float> ones(4096, 1.0f);
    EXPECT_EQ(read_burst(ones), 4096.0f);
}

}  // namespace
}  // namespace marginmerge
