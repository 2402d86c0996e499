#include "core/parallel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

namespace marginmerge {

TEST(ParallelFor, VisitsEveryIndexOnce) {
    for (const std::size_t threads : {1U, 2U, 7U}) {
        std::vector<int> visits(1000, 0);
        parallel_for(visits.size(), threads, [&](std::size_t i) { ++visits[i]; });
        EXPECT_EQ(visits, std::vector<int>(1000, 1)) << threads;
    }
}

TEST(ParallelFor, WorkersNeverShareANumber) {
    std::vector<std::atomic<int>> busy(4);
    parallel_for_workers(400, 4, [&](std::size_t, std::size_t worker) {
        ASSERT_LT(worker, 4U);
        ASSERT_EQ(busy[worker].fetch_add(1), 0);
        parallel_for(8, 4, [](std::size_t) {});  // a nested loop must not let another index in
        busy[worker].fetch_sub(1);
    });
}

TEST(ParallelFor, StartsNoMoreThreadsThanCanBe) {
    EXPECT_EQ(resolve_threads(3), 3U);
    EXPECT_EQ(resolve_threads(std::size_t{1} << 32), std::max<std::size_t>(256, resolve_threads(0)));
    std::vector<int> visits(2000, 0);
    parallel_for(visits.size(), std::size_t{1} << 32, [&](std::size_t i) { ++visits[i]; });
    EXPECT_EQ(visits, std::vector<int>(2000, 1));
}

TEST(ParallelFor, RethrowsTheFirstException) {
    EXPECT_THROW(parallel_for(100, 2,
                              [](std::size_t i) {
                                  if (i == 50) throw std::runtime_error("x");
                              }),
                 std::runtime_error);
}

}  // namespace marginmerge
