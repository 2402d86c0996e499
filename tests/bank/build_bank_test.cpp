#include "marginmerge/bank/build_bank.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/products.h"
#include "marginmerge/core/error.h"
#include "support/compress_case.h"
#include "support/thread_cluster.h"

namespace marginmerge {
namespace {

MultiVectorSet queries_of(ConstMatrix tokens, std::size_t each) {
    MultiVectorBuilder builder(tokens.cols);
    for (std::size_t i = 0; i + each <= tokens.rows; i += each)
        builder.add(fmt::format("q{}", i / each), tokens.middle_rows(i, each));
    return builder.finish();
}

TEST(Bank, FindsThePlantedDirections) {
    const Matrix tokens = test::random_page(4000, 32, 20, 0.15, 3);
    BankOptions options;
    options.prototypes = 20;
    BankReport report;
    const PrototypeBank bank = build_bank(queries_of(tokens, 20), options, {}, &report);
    ASSERT_EQ(bank.size(), 20u);
    EXPECT_FALSE(report.mini_batch);
    EXPECT_EQ(report.tokens, 4000u);
    std::vector<std::int32_t> index(tokens.rows());
    std::vector<float> similarity(tokens.rows());
    nearest(tokens, bank.prototypes, index, similarity);
    EXPECT_GT(*std::min_element(similarity.begin(), similarity.end()), 0.95f);
    EXPECT_NEAR(std::accumulate(bank.frequencies.begin(), bank.frequencies.end(), 0.0), 1.0, 1e-5);
    for (std::size_t t = 0; t < bank.size(); ++t)
        EXPECT_NEAR(dot(bank.prototypes.row(t), bank.prototypes.row(t), 32), 1, 1e-5);
    const auto omega = bank.weights();
    EXPECT_NEAR(std::accumulate(omega.begin(), omega.end(), 0.0), 1.0, 1e-5);
}

TEST(Bank, SameForAnyNumberOfProcesses) {
    const Matrix tokens = test::random_page(20000, 24, 100, 0.6, 4);
    for (const std::size_t above : {9000u, 100000u}) {
        BankOptions options;
        options.prototypes = 30;
        options.initialisations = 1;
        options.iterations = 4;
        options.mini_batch_above = above;
        options.threads = 1;
        const PrototypeBank one = build_bank(queries_of(tokens, 30), options);
        for (const std::size_t size : {2u, 5u}) {
            const auto banks = test::on_cluster(size, [&](Cluster* cluster) {
                BankOptions own = options;
                own.cluster = cluster;
                return build_bank(queries_of(tokens, 30), own);
            });
            for (const PrototypeBank& bank : banks) {
                EXPECT_EQ(test::largest_gap(one.prototypes, bank.prototypes), 0.0);
                EXPECT_EQ(one.frequencies, bank.frequencies);
            }
        }
    }
}

TEST(Bank, SameForAnyNumberOfThreads) {
    const Matrix tokens = test::random_page(12000, 24, 100, 0.6, 4);
    for (const std::size_t above : {9000u, 100000u}) {
        BankOptions options;
        options.prototypes = 40;
        options.initialisations = 2;
        options.iterations = 6;
        options.mini_batch_above = above;
        options.threads = 1;
        BankReport report;
        const PrototypeBank one = build_bank(queries_of(tokens, 30), options, {}, &report);
        EXPECT_EQ(report.mini_batch, above == 9000u);
        options.threads = 3;
        const PrototypeBank three = build_bank(queries_of(tokens, 30), options);
        EXPECT_EQ(test::largest_gap(one.prototypes, three.prototypes), 0.0);
        EXPECT_EQ(one.frequencies, three.frequencies);
        options.seed = 43;
        EXPECT_GT(test::largest_gap(one.prototypes, build_bank(queries_of(tokens, 30), options).prototypes), 0.0);
    }
}

TEST(Bank, EveryQueryWeighsTheSame) {
    // One query of many tokens in one direction, three of a single token in another.
    Matrix tokens(33, 16);
    for (std::size_t i = 0; i < 30; ++i) tokens(i, 0) = 1;
    for (std::size_t i = 30; i < 33; ++i) tokens(i, 1) = 1;
    const std::vector<std::int64_t> offsets = {0, 30, 31, 32, 33};
    BankOptions options;
    options.prototypes = 2;
    const PrototypeBank bank = build_bank(tokens, offsets, options);
    ASSERT_EQ(bank.size(), 2u);
    const std::size_t first = bank.prototypes(0, 0) > 0.5f ? 0 : 1;
    EXPECT_NEAR(bank.frequencies[first], 0.25, 1e-6);
    EXPECT_NEAR(bank.frequencies[1 - first], 0.75, 1e-6);
}

TEST(Bank, FewerDistinctTokensThanPrototypes) {
    Matrix tokens(40, 16);
    for (std::size_t i = 0; i < 40; ++i) tokens(i, i % 3) = 1;
    const PrototypeBank bank = build_bank(queries_of(tokens, 10), {});
    EXPECT_EQ(bank.size(), 3u);
    for (const float f : bank.frequencies) EXPECT_GT(f, 0.0f);
}

TEST(Bank, CapsAndSamplesTokens) {
    const Matrix tokens = test::random_page(5000, 16, 50, 0.5, 4);
    BankOptions options;
    options.prototypes = 8;
    BankReport report;
    build_bank(queries_of(tokens, 100), options, {}, &report);
    EXPECT_EQ(report.tokens, 50u * 32u);
    options.token_cap = 700;
    build_bank(queries_of(tokens, 100), options, {}, &report);
    EXPECT_EQ(report.tokens, 700u);
    EXPECT_EQ(report.queries, 50u);
}

TEST(Bank, KeepsExcludedQueriesOutAndRefusesLeaks) {
    const Matrix tokens = test::random_page(500, 16, 50, 0.5, 4);
    const MultiVectorSet queries = queries_of(tokens, 10);
    BankOptions options;
    options.prototypes = 8;
    options.excluded = {"q3", "q7", "elsewhere"};
    BankReport report;
    const PrototypeBank bank = build_bank(queries, options, {}, &report);
    EXPECT_EQ(report.excluded, 2u);
    EXPECT_EQ(bank.query_ids.size(), 48u);
    EXPECT_EQ(bank.excluded_ids, (std::vector<std::string>{"q3", "q7"}));
    const std::vector<std::size_t> clean = {3, 7}, leaking = {3, 4};
    EXPECT_NO_THROW(refuse_leakage(bank, queries.subset(clean)));
    EXPECT_THROW(refuse_leakage(bank, queries.subset(leaking)), Error);
}

TEST(Bank, RefusesNothingAndNaN) {
    EXPECT_THROW(build_bank(Matrix(3, 16), std::vector<std::int64_t>{0, 3}, {}), Error);  // padding only
    Matrix broken(3, 16);
    broken(1, 2) = NAN;
    EXPECT_THROW(build_bank(broken, std::vector<std::int64_t>{0, 3}, {}), Error);
    EXPECT_THROW(build_bank(broken, std::vector<std::int64_t>{0, 4}, {}), Error);
}

}  // namespace
}  // namespace marginmerge
