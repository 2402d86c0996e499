#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "index/synthetic.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "marginmerge/core/error.h"
#include "marginmerge/index/index.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

// The definition, in double precision.
std::vector<double> reference_scores(const MultiVectorSet& pages, VectorsView query) {
    const Matrix q = to_float(query);
    std::vector<double> scores;
    for (std::size_t p = 0; p < pages.size(); ++p) {
        const Matrix v = to_float(pages.vectors(p));
        double sum = 0;
        for (std::size_t i = 0; i < q.rows(); ++i) {
            double best = -INFINITY;
            for (std::size_t j = 0; j < v.rows(); ++j) {
                double s = 0;
                for (std::size_t t = 0; t < q.cols(); ++t)
                    s += static_cast<double>(q(i, t)) * static_cast<double>(v(j, t));
                best = std::max(best, s);
            }
            sum += best;
        }
        scores.push_back(sum);
    }
    return scores;
}

// Hits are the reference ranking: equal page by page except where the reference itself differs by
// less than single precision can tell, and exact ties by position.
void expect_exact(const std::vector<Hit>& hits, const std::vector<double>& reference, std::size_t k) {
    std::vector<std::size_t> order(reference.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return reference[a] > reference[b]; });
    ASSERT_EQ(hits.size(), std::min(k, reference.size()));
    for (std::size_t i = 0; i < hits.size(); ++i) {
        EXPECT_NEAR(hits[i].score, reference[hits[i].position], 2e-5);
        EXPECT_NEAR(reference[hits[i].position], reference[order[i]], 2e-5) << "rank " << i;
        if (i > 0 && reference[hits[i - 1].position] == reference[hits[i].position]) {
            EXPECT_LT(hits[i - 1].position, hits[i].position);
        }
    }
}

TEST(Search, EqualsTheDefinition) {
    for (const std::size_t dim : {16U, 33U, 128U}) {
        const MultiVectorSet pages = test::random_pages(301, 40, dim, dim);
        const MultiVectorSet queries = test::random_pages(5, 30, dim, 99 + dim);
        const auto index = Index::wrap(pages);
        for (std::size_t q = 0; q < queries.size(); ++q) {
            const auto reference = reference_scores(pages, queries.vectors(q));
            for (const std::size_t k : {1U, 10U, 301U, 1000U})
                expect_exact(index->search(queries.vectors(q), {.k = k}), reference, k);
        }
    }
}

TEST(Search, ExactTiesComeInOrderOfPosition) {
    // Twelve copies of one page at odd places among random ones, so that they fall into different
    // blocks and lanes of the kernel.
    MultiVectorBuilder builder(64);
    const Matrix copy = test::random_vectors(13, 64, 5);
    for (std::size_t i = 0; i < 400; ++i) {
        if (i % 37 == 3)
            builder.add("", copy);
        else
            builder.add("", test::random_vectors(1 + i % 23, 64, 1000 + i));
    }
    const MultiVectorSet pages = builder.finish();
    const auto index = Index::wrap(pages);
    const auto hits = index->search(VectorsView(copy.view()), {.k = 11});
    ASSERT_EQ(hits.size(), 11U);
    for (std::size_t i = 0; i < hits.size(); ++i) {
        EXPECT_EQ(hits[i].position, 3 + 37 * i);
        EXPECT_EQ(hits[i].score, hits[0].score);
    }
}

TEST(Search, ThreadsAndBatchesGiveTheSameBits) {
    const MultiVectorSet pages = test::random_pages(500, 60, 128, 1);
    const MultiVectorSet queries = test::random_pages(70, 20, 128, 2);
    const auto index = Index::wrap(pages);
    const auto one = index->search_batch(queries, {.k = 20, .threads = 1});
    const auto many = index->search_batch(queries, {.k = 20, .threads = 4});
    ASSERT_EQ(one.size(), 70U);
    for (std::size_t q = 0; q < one.size(); ++q) {
        const auto single = index->search(queries.vectors(q), {.k = 20, .threads = 3});
        const auto all = index->score_all(queries.vectors(q), 2);
        for (std::size_t i = 0; i < 20; ++i) {
            EXPECT_EQ(one[q][i].position, many[q][i].position);
            EXPECT_EQ(one[q][i].score, many[q][i].score);
            EXPECT_EQ(one[q][i].position, single[i].position);
            EXPECT_EQ(one[q][i].score, single[i].score);
            EXPECT_EQ(one[q][i].score, all[one[q][i].position]);
        }
    }
}

