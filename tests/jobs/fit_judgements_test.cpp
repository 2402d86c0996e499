#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "jobs/page_memory.h"
#include "jobs/trial.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "marginmerge/jobs/compress.h"
#include "marginmerge/jobs/explain.h"
#include "marginmerge/jobs/model_file.h"
#include "support/compress_case.h"
#include "support/fit_corpus.h"

namespace marginmerge {
namespace {

using JudgedCorpus = test::FitCorpusFiles;

// Judgements that always prefer the long pages among those that fit a query.
void prefer_long_pages(const JudgedCorpus& corpus) {
    const MultiVectorSet docs = read_multi_vectors(corpus.folder / "docs.safetensors");
    const MultiVectorSet asks = read_multi_vectors(corpus.folder / "train_queries.safetensors");
    std::string qrels = "query-id\tcorpus-id\tscore\n";
    for (std::size_t q = 0; q < asks.size(); ++q) {
        const PreparedQuery query(asks.vectors(q));
        std::vector<std::pair<float, std::size_t>> order;
        for (std::size_t i = 0; i < docs.size(); ++i) order.emplace_back(-maxsim(query, docs.vectors(i)), i);
        std::sort(order.begin(), order.end());
        std::size_t longest = order[0].second;
        for (std::size_t i = 1; i < 8; ++i)
            if (docs.vectors_of(order[i].second) > docs.vectors_of(longest)) longest = order[i].second;
        qrels += asks.id(q) + "\t" + docs.id(longest) + "\t1\n";
    }
    write_text_file(corpus.folder / "train_qrels.tsv", qrels);
}

TEST(FitJudgements, JudgementsAlignAllPagesWhereThatHelps) {
    JudgedCorpus corpus(120, 90, 1, 300);
    prefer_long_pages(corpus);
    corpus.options.preset = "fixed";
    EXPECT_EQ(fit(corpus.options).alignment.queries, 0U);
    corpus.options.align = 0.2;
    const FitReport report = fit(corpus.options);
    EXPECT_EQ(report.alignment.queries, 90U);
    ASSERT_TRUE(report.alignment.kept);
    EXPECT_GT(report.alignment.ndcg, report.alignment.full_ndcg + report.alignment.error);
    EXPECT_GT(report.alignment.length_power, 0);
    EXPECT_LE(report.alignment.flips, 0.2);
    const Model model = load_model(corpus.options.output);
    EXPECT_TRUE(model.recipe.align);
    EXPECT_FALSE(model.alignment.empty());
    EXPECT_EQ(nlohmann::json::parse(model.provenance).at("alignment").at("kept"), true);

    corpus.options.align = 0.01;
    EXPECT_LE(fit(corpus.options).alignment.flips, 0.01);
    corpus.options.align = 0;
    EXPECT_EQ(fit(corpus.options).alignment.queries, 0U);
    EXPECT_TRUE(load_model(corpus.options.output).alignment.empty());
    corpus.options.align = 0.2;
    corpus.options.no_labels = true;
    EXPECT_EQ(fit(corpus.options).alignment.queries, 0U);
    corpus.options.align = -0.1;
    EXPECT_THAT(test::fit_failure(corpus.options), ::testing::HasSubstr("--align"));
}

// Sixty topics, three pages with each; of these the one that answers it worst is relevant to the three queries about
// it.
void ask_topics_again_and_again(const JudgedCorpus& corpus) {
    constexpr std::size_t topic_count = 60, queries_a_topic = 3;
    Random random(5);
    Matrix topics(topic_count, test::fit_dimensions);
    for (float& x : topics.flat()) x = static_cast<float>(random.normal());
    normalise_rows(topics);
    const auto near = [&](std::size_t topic, double spread, float* out) {
        for (std::size_t j = 0; j < test::fit_dimensions; ++j)
            out[j] = topics(topic, j) + static_cast<float>(spread * random.normal() /
                                                           std::sqrt(static_cast<double>(test::fit_dimensions)));
    };
    MultiVectorBuilder docs(test::fit_dimensions), asks(test::fit_dimensions);
    std::vector<Matrix> pages;
    for (std::size_t i = 0; i < topic_count; ++i) {
        Matrix& page = pages.emplace_back(60, test::fit_dimensions);
        for (std::size_t r = 0; r < page.rows(); ++r) near((i + r % 3) % topic_count, 1, page.row(r));
        normalise_rows(page);
        docs.add("doc" + std::to_string(i), page);
    }
    std::string qrels = "query-id\tcorpus-id\tscore\n";
    for (std::size_t topic = 0; topic < topic_count; ++topic) {
        std::size_t worst = topic;
        float least = 2;
        for (std::size_t back = 0; back < 3; ++back) {
            const std::size_t page = (topic + topic_count - back) % topic_count;
            std::vector<std::int32_t> winner(1);
            std::vector<float> best(1);
            nearest(topics.view().middle_rows(topic, 1), pages[page], winner, best);
            if (best[0] < least) worst = page;
            least = std::min(least, best[0]);
        }
        for (std::size_t q = 0; q < queries_a_topic; ++q) {
            const std::string id = "q" + std::to_string(topic) + "-" + std::to_string(q);
            Matrix v(2, test::fit_dimensions);
            for (std::size_t r = 0; r < 2; ++r) near(topic, 0.1, v.row(r));
            normalise_rows(v);
            asks.add(id, v);
            qrels += id + "\tdoc" + std::to_string(worst) + "\t1\n";
        }
    }
    write_multi_vectors(corpus.folder / "docs.safetensors", docs.finish(), ScalarType::f16);
    write_multi_vectors(corpus.folder / "train_queries.safetensors", asks.finish(), ScalarType::f16);
    write_text_file(corpus.folder / "train_qrels.tsv", qrels);
}

TEST(FitJudgements, PagesRememberWhatJudgedQueriesAskedWhereThatHelps) {
    JudgedCorpus corpus;
    ask_topics_again_and_again(corpus);
    corpus.options.compare = false;
    corpus.options.align = 0.5;
    corpus.options.threads = 1;
    const FitReport report = fit(corpus.options);
    const std::string bytes = corpus.bytes();
    EXPECT_EQ(report.memory.queries, 180U);
    ASSERT_TRUE(report.memory.kept);
    EXPECT_GT(report.memory.ndcg, report.memory.full_ndcg + report.memory.error);
    const Model model = load_model(corpus.options.output);
    EXPECT_TRUE(model.recipe.align);
    EXPECT_EQ(model.memory.pages.size(), report.memory.pages);
    EXPECT_GT(report.memory.pages, 20U);
    EXPECT_EQ(nlohmann::json::parse(model.provenance).at("memory").at("pages"), report.memory.pages);
    corpus.options.threads = 2;
    fit(corpus.options);
    EXPECT_TRUE(corpus.bytes() == bytes);

    // The pages' vectors answer like what they remember, unless that is left out; a page is known by its contents also
    // where it is stored at full precision.
    const MultiVectorSet docs = read_multi_vectors(corpus.folder / "docs.safetensors");
    write_multi_vectors(corpus.folder / "full.safetensors", docs, ScalarType::f32);
    const auto compressed = [&](const char* source, bool align) {
        CompressOptions options;
        options.documents = corpus.folder / source;
        options.output = corpus.folder / "index.safetensors";
        options.model = corpus.options.output;
        options.recipe.align = align;
        std::filesystem::remove(options.output);
        compress(options);
        return read_multi_vectors(options.output);
    };
    const MultiVectorSet with = compressed("docs.safetensors", true), without = compressed("docs.safetensors", false),
                         full = compressed("full.safetensors", true);
    double known = 0, plain = 0, precise = 0;
    for (std::size_t i = 0; i < model.memory.pages.size(); ++i) {
        for (std::size_t p = 0; p < docs.size(); ++p) {
            std::vector<std::uint16_t> space;
            Sha256 sha;
            sha.update(page_contents(docs.vectors(p), space));
            if (page_key(sha.finish()) != model.memory.pages[i]) continue;
            const Matrix tokens = model.memory.of(model.memory.pages[i]);
            const PreparedQuery asked(tokens.view());
            known += maxsim(asked, with.vectors(p));
            plain += maxsim(asked, without.vectors(p));
            precise += maxsim(asked, full.vectors(p));
        }
    }
    EXPECT_GT(known, plain * 1.05);
    // Explanations count what a page remembers.
    std::size_t remembered = 0;
    for (std::size_t p = 0; p < docs.size(); ++p) {
        ExplainOptions options;
        options.documents = corpus.folder / "docs.safetensors";
        options.document = docs.id(p);
        options.model = corpus.options.output;
        remembered += explain(options).remembered;
    }
    EXPECT_EQ(remembered, model.memory.entries.size());
    // Trials see the pages that compress writes.
    const MakePage make = recipe_pages(docs, model, model.recipe, 1);
    for (std::size_t p = 0; p < docs.size(); ++p) {
        Matrix page;
        make(p, 0, page);
        EXPECT_LT(test::largest_gap(page, to_float(with.vectors(p))), 2e-3) << p;
    }
    EXPECT_NEAR(precise, known, 1e-3 * known);

    // Both share the pairs that may change.
    for (const double most : {0.01, 0.03, 0.1}) {
        corpus.options.align = most;
        const FitReport limited = fit(corpus.options);
        EXPECT_LE(
            (limited.memory.kept ? limited.memory.flips : 0) + (limited.alignment.kept ? limited.alignment.flips : 0),
            most);
    }
    corpus.options.remember = false;
    EXPECT_EQ(fit(corpus.options).memory.queries, 0U);
    EXPECT_TRUE(load_model(corpus.options.output).memory.empty());
    corpus.options.remember = true;
    corpus.options.no_labels = true;
    EXPECT_EQ(fit(corpus.options).memory.queries, 0U);
}

// Judgements at random teach nothing that holds for other queries.
TEST(FitJudgements, JudgementsThatTeachNothingAreLeftOut) {
    JudgedCorpus corpus(120, 60);
    Random random(9);
    std::string qrels = "query-id\tcorpus-id\tscore\n";
    for (std::size_t q = 0; q < 60; ++q)
        qrels += "q" + std::to_string(q) + "\tdoc" + std::to_string(random.below(120)) + "\t1\n";
    write_text_file(corpus.folder / "train_qrels.tsv", qrels);
    corpus.options.compare = false;
    const FitReport report = fit(corpus.options);
    EXPECT_EQ(report.alignment.queries, 60U);
    EXPECT_EQ(report.memory.queries, 60U);
    EXPECT_FALSE(report.alignment.kept);
    EXPECT_FALSE(report.memory.kept);
    EXPECT_FALSE(load_model(corpus.options.output).recipe.align);
}

}  // namespace
}  // namespace marginmerge
