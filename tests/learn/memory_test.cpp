#include "learn/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"

namespace marginmerge {
namespace {

constexpr std::size_t token_width = 16;
constexpr std::size_t page_count = 30;  // of a query, the first `contested_pages` of them relevant or ranked high
constexpr std::size_t contested_pages = 10;

Matrix random_units(std::size_t rows, Random& random) {
    Matrix m(rows, token_width);
    for (float& x : m.flat()) x = static_cast<float>(random.normal());
    normalise_rows(m);
    return m;
}

// Two tokens. Every page answers both with about .3 and the first page, relevant and known as `key`, the first token
// with `strong`.
JudgedQuery asked(std::int64_t key, const Matrix& tokens, float strong, std::uint64_t seed) {
    Random random(seed);
    JudgedQuery q;
    q.tokens = tokens;
    q.contested = contested_pages;
    q.grades.assign(page_count, 0);
    q.grades[0] = 1;
    q.lengths.assign(page_count, 0.0f);
    for (std::size_t p = 0; p < page_count; ++p) {
        q.keys.push_back(p == 0 ? key : 1000 + static_cast<std::int64_t>(p));
        Matrix answers(tokens.rows(), token_width);
        float score = 0;
        for (std::size_t t = 0; t < tokens.rows(); ++t) {
            const float wanted = p == 0 && t == 0 ? strong : 0.3f + 0.02f * static_cast<float>(random.normal());
            add_scaled(wanted, tokens.row(t), answers.row(t), token_width);
            score += wanted;
        }
        q.scores.push_back(score);
        const std::size_t at = q.answers.size();
        q.answers.resize(at + answers.size());
        from_float(answers.flat(), ScalarType::f16, q.answers.data() + at);
    }
    return q;
}

std::vector<const AskedQuery*> addresses_of(const std::vector<AskedQuery>& all) {
    std::vector<const AskedQuery*> out;
    for (const auto& a : all) out.push_back(&a);
    return out;
}

TEST(Memory, KeepsWhatARelevantPageAnswersUnusuallyWell) {
    Random random(1);
    const Matrix tokens = random_units(2, random);
    const AskedQuery a = asked_of_pages(asked(7, tokens, 0.6f, 2), {});
    ASSERT_EQ(a.asked.size(), 1U);
    EXPECT_EQ(a.asked[0].page, 7);
    EXPECT_EQ(a.asked[0].token, 0U);
    EXPECT_GT(a.asked[0].unusual, 5);
    EXPECT_TRUE(asked_of_pages(asked(7, tokens, 0.3f, 2), {}).asked.empty());
    // Without pages drawn at random nobody knows what is usual.
    JudgedQuery alone = asked(7, tokens, 0.6f, 2);
    alone.contested = alone.pages();
    EXPECT_TRUE(asked_of_pages(alone, {}).asked.empty());
}

TEST(Memory, KnowsPagesByTheirKeyAndTokensOnce) {
    Random random(3);
    const Matrix first = random_units(2, random), second = random_units(2, random);
    std::vector<AskedQuery> all;
    all.push_back(asked_of_pages(asked(90, first, 0.7f, 4), {}));
    all.push_back(asked_of_pages(asked(20, second, 0.6f, 5), {}));
    all.push_back(asked_of_pages(asked(90, second, 0.6f, 6), {}));
    all.push_back(asked_of_pages(asked(90, first, 0.6f, 7), {}));  // the same again
    Memory memory = learn_memory(addresses_of(all), {});
    EXPECT_EQ(memory.pages, (std::vector<std::int64_t>{20, 90}));
    EXPECT_EQ(memory.offsets, (std::vector<std::int64_t>{0, 1, 3}));
    EXPECT_EQ(memory.entries.size(), 3U);
    EXPECT_EQ(memory.strength, 1);
    memory.strength = 0.5;
    const Matrix known = memory.of(90);
    ASSERT_EQ(known.rows(), 2U);
    EXPECT_NEAR(dot(known.row(0), first.row(0), token_width), 0.5, 1e-5);  // the most unusual first
    EXPECT_NEAR(dot(known.row(1), second.row(0), token_width), 0.5, 1e-5);
    EXPECT_EQ(memory.of(21).rows(), 0U);
    EXPECT_EQ(Memory().of(90).rows(), 0U);
    EXPECT_TRUE(learn_memory({}, {}).empty());
}

TEST(Memory, IsBounded) {
    Random random(8);
    std::vector<AskedQuery> all;
    for (std::uint64_t q = 0; q < 6; ++q)
        all.push_back(asked_of_pages(asked(1, random_units(2, random), 0.5f + 0.05f * static_cast<float>(q), q), {}));
    MemorySettings settings;
    settings.most_of_page = 2;
    const Memory few = learn_memory(addresses_of(all), settings);
    EXPECT_EQ(few.entries.size(), 2U);
    EXPECT_EQ(few.tokens.rows(), 2U);  // what no page remembers is not stored
    settings.most_of_page = 64;
    settings.most_numbers = 3 * 2 * token_width;
    EXPECT_EQ(learn_memory(addresses_of(all), settings).entries.size(), 3U);  // the first three queries
}

TEST(Memory, OfNoStrengthChangesNothing) {
    Random random(12);
    const Matrix tokens = random_units(2, random);
    const std::vector<AskedQuery> before{asked_of_pages(asked(7, tokens, 0.6f, 13), {})};
    const Memory memory = learn_memory(addresses_of(before), {});
    JudgedQuery again = asked(7, tokens, -0.6f, 14);  // now the page would rather not answer
    again.scores[0] = again.scores[1] - 0.05f;        // and is just behind another
    const JudgedQuery* queries[] = {&again};
    const double strengths[] = {0, 0.1};
    const auto effects = judge_memory(queries, memory, strengths, 0.1, 1);
    const auto as_it_is = ranking_effect(again, std::vector<double>(again.scores.begin(), again.scores.end()), 0.1);
    EXPECT_EQ(effects[0][0].loss, as_it_is.loss);
    EXPECT_LT(effects[0][1].loss, as_it_is.loss);
}

TEST(Memory, RaisesTheScoreOfAPageThatIsAskedTheSameAgain) {
    Random random(9);
    const Matrix tokens = random_units(2, random);
    const std::vector<AskedQuery> before{asked_of_pages(asked(7, tokens, 0.6f, 10), {})};
    const Memory memory = learn_memory(addresses_of(before), {});
    // Asked again, the page is known; its score rises by what the memory answers more strongly.
    JudgedQuery again = asked(7, tokens, 0.6f, 11);
    for (float& s : again.scores) s = std::min(s, 0.9f);
    again.scores[0] = 0.5f;  // and ranks last on the full index
    const JudgedQuery* queries[] = {&again};
    const double strengths[] = {0, 0.5, 0.9};
    const auto effects = judge_memory(queries, memory, strengths, 0.1, 1);
    ASSERT_EQ(effects[0].size(), 3U);
    EXPECT_EQ(effects[0][0].flips, 0U);
    EXPECT_EQ(effects[0][1].loss, effects[0][0].loss);  // .5 is weaker than the page's own answer
    EXPECT_LT(effects[0][2].loss, effects[0][0].loss);
    EXPECT_GT(effects[0][2].ndcg, effects[0][0].ndcg);
    EXPECT_EQ(effects[0][0].pairs, page_count - contested_pages);
}

}  // namespace
}  // namespace marginmerge
