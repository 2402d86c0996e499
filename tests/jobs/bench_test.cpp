#include "marginmerge/jobs/bench.h"

#include <gtest/gtest.h>

#include <set>

#include "kernels/maxsim.h"

namespace marginmerge {
namespace {

BenchOptions quick() {
    BenchOptions options;
    options.threads = 2;
    options.seconds = 0.005;
    options.max_pages = 1000;
    return options;
}

void expect_sound(const BenchReport& report) {
    EXPECT_EQ(report.machine.kernel, kernel_name());
    EXPECT_GT(report.machine.fma, 0.0);
    EXPECT_GT(report.machine.int8, 0.0);
    EXPECT_GT(report.machine.read_one, 0.0);
    ASSERT_FALSE(report.rows.empty());
    for (const BenchRow& row : report.rows) EXPECT_GT(row.milliseconds, 0.0) << row.what;
}

TEST(Bench, SearchMeasuresEveryStoreWithOneAndAllThreads) {
    const BenchReport report = bench_search(quick());
    expect_sound(report);
    std::set<std::string> stores;
    std::set<std::size_t> threads;
    for (const BenchRow& row : report.rows) {
        stores.insert(row.what);
        threads.insert(row.threads);
        EXPECT_EQ(row.size, "1000 pages");
        EXPECT_NEAR(row.rate * row.milliseconds, 1000.0, 1e-6) << "queries/s and ms a query say the same";
    }
    EXPECT_TRUE(stores.contains("F32") && stores.contains("F16") && stores.contains("int8") && stores.contains("bits"));
    EXPECT_EQ(threads, (std::set<std::size_t>{1, 2}));
}

TEST(Bench, PageRelatesTheConstructionToItsProducts) {
    const BenchReport report = bench_page(quick());
    expect_sound(report);
    std::size_t whole = 0;
    for (const BenchRow& row : report.rows) whole += row.what == "whole construction";
    EXPECT_EQ(whole, 4U);
}

}  // namespace
}  // namespace marginmerge