TEST(Search, OddInputs) {
    const auto empty = Index::wrap(MultiVectorSet());
    const Matrix q = test::random_vectors(3, 16, 1);
    EXPECT_TRUE(empty->search(q.view()).empty());
    MultiVectorBuilder builder(16);
    builder.add("none", Matrix(0, 16));
    builder.add("some", q);
    const auto index = Index::wrap(builder.finish());
    const auto hits = index->search(q.view(), {.k = 5});
    ASSERT_EQ(hits.size(), 2U);
    EXPECT_EQ(hits[0].id, "some");
    EXPECT_EQ(hits[1].score, -INFINITY);
    EXPECT_TRUE(index->search(q.view(), {.k = 0}).empty());
    EXPECT_THROW(index->search(test::random_vectors(3, 17, 1).view()), Error);
    EXPECT_THROW(index->search(q.view(), {.keep = 0}), Error);
    EXPECT_THROW(index->search(q.view(), {.rerank = 5}), Error);
    EXPECT_THROW(index->search(q.view(), {.check = [] { throw Error(ErrorCode::io, "late"); }}), Error);
}

TEST(Search, FirstPassesWithEnoughCandidatesAreExact) {
    const MultiVectorSet pages = test::random_pages(300, 60, 128, 8);
    const auto index = Index::wrap(pages);
    const Matrix q = test::random_vectors(12, 128, 77);
    const auto exact = index->search(q.view());
    for (const FirstPass pass : {FirstPass::prefix, FirstPass::bits}) {
        const auto all = index->search(q.view(), {.first_pass = pass, .candidates = 300});
        for (std::size_t i = 0; i < 10; ++i) {
            EXPECT_EQ(all[i].position, exact[i].position);
            EXPECT_EQ(all[i].score, exact[i].score);
        }
    }
}

TEST(Search, KeepLooksAtThePrefixOnly) {
    const MultiVectorSet pages = test::random_pages(50, 40, 32, 3);
    MultiVectorBuilder builder(32);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        const Matrix v = to_float(pages.vectors(i));
        const auto k =
            std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(0.25 * static_cast<double>(v.rows()))));
        builder.add(pages.id(i), v.view().middle_rows(0, k));
    }
    const auto small = Index::wrap(builder.finish());
    const auto whole = Index::wrap(pages);
    const Matrix q = test::random_vectors(9, 32, 4);
    const auto a = small->search(q.view());
    const auto b = whole->search(q.view(), {.keep = 0.25});
    for (std::size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(a[i].position, b[i].position);
        EXPECT_EQ(a[i].score, b[i].score);
    }
}

TEST(Search, ExplanationAddsUp) {
    const MultiVectorSet pages = test::random_pages(20, 30, 48, 6);
    const auto index = Index::wrap(pages);
    const Matrix q = test::random_vectors(7, 48, 9);
    const auto hit = index->search(q.view(), {.k = 1}).front();
    const Explanation e = index->explain(q.view(), hit.position);
    ASSERT_EQ(e.tokens.size(), 7U);
    float sum = 0;
    for (const auto& t : e.tokens) {
        sum += t.score;
        ASSERT_GE(t.representative, 0);
        EXPECT_EQ(t.patches, std::vector<std::int32_t>{t.representative});
    }
    EXPECT_NEAR(sum, hit.score, 1e-4);
    EXPECT_THROW(index->explain(q.view(), 20), Error);
}

TEST(Search, RealDataEqualsTheDefinition) {
    const std::filesystem::path data = std::string(MARGINMERGE_SHARED_DATA) + "/data/cranfield";
    if (!std::filesystem::exists(data / "docs.safetensors")) return;  // an extra where the corpus is at hand
    const MultiVectorSet docs = read_multi_vectors(data / "docs.safetensors");
    const MultiVectorSet queries = read_multi_vectors(data / "test_queries.safetensors");
    const auto index = Index::open(data / "docs.safetensors");
    for (std::size_t q = 0; q < 3; ++q)
        expect_exact(index->search(queries.vectors(q), {.k = docs.size()}), reference_scores(docs, queries.vectors(q)),
                     docs.size());
}

}  // namespace
}  // namespace marginmerge
