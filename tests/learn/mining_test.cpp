#include "learn/mining.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/random.h"
#include "kernels/convert.h"
#include "learn/train_oracle.h"
#include "support/npy.h"
#include "support/thread_cluster.h"

namespace marginmerge {
namespace {

std::vector<const PreparedQuery*> pointers(const std::vector<PreparedQuery>& queries) {
    std::vector<const PreparedQuery*> out;
    for (const auto& q : queries) out.push_back(&q);
    return out;
}

struct Corpus {
    MultiVectorSet documents;
    std::vector<PreparedQuery> queries;
    std::vector<std::vector<std::size_t>> positives;
    std::vector<std::size_t> positions;
};

Corpus random_corpus(std::size_t documents, std::size_t queries) {
    Random random(3);
    const auto draw = [&](std::size_t rows) {
        Matrix m(rows, 24);
        for (float& x : m.flat()) x = static_cast<float>(random.normal());
        return m;
    };
    MultiVectorBuilder builder(24);
    Corpus corpus;
    for (std::size_t i = 0; i < documents; ++i) {
        builder.add(std::to_string(i), draw(1 + random.below(9)));
        corpus.positions.push_back(i);
    }
    corpus.documents = builder.finish();
    for (std::size_t q = 0; q < queries; ++q) {
        const Matrix tokens = draw(1 + random.below(5));
        corpus.queries.emplace_back(ConstMatrix(tokens));
        corpus.positives.push_back({random.below(documents)});
    }
    corpus.positives[0].push_back((corpus.positives[0][0] + 1) % documents);
    return corpus;
}

TEST(Mining, HardNegativesOfTheReference) {
    const test::TrainOracle data;
    MultiVectorBuilder builder(data.vectors[0].cols());
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < data.vectors.size(); ++i) {
        builder.add("", data.vectors[i]);
        positions.push_back(i);
    }
    const MultiVectorSet documents = builder.finish();
    std::vector<std::vector<std::size_t>> positives;
    for (const auto g : data.gold) positives.push_back({static_cast<std::size_t>(g)});
    const auto mined = mine_hard_negatives(documents, positions, pointers(data.queries), positives, {});
    for (std::size_t q = 0; q < mined.size(); ++q) {
        ASSERT_EQ(mined[q].top.size(), 8U);
        for (std::size_t j = 0; j < 8; ++j) {
            EXPECT_EQ(mined[q].top[j].document, static_cast<std::size_t>(data.negatives[q * 8 + j])) << q << " " << j;
            EXPECT_NEAR(mined[q].top[j].score, data.full_scores(q, mined[q].top[j].document), 1e-4);
        }
        EXPECT_NEAR(mined[q].positive_scores[0], data.full_scores(q, positives[q][0]), 1e-4);
    }
}

bool same(const std::vector<MinedQuery>& a, const std::vector<MinedQuery>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const MinedQuery& x, const MinedQuery& y) {
        return x.positive_scores == y.positive_scores &&
               std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(),
                          [](const auto& s, const auto& t) { return s.document == t.document && s.score == t.score; });
    });
}

TEST(Mining, ChunksThreadsAndResumingChangeNothing) {
    const Corpus c = random_corpus(83, 7);
    const auto whole = mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, {});
    for (const auto& mined : whole) EXPECT_EQ(mined.top.size(), 8U);
    for (const auto p : c.positives[0]) {
        for (const auto& s : whole[0].top) EXPECT_NE(s.document, p);
    }
    MiningOptions options;
    options.chunk = 10;
    options.threads = 2;
    std::vector<MiningState> saved;
    options.save = [&](const MiningState& state) { saved.push_back(state); };
    EXPECT_TRUE(same(whole, mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, options)));
    ASSERT_EQ(saved.size(), 8U);
    options.save = nullptr;
    std::size_t first_scanned = 0;
    options.progress = [&](const ProgressUpdate& u) { first_scanned = first_scanned == 0 ? u.done : first_scanned; };
    EXPECT_TRUE(same(
        whole, mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, options, saved[4])));
    EXPECT_EQ(first_scanned, 60U);
}

// Bounds decide what is scored at all; the result must be that of scoring everything, ties included.
TEST(Mining, EqualsScoringEverything) {
    Corpus c = random_corpus(400, 9);
    MultiVectorBuilder builder(24);
    Matrix broken(2, 24);
    for (std::size_t j = 0; j < 24; ++j) broken(0, j) = 1e20f, broken(1, j) = 0.1f;
    for (std::size_t i = 0; i < 400; ++i) {
        // Every page three times, far apart and side by side, and one whose scores have no bound.
        const std::size_t from = i < 200 ? i / 2 : i - 200;
        builder.add(std::to_string(i), i == 77 ? broken : to_float(c.documents.vectors(from)));
    }
    c.documents = builder.finish();
    for (const std::size_t chunk : {1U, 50U, 512U}) {
        MiningOptions options;
        options.chunk = chunk;
        const auto mined = mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, options);
        const Matrix scores = score_documents(c.documents, c.positions, pointers(c.queries), 1);
        for (std::size_t q = 0; q < mined.size(); ++q) {
            std::vector<ScoredDocument> all;
            for (const auto i : c.positions) {
                const auto& p = c.positives[q];
                const auto found = std::find(p.begin(), p.end(), i);
                if (found == p.end())
                    all.push_back({i, scores(q, i)});
                else
                    EXPECT_EQ(mined[q].positive_scores[static_cast<std::size_t>(found - p.begin())], scores(q, i));
            }
            std::sort(all.begin(), all.end());
            ASSERT_EQ(mined[q].top.size(), 8U);
            for (std::size_t j = 0; j < 8; ++j) {
                EXPECT_EQ(mined[q].top[j].document, all[j].document) << chunk << " " << q << " " << j;
                EXPECT_EQ(mined[q].top[j].score, all[j].score);
            }
        }
    }
}

TEST(Mining, SameForAnyNumberOfProcesses) {
    const Corpus c = random_corpus(83, 7);
    const auto whole = mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, {});
    for (const std::size_t size : {2u, 3u, 90u}) {
        const auto all = test::on_cluster(size, [&](Cluster* cluster) {
            MiningOptions options;
            options.threads = 1;
            options.chunk = 9;
            options.cluster = cluster;
            return mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, options);
        });
        for (const auto& mined : all) EXPECT_TRUE(same(whole, mined)) << size;
    }
}

TEST(Mining, FewerDocumentsThanNegatives) {
    const Corpus c = random_corpus(4, 3);
    const auto mined = mine_hard_negatives(c.documents, c.positions, pointers(c.queries), c.positives, {});
    EXPECT_EQ(mined[0].top.size(), 2U);
    EXPECT_EQ(mined[1].top.size(), 3U);
}

}  // namespace
}  // namespace marginmerge
