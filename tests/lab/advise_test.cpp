#include "lab/advise.h"

#include <gtest/gtest.h>

#include <map>

namespace marginmerge::lab {
namespace {

// Forty queries with one relevant page each; an index that keeps a share s answers the first s-dependent part of them.
AdviceInputs inputs(const std::map<double, std::size_t>& right) {
    constexpr std::size_t queries = 40, pages = 20;
    AdviceInputs in;
    in.full = Matrix(queries, pages);
    for (std::size_t q = 0; q < queries; ++q) {
        in.full(q, q % pages) = 1;
        in.relevance.push_back({{q % pages}, {1}, {1}});
        in.tokens.push_back(4);
    }
    for (const auto& [keep, unused] : right) in.keeps.push_back(keep);
    in.codes = {VectorCode::f16, VectorCode::int8};
    in.pages = pages;
    in.dim = 16;
    in.mean_vectors = 100;
    in.scores = [right](double keep) {
        std::vector<TrialScores> out;
        for (const std::size_t bytes : {2u, 1u}) {
            TrialScores t;
            t.scores = Matrix(queries, pages);
            for (std::size_t q = 0; q < queries; ++q) {
                // A wrong query ranks its page behind everything else.
                for (std::size_t p = 0; p < pages; ++p) t.scores(q, p) = 0.5f;
                t.scores(q, q % pages) = q < right.at(keep) ? 1.0f : 0.0f;
            }
            t.vectors = static_cast<std::uint64_t>(keep * 100 * pages);
            t.bytes = t.vectors * 16 * bytes;
            out.push_back(std::move(t));
        }
        return out;
    };
    return in;
}

TEST(Advise, TheSmallestThatKeepsTheTargetWithConfidence) {
    AdviceInputs in = inputs({{1, 40}, {0.5, 40}, {0.2, 40}, {0.1, 30}});
    in.target = 0.98;
    const Advice advice = find_smallest(in);
    ASSERT_TRUE(advice.best);
    EXPECT_EQ(advice.points[*advice.best].keep, 0.2);
    EXPECT_EQ(advice.points[*advice.best].code, VectorCode::int8);
    EXPECT_DOUBLE_EQ(advice.full_ndcg, 1);
    EXPECT_DOUBLE_EQ(advice.full_bytes, 3200);
}

TEST(Advise, AGoodMeanWithoutConfidenceIsNotEnough) {
    // 39 of 40 right: 97.5% on average, but resampled queries often give less than 95%.
    AdviceInputs in = inputs({{1, 40}, {0.2, 39}});
    in.target = 0.95;
    const Advice advice = find_smallest(in);
    ASSERT_TRUE(advice.best);
    EXPECT_EQ(advice.points[*advice.best].keep, 1);
    EXPECT_FALSE(advice.notes.empty());
}

TEST(Advise, NothingBelowAFailureIsRecommended) {
    // 0.1 looks perfect, but 0.5 failed before it: luck among many candidates must not decide.
    const Advice advice = find_smallest(inputs({{1, 40}, {0.5, 30}, {0.1, 40}}));
    ASSERT_TRUE(advice.best);
    EXPECT_EQ(advice.points[*advice.best].keep, 1);
    for (const auto& p : advice.points) EXPECT_EQ(p.tested, p.keep >= 0.5) << p.keep;
}

}  // namespace
}  // namespace marginmerge::lab
