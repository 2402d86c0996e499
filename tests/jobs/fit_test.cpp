#include "marginmerge/jobs/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/random.h"
#include "io/atomic_file.h"
#include "io/multi_vector_file.h"
#include "kernels/convert.h"
#include "kernels/maxsim.h"
#include "kernels/products.h"
#include "marginmerge/core/error.h"
#include "marginmerge/jobs/model_file.h"
#include "support/fit_corpus.h"

namespace marginmerge {
namespace {

using ::testing::HasSubstr;
using Corpus = test::FitCorpusFiles;
using test::fit_failure;

constexpr std::size_t d = test::fit_dimensions;

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
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("--sharpen"));
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
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("expected queries"));
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
    EXPECT_THAT(fit_failure(corpus.options), AllOf(HasSubstr("queries overlap"), HasSubstr("q3"), HasSubstr("q7")));
    corpus.options.exclude_queries.clear();

    corpus.options.evaluation_documents = corpus.folder / "docs.safetensors";
    EXPECT_THAT(fit_failure(corpus.options), AllOf(HasSubstr("overlap"), HasSubstr("doc0"), HasSubstr("and 30 more")));

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
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("doc5 = elsewhere"));
    corpus.options.evaluation_documents.clear();

    FitSource zero_shot = corpus.options.sources[0];
    zero_shot.role = DataRole::zero_shot;
    corpus.options.sources.push_back(zero_shot);
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("contents of training and evaluation documents overlap"));
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
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("--preset: expected one of default"));
    corpus.options.preset = "paper";
    corpus.options.keep = 1.5;
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("--keep"));
    EXPECT_THROW(source_from_folder(corpus.folder.path().string() + ":judge"), Error);
    EXPECT_THROW(source_from_folder("nowhere"), Error);
}

TEST(Fit, RefusesNumbersThatAreNoneAndOutputsThatAreInputs) {
    Corpus corpus;
    corpus.options.preset = "paper";
    const auto docs = corpus.folder / "docs.safetensors";
    const std::string before = test::read_file(docs);
    corpus.options.output = docs;
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("an input"));
    corpus.options.output = corpus.folder / "nowhere/model";
    EXPECT_THAT(fit_failure(corpus.options), HasSubstr("nowhere"));
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
        EXPECT_THAT(fit_failure(corpus.options), HasSubstr("row 2: expected finite numbers")) << name;
        EXPECT_FALSE(std::filesystem::exists(corpus.options.output));
        test::write_file(file, sound);
    }
}

}  // namespace
}  // namespace marginmerge
