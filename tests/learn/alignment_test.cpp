#include "learn/alignment.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"

namespace marginmerge {
namespace {

constexpr std::size_t width = 16;
constexpr std::size_t tokens = 3;
constexpr std::size_t contested = 12;
constexpr std::size_t pages = 40;

// Queries whose pages are relevant, with grade 1 or 2, where `wanted` of a page's answers and length is largest.
template <class Wanted>
std::vector<JudgedQuery> make_queries(std::size_t count, std::uint64_t seed, const Wanted& wanted) {
    Random random(seed);
    std::vector<JudgedQuery> queries(count);
    for (JudgedQuery& q : queries) {
        q.tokens = Matrix(tokens, width);
        for (float& x : q.tokens.flat()) x = static_cast<float>(random.normal());
        normalise_rows(q.tokens);
        std::vector<double> worth;
        for (std::size_t p = 0; p < pages; ++p) {
            Matrix answers(tokens, width);
            for (float& x : answers.flat()) x = static_cast<float>(random.normal());
            for (std::size_t t = 0; t < tokens; ++t) add_scaled(2, q.tokens.row(t), answers.row(t), width);
            normalise_rows(answers);
            float score = 0;
            for (std::size_t t = 0; t < tokens; ++t) score += dot(q.tokens.row(t), answers.row(t), width);
            q.scores.push_back(score);
            q.lengths.push_back(static_cast<float>(random.normal()));
            const std::size_t at = q.answers.size();
            q.answers.resize(at + answers.size());
            from_float(answers.flat(), ScalarType::f16, q.answers.data() + at);
            worth.push_back(wanted(q.tokens, answers, q.lengths.back()));
        }
        q.contested = contested;
        q.grades.assign(pages, 0);
        const auto best = std::max_element(worth.begin(), worth.begin() + contested) - worth.begin();
        q.grades[static_cast<std::size_t>(best)] = 2;
        q.grades[(static_cast<std::size_t>(best) + 1) % contested] = 1;
    }
    return queries;
}

// Only the first five dimensions count.
std::vector<JudgedQuery> by_few_dimensions(std::size_t count, std::uint64_t seed) {
    return make_queries(count, seed, [](const Matrix& asked, const Matrix& answers, float) {
        double sum = 0;
        for (std::size_t t = 0; t < tokens; ++t) sum += dot(asked.row(t), answers.row(t), 5);
        return sum;
    });
}

std::vector<const JudgedQuery*> pointers(const std::vector<JudgedQuery>& queries) {
    std::vector<const JudgedQuery*> out;
    for (const auto& q : queries) out.push_back(&q);
    return out;
}

RankingEffect mean_effect(std::span<const JudgedQuery* const> queries, const Alignment& alignment, double share,
                          double temperature) {
    RankingEffect sum;
    for (const auto& of_query : judge_alignment(queries, alignment, {&share, 1}, temperature, 1)) {
        const RankingEffect& e = of_query.front();
        sum.loss += e.loss / static_cast<double>(queries.size());
        sum.ndcg += e.ndcg / static_cast<double>(queries.size());
        sum.flips += e.flips;
        sum.pairs += e.pairs;
    }
    return sum;
}

TEST(Alignment, LowersTheLossOfQueriesItHasNotSeen) {
    const auto seen = by_few_dimensions(80, 1), unseen = by_few_dimensions(40, 2);
    const auto from = pointers(seen), judged = pointers(unseen);
    AlignmentSettings settings;
    settings.hold = 0.1;
    settings.steps = 60;
    const Alignment alignment = learn_alignment(from, settings);
    const double temperature = settings.temperature * score_spread(from);
    const RankingEffect before = mean_effect(judged, alignment, 0, temperature);
    const RankingEffect after = mean_effect(judged, alignment, 1, temperature);
    EXPECT_EQ(before.flips, 0U);
    EXPECT_EQ(before.pairs, 40 * 2 * (pages - contested));
    EXPECT_GT(after.flips, 0U);
    EXPECT_LT(after.loss, before.loss - 0.05);
    EXPECT_GT(after.ndcg, before.ndcg + 0.02);
}

TEST(Alignment, StopsWhereTheGradientIsZero) {
    auto made = by_few_dimensions(12, 3);
    for (auto& q : made) std::fill(q.lengths.begin(), q.lengths.end(), 0.0f);
    const auto queries = pointers(made);
    AlignmentSettings settings;
    settings.hold = 0;
    settings.ridge = 0.3;
    settings.steps = 400;
    const Alignment best = learn_alignment(queries, settings);
    EXPECT_EQ(best.length_power, 0);
    const double temperature = settings.temperature * score_spread(queries);
    const auto objective = [&](const Alignment& a) {
        double square = 0;
        for (const float x : a.change.flat()) square += static_cast<double>(x) * x;
        return mean_effect(queries, a, 1, temperature).loss + 0.5 * settings.ridge * square;
    };
    const auto slope = [&](const Alignment& at, std::size_t i) {
        constexpr float h = 1e-2f;
        Alignment up = at, down = at;
        up.change.data()[i] += h;
        down.change.data()[i] -= h;
        return (objective(up) - objective(down)) / (2 * h);
    };
    Alignment none = best;
    std::fill(none.change.flat().begin(), none.change.flat().end(), 0.0f);
    double there = 0, start = 0;
    for (const std::size_t i : {0, 1, 17, 34, 200, 255}) {
        there = std::max(there, std::abs(slope(best, i)));
        start = std::max(start, std::abs(slope(none, i)));
    }
    EXPECT_LT(there, 2e-3);
    EXPECT_GT(start, 20 * there);
}

TEST(Alignment, LearnsThatLongPagesAreWanted) {
    const auto made = make_queries(60, 4, [](const Matrix&, const Matrix&, float length) { return length; });
    const auto queries = pointers(made);
    AlignmentSettings settings;
    settings.change = false;
    const Alignment alignment = learn_alignment(queries, settings);
    EXPECT_TRUE(alignment.change.empty());
    EXPECT_GT(alignment.length_power, 0.002f);
    const double temperature = settings.temperature * score_spread(queries);
    EXPECT_LT(mean_effect(queries, alignment, 1, temperature).loss,
              mean_effect(queries, alignment, 0, temperature).loss);
}

TEST(Alignment, HoldingMovesFewerPairs) {
    const auto made = by_few_dimensions(60, 5);
    const auto queries = pointers(made);
    AlignmentSettings settings;
    const double temperature = settings.temperature * score_spread(queries);
    settings.hold = 0;
    const auto free = mean_effect(queries, learn_alignment(queries, settings), 1, temperature);
    settings.hold = 30;
    const auto held = mean_effect(queries, learn_alignment(queries, settings), 1, temperature);
    EXPECT_LT(held.flips, free.flips);
}

TEST(Alignment, IsTheSameForAnyNumberOfThreads) {
    const auto made = by_few_dimensions(30, 6);
    const auto queries = pointers(made);
    AlignmentSettings settings;
    settings.threads = 1;
    const Alignment one = learn_alignment(queries, settings);
    settings.threads = 3;
    const Alignment three = learn_alignment(queries, settings);
    EXPECT_TRUE(std::ranges::equal(one.change.flat(), three.change.flat()));
    EXPECT_EQ(one.length_power, three.length_power);
}

TEST(Alignment, HugeGradesStayNumbers) {
    auto made = by_few_dimensions(20, 7);
    made[0].grades[0] = 2000;
    const auto queries = pointers(made);
    const Alignment alignment = learn_alignment(queries, {});
    for (const float x : alignment.change.flat()) ASSERT_TRUE(std::isfinite(x));
    EXPECT_TRUE(std::isfinite(alignment.length_power));
}

TEST(Alignment, AShareOfItIsThatShare) {
    Alignment whole;
    whole.change = Matrix(2, 2);
    whole.change(0, 1) = 4;
    whole.length_power = -0.5f;
    whole.usual_length = 100;
    const Alignment half = share_of(whole, 0.5);
    EXPECT_EQ(half.change(0, 1), 2);
    EXPECT_EQ(half.length_power, -0.25f);
    EXPECT_EQ(half.usual_length, 100);
}

}  // namespace
}  // namespace marginmerge
