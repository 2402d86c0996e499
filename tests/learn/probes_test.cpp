#include "learn/probes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "core/random.h"
#include "kernels/products.h"
#include "learn/token_model.h"

namespace marginmerge {
namespace {

constexpr std::size_t d = 24;

Matrix unit_rows(std::size_t rows, std::uint64_t seed, float shift) {
    Random random(seed);
    Matrix m(rows, d);
    for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < d; ++j) m(i, j) = static_cast<float>(random.normal()) / 5 + (j == 0 ? shift : 0);
    }
    normalise_rows(m);
    return m;
}

MultiVectorSet corpus() {
    MultiVectorBuilder builder(d);
    for (std::uint64_t i = 0; i < 20; ++i) builder.add("", unit_rows(30, 100 + i, -1));
    return builder.finish();
}

std::vector<std::size_t> all_of(const MultiVectorSet& set) {
    std::vector<std::size_t> positions(set.size());
    std::iota(positions.begin(), positions.end(), std::size_t{0});
    return positions;
}

double mean_of_first(const ProbeSet& p) {
    double sum = 0;
    for (std::size_t i = 0; i < p.tokens.rows(); ++i) sum += p.weights[i] * p.tokens(i, 0);
    return sum;
}

TEST(Probes, MappedVectorsLieWhereQueriesLie) {
    const MultiVectorSet documents = corpus();
    const Matrix queries = unit_rows(200, 1, 1);
    ProbeOptions options;
    options.mapped = 300;
    options.sample = 600;
    const ProbeSet probes = make_probes({queries, {}, {}}, documents, all_of(documents), options);
    EXPECT_EQ(probes.tokens.rows(), 500U);
    EXPECT_NEAR(std::accumulate(probes.weights.begin(), probes.weights.end(), 0.0), 1, 1e-5);
    double query_mean = 0;
    for (std::size_t i = 0; i < queries.rows(); ++i) query_mean += queries(i, 0) / 200.0;
    ASSERT_GT(query_mean, 0.5);
    // The corpus lies on the other side: unmapped, its half of the weight would pull the mean to zero.
    EXPECT_NEAR(mean_of_first(probes), query_mean, 0.05);
    for (std::size_t i = 0; i < probes.tokens.rows(); ++i) {
        EXPECT_NEAR(dot(probes.tokens.row(i), probes.tokens.row(i), d), 1, 1e-4);
    }
}

// Two kinds of answers, each asked for in a way of its own: vectors of the corpus are asked for like their own kind, as
// sharply as the token asked for its answer.
TEST(Probes, VectorsAreAskedForLikeTheAnswersTheyResemble) {
    constexpr std::size_t pairs = 400;
    const Matrix one = unit_rows(pairs / 2 + 50, 5, 3), other = unit_rows(pairs / 2 + 50, 6, -3);
    Matrix answers(pairs, d), tokens(pairs, d), vectors(100, d);
    for (std::size_t i = 0; i < pairs; ++i) {
        const bool first = i % 2 == 0;
        std::copy_n((first ? one : other).row(i / 2), d, answers.row(i));
        // Sideways along axis 1 or 2, far or near.
        std::copy_n(answers.row(i), d, tokens.row(i));
        tokens(i, first ? 1 : 2) += first ? 2.0F : 0.3F;
    }
    normalise_rows(tokens);
    for (std::size_t i = 0; i < 100; ++i)
        std::copy_n((i < 50 ? one : other).row(pairs / 2 + i % 50), d, vectors.row(i));
    const Matrix asked = ask_by_example(vectors, tokens, answers, {});
    double far = 0, near = 0, along_1 = 0, along_2 = 0;
    for (std::size_t i = 0; i < 100; ++i) {
        EXPECT_NEAR(dot(asked.row(i), asked.row(i), d), 1, 1e-4);
        (i < 50 ? far : near) += dot(asked.row(i), vectors.row(i), d) / 50;
        (i < 50 ? along_1 : along_2) += (asked(i, i < 50 ? 1 : 2)) / 50;
    }
    EXPECT_NEAR(far, 1 / std::sqrt(5.0), 0.1);
    EXPECT_GT(near, 0.93);
    EXPECT_GT(along_1, 0.7);
    EXPECT_GT(along_2, 0.15);
    const Matrix again = ask_by_example(vectors, tokens, answers, {.threads = 2});
    EXPECT_TRUE(std::equal(asked.flat().begin(), asked.flat().end(), again.flat().begin()));
    // Lengths say nothing.
    Matrix longer = answers;
    for (float& x : longer.flat()) x *= 40;
    const Matrix same = ask_by_example(vectors, tokens, longer, {});
    for (std::size_t i = 0; i < 100; ++i) EXPECT_GT(dot(asked.row(i), same.row(i), d), 0.999);
    // A token that is its own answer asks for any vector by itself.
    const Matrix itself = ask_by_example(vectors, answers, answers, {});
    EXPECT_GT(dot(itself.row(3), vectors.row(3), d), 0.999);
}

TEST(Probes, DuplicatesAreJoinedAndWeighTogether) {
    const MultiVectorSet documents = corpus();
    const Matrix distinct = unit_rows(10, 1, 1);
    Matrix queries(40, d);
    for (std::size_t i = 0; i < 40; ++i) std::copy_n(distinct.row(i < 31 ? 0 : i - 30), d, queries.row(i));
    ProbeOptions options;
    options.mapped = 0;
    const ProbeSet probes = make_probes({queries, {}, {}}, documents, all_of(documents), options);
    ASSERT_EQ(probes.tokens.rows(), 10U);
    EXPECT_NEAR(*std::max_element(probes.weights.begin(), probes.weights.end()), 31.0 / 40, 1e-5);
}

TEST(Probes, BudgetSeedAndNoQueries) {
    const MultiVectorSet documents = corpus();
    const Matrix queries = unit_rows(200, 1, 1);
    ProbeOptions options;
    options.tokens = 50;
    options.mapped = 20;
    options.sample = 100;
    const ProbeSet a = make_probes({queries, {}, {}}, documents, all_of(documents), options);
    const ProbeSet b = make_probes({queries, {}, {}}, documents, all_of(documents), options);
    EXPECT_EQ(a.tokens.rows(), 70U);
    EXPECT_TRUE(std::equal(a.tokens.flat().begin(), a.tokens.flat().end(), b.tokens.flat().begin()));
    options.seed = 43;
    const ProbeSet c = make_probes({queries, {}, {}}, documents, all_of(documents), options);
    EXPECT_FALSE(std::equal(a.tokens.flat().begin(), a.tokens.flat().end(), c.tokens.flat().begin()));
    const ProbeSet none = make_probes({}, documents, all_of(documents), options);
    EXPECT_EQ(none.tokens.rows(), 70U);
    EXPECT_LT(mean_of_first(none), -0.5);
}

}  // namespace
}  // namespace marginmerge
