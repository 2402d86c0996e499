#include "marginmerge/jobs/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "io/atomic_file.h"
#include "io/multi_vector_file.h"
#include "jobs/page_memory.h"
#include "jobs/trial.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "kernels/products.h"
#include "marginmerge/core/error.h"
#include "marginmerge/jobs/compress.h"
#include "marginmerge/jobs/explain.h"
#include "marginmerge/jobs/model_file.h"
#include "support/compress_case.h"
#include "support/made_files.h"
#include "support/temporary_directory.h"

namespace marginmerge {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t d = 24;

// Documents that mix a few of thirty topics; a query asks for the topics of its document.
struct Corpus {
    test::TemporaryDirectory folder;
    FitOptions options;

    explicit Corpus(std::size_t documents = 40, std::size_t queries = 24, std::uint64_t seed = 1,
                    std::size_t lengths = 20) {
        Random random(seed);
        Matrix topics(30, d);
        for (float& x : topics.flat()) x = static_cast<float>(random.normal());
        normalise_rows(topics);
        const auto near = [&](const float* topic, double spread, float* out) {
            for (std::size_t j = 0; j < d; ++j) {
                out[j] = topic[j] + static_cast<float>(spread * random.normal() / std::sqrt(static_cast<double>(d)));
            }
        };
        MultiVectorBuilder docs(d), asks(d);
        std::vector<std::vector<std::size_t>> mixes;
        for (std::size_t i = 0; i < documents; ++i) {
            auto& mix = mixes.emplace_back();
            for (int t = 0; t < 4; ++t) mix.push_back(random.below(30));
            Matrix v(40 + random.below(lengths), d);
            for (std::size_t r = 0; r < v.rows(); ++r) near(topics.row(mix[random.below(4)]), 0.6, v.row(r));
            normalise_rows(v);
            docs.add("doc" + std::to_string(i), v);
        }
        std::string qrels = "query-id\tcorpus-id\tscore\n";
        for (std::size_t q = 0; q < queries; ++q) {
            const std::size_t document = random.below(documents);
            Matrix v(5, d);
            for (std::size_t r = 0; r < v.rows(); ++r)
                near(topics.row(mixes[document][random.below(4)]), 0.8, v.row(r));
            normalise_rows(v);
            asks.add("q" + std::to_string(q), v);
            qrels += "q" + std::to_string(q) + "\tdoc" + std::to_string(document) + "\t2\n";
            qrels += "q" + std::to_string(q) + "\tdoc" + std::to_string((document + 1) % documents) + "\t1\n";
        }
        write_multi_vectors(folder / "docs.safetensors", docs.finish(), ScalarType::f16);
        write_multi_vectors(folder / "train_queries.safetensors", asks.finish(), ScalarType::f16);
        write_text_file(folder / "train_qrels.tsv", qrels);
        options.sources = {source_from_folder(folder.path().string())};
        options.output = folder / "model.safetensors";
        options.keep = 0.1;
        options.prototypes = 16;
        options.probes = 200;
        options.checkpoint_seconds = 0;
    }
    std::string bytes() const { return test::read_file(options.output); }
};

std::string failure(const FitOptions& options) {
    try {
        fit(options);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Fit, SameSeedSameBytesForAnyNumberOfThreads) {
    for (const char* preset : {"paper", "learned", "default"}) {
        Corpus corpus;
        corpus.options.preset = preset;
        corpus.options.threads = 1;
        fit(corpus.options);
        const std::string one = corpus.bytes();
        corpus.options.threads = 2;
        fit(corpus.options);
        EXPECT_TRUE(one == corpus.bytes()) << preset;
        EXPECT_FALSE(std::filesystem::exists(corpus.options.output.string() + ".work")) << preset;
    }
}

TEST(Fit, ModelCarriesNetworkCurveAndHashes) {
    Corpus corpus;
    corpus.options.preset = "paper";
    const FitReport report = fit(corpus.options);
    EXPECT_EQ(report.train_queries, 22U);
    EXPECT_EQ(report.validation_queries, 2U);
    const Model model = load_model(corpus.options.output);
    EXPECT_TRUE(model.network.has_value());
    EXPECT_EQ(model.bank.size(), 16U);
    EXPECT_EQ(model.recipe.anchors, "coverage");
    EXPECT_EQ(model.recipe.fill, "index");
    const auto provenance = nlohmann::json::parse(model.provenance);
    EXPECT_EQ(provenance.at("training").at("curve").size(), report.epochs + 1);
    EXPECT_EQ(provenance.at("documents_sha256").get<std::string>().size(), 64U);
    EXPECT_EQ(provenance.at("query_ids_sha256").get<std::string>().size(), 64U);
    EXPECT_EQ(provenance.at("seed"), 42);
}

TEST(Fit, DefaultFitsAndReportsTheComparison) {
    Corpus corpus;
    const FitReport report = fit(corpus.options);
    ASSERT_EQ(report.candidates.size(), 5U);
    EXPECT_EQ(report.candidates[0].name, "fitted");
    const auto chosen =
        std::find_if(report.candidates.begin(), report.candidates.end(), [](const auto& c) { return c.chosen; });
    ASSERT_NE(chosen, report.candidates.end());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_LE(chosen->flips, report.candidates[i].flips);
    EXPECT_EQ(report.recipe.representative, chosen->name);
    EXPECT_EQ(report.fell_back.empty(), chosen->name == "fitted");
    const Model model = load_model(corpus.options.output);
    if (chosen->name == "fitted") {
        EXPECT_FALSE(model.probes.empty());
        EXPECT_EQ(model.fitted.offsets.size(), model.probes.tokens.rows());
        EXPECT_THAT(model.settings, HasSubstr("ridge"));
    }
}

// Judgements that always prefer the long pages among those that fit a query.
void prefer_long_pages(const Corpus& corpus) {
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

TEST(Fit, JudgementsAlignAllPagesWhereThatHelps) {
    Corpus corpus(120, 90, 1, 300);
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
    EXPECT_THAT(failure(corpus.options), HasSubstr("--align"));
}

// Sixty topics, three pages with each; of these the one that answers it worst is relevant to the three queries about
// it.
void ask_topics_again_and_again(const Corpus& corpus) {
    constexpr std::size_t topic_count = 60, queries_a_topic = 3;
    Random random(5);
    Matrix topics(topic_count, d);
    for (float& x : topics.flat()) x = static_cast<float>(random.normal());
    normalise_rows(topics);
    const auto near = [&](std::size_t topic, double spread, float* out) {
        for (std::size_t j = 0; j < d; ++j)
            out[j] =
                topics(topic, j) + static_cast<float>(spread * random.normal() / std::sqrt(static_cast<double>(d)));
    };
    MultiVectorBuilder docs(d), asks(d);
    std::vector<Matrix> pages;
    for (std::size_t i = 0; i < topic_count; ++i) {
        Matrix& page = pages.emplace_back(60, d);
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
            Matrix v(2, d);
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

TEST(Fit, PagesRememberWhatJudgedQueriesAskedWhereThatHelps) {
    Corpus corpus;
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

TEST(Fit, SharpeningStandsInTheModelAndCanBeLeftOut) {
    Corpus corpus(60, 30);
    corpus.options.compare = false;
    const auto sharpen = [&] {
        fit(corpus.options);
        return nlohmann::json::parse(load_model(corpus.options.output).settings).at("fitted").at("sharpen");
    };
    EXPECT_EQ(sharpen(), 0.5);
    corpus.options.sharpen = 0;
    EXPECT_EQ(sharpen(), 0);
    corpus.options.sharpen = -1;
    EXPECT_THAT(failure(corpus.options), HasSubstr("--sharpen"));
}

// Judgements at random teach nothing that holds for other queries.
TEST(Fit, JudgementsThatTeachNothingAreLeftOut) {
    Corpus corpus(120, 60);
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

TEST(Fit, KilledTrainingContinuesToTheSameBytes) {
    Corpus corpus;
    corpus.options.preset = "paper";
    fit(corpus.options);
    const std::string whole = corpus.bytes();
    std::filesystem::remove(corpus.options.output);
    corpus.options.progress = [](const ProgressUpdate& update) {
        if (update.phase == "train" && update.done == 2) throw std::runtime_error("killed");
    };
    EXPECT_THROW(fit(corpus.options), std::runtime_error);
    EXPECT_FALSE(std::filesystem::exists(corpus.options.output));
    std::size_t first = 99;
    corpus.options.progress = [&](const ProgressUpdate& update) {
        if (update.phase == "train") first = std::min(first, update.done);
    };
    const FitReport report = fit(corpus.options);
    EXPECT_TRUE(report.resumed);
    EXPECT_EQ(first, 2U);
    EXPECT_TRUE(whole == corpus.bytes());
}

TEST(Fit, CacheKeepsMinedNegativesAndADamagedOneIsIgnored) {
    Corpus corpus;
    corpus.options.preset = "paper";
    corpus.options.cache = corpus.folder / "cache";
    fit(corpus.options);
    const std::string first = corpus.bytes();
    std::size_t mined = 0;
    corpus.options.progress = [&](const ProgressUpdate& update) { mined += update.phase == "mine" ? 1 : 0; };
    fit(corpus.options);
    EXPECT_EQ(mined, 0U);
    EXPECT_TRUE(first == corpus.bytes());
    for (const auto& entry : std::filesystem::directory_iterator(corpus.options.cache)) {
        std::filesystem::resize_file(entry.path(), 40);
    }
    fit(corpus.options);
    EXPECT_GT(mined, 0U);
    EXPECT_TRUE(first == corpus.bytes());
}

TEST(Fit, WithoutLabelsAndWithoutQueries) {
    Corpus corpus;
    corpus.options.preset = "paper";
    corpus.options.no_labels = true;
    EXPECT_EQ(fit(corpus.options).unjudged_queries, 22U);
    corpus.options.no_labels = false;
    corpus.options.sources[0].queries.clear();
    EXPECT_THAT(failure(corpus.options), HasSubstr("expected queries"));
    corpus.options.sources[0].qrels.clear();
    EXPECT_GT(fit(corpus.options).pseudo_queries, 0U);
    corpus.options.preset = "default";
    fit(corpus.options);
    const Model model = load_model(corpus.options.output);
    EXPECT_EQ(model.recipe.representative, "fitted");
    EXPECT_FALSE(model.probes.empty());
}

TEST(Fit, OverlapsAreErrorsThatNameThem) {
    Corpus corpus;
    corpus.options.preset = "fixed";
    write_text_file(corpus.folder / "test_ids.txt", "q3\nother\nq7\n");
    corpus.options.exclude_queries = corpus.folder / "test_ids.txt";
    EXPECT_THAT(failure(corpus.options), AllOf(HasSubstr("queries overlap"), HasSubstr("q3"), HasSubstr("q7")));
    corpus.options.exclude_queries.clear();

    corpus.options.evaluation_documents = corpus.folder / "docs.safetensors";
    EXPECT_THAT(failure(corpus.options), AllOf(HasSubstr("overlap"), HasSubstr("doc0"), HasSubstr("and 30 more")));

    // Another name and another storage type, the same contents.
    const MultiVectorSet docs = read_multi_vectors(corpus.folder / "docs.safetensors");
    MultiVectorBuilder renamed(d);
    Matrix page(docs.vectors_of(5), d);
    for (std::size_t i = 0; i < page.rows(); ++i) {
        const auto* half = static_cast<const std::uint16_t*>(docs.vectors(5).data) + i * d;
        for (std::size_t j = 0; j < d; ++j) page(i, j) = half_to_float(half[j]);
    }
    renamed.add("elsewhere", page);
    write_multi_vectors(corpus.folder / "evaluation.safetensors", renamed.finish(), ScalarType::f32);
    corpus.options.evaluation_documents = corpus.folder / "evaluation.safetensors";
    EXPECT_THAT(failure(corpus.options), HasSubstr("doc5 = elsewhere"));
    corpus.options.evaluation_documents.clear();

    FitSource zero_shot = corpus.options.sources[0];
    zero_shot.role = DataRole::zero_shot;
    corpus.options.sources.push_back(zero_shot);
    EXPECT_THAT(failure(corpus.options), HasSubstr("contents of training and evaluation documents overlap"));
}

TEST(Fit, HoldOutKeepsTheEvaluationSideOut) {
    Corpus corpus;
    corpus.options.preset = "paper";
    corpus.options.hold_out = 0.3;
    const FitReport report = fit(corpus.options);
    EXPECT_EQ(report.documents, 28U);
    EXPECT_LT(report.train_queries + report.validation_queries, 24U);
}

TEST(Fit, SeveralDatasetsWithRoles) {
    Corpus a(30, 12, 1), b(30, 12, 2);
    a.options.preset = "paper";
    FitSource bank = b.options.sources[0];
    bank.role = DataRole::bank;
    a.options.sources.push_back(bank);
    EXPECT_EQ(fit(a.options).train_queries, 11U + 12U);
    EXPECT_EQ(load_model(a.options.output).bank.query_ids.size(), 24U);
}

TEST(Fit, WrongUseIsSaidPlainly) {
    Corpus corpus;
    corpus.options.preset = "best";
    EXPECT_THAT(failure(corpus.options), HasSubstr("--preset: expected one of default"));
    corpus.options.preset = "paper";
    corpus.options.keep = 1.5;
    EXPECT_THAT(failure(corpus.options), HasSubstr("--keep"));
    EXPECT_THROW(source_from_folder(corpus.folder.path().string() + ":judge"), Error);
    EXPECT_THROW(source_from_folder("nowhere"), Error);
}

TEST(Fit, RefusesNumbersThatAreNoneAndOutputsThatAreInputs) {
    Corpus corpus;
    corpus.options.preset = "paper";
    const auto docs = corpus.folder / "docs.safetensors";
    const std::string before = test::read_file(docs);
    corpus.options.output = docs;
    EXPECT_THAT(failure(corpus.options), HasSubstr("an input"));
    corpus.options.output = corpus.folder / "nowhere/model";
    EXPECT_THAT(failure(corpus.options), HasSubstr("nowhere"));
    EXPECT_TRUE(before == test::read_file(docs));

    corpus.options.output = corpus.folder / "model.safetensors";
    for (const char* name : {"docs.safetensors", "train_queries.safetensors"}) {
        const auto file = corpus.folder / name;
        const std::string sound = test::read_file(file);
        const MultiVectorSet set = read_multi_vectors(file);
        MultiVectorBuilder builder(d);
        for (std::size_t i = 0; i < set.size(); ++i) {
            Matrix v = to_float(set.vectors(i));
            if (i == 7) v(2, 3) = std::nanf("");
            builder.add(set.id(i), v);
        }
        write_multi_vectors(file, builder.finish(), ScalarType::f16);
        EXPECT_THAT(failure(corpus.options), HasSubstr("row 2: expected finite numbers")) << name;
        EXPECT_FALSE(std::filesystem::exists(corpus.options.output));
        test::write_file(file, sound);
    }
}

}  // namespace
}  // namespace marginmerge
