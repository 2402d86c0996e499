#include "merge/fitted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "kernels/products.h"
#include "learn/fitted_parts.h"
#include "marginmerge/core/error.h"
#include "merge/construct.h"

namespace marginmerge {
namespace {

constexpr std::size_t d = 32;

// Pages around a few topics; queries ask in the neighbourhood of topics.
Matrix around_topics(std::size_t rows, std::uint64_t seed, double spread) {
    Random topics(7), random(seed);
    Matrix centres(12, d);
    for (float& x : centres.flat()) x = static_cast<float>(topics.normal());
    normalise_rows(centres);
    Matrix m(rows, d);
    for (std::size_t i = 0; i < rows; ++i) {
        const float* c = centres.row(random.below(12));
        for (std::size_t j = 0; j < d; ++j) {
            m(i, j) = c[j] + static_cast<float>(spread * random.normal() / std::sqrt(static_cast<double>(d)));
        }
    }
    normalise_rows(m);
    return m;
}

Model model_with_probes() {
    Model model;
    model.probes.tokens = around_topics(600, 1, 0.8);
    model.probes.weights.assign(600, 1.0F / 600);
    model.recipe.representative = "fitted";
    return model;
}

double gap(ConstMatrix queries, ConstMatrix page, ConstMatrix representatives) {
    std::vector<std::int32_t> index(queries.rows);
    std::vector<float> full(queries.rows), compressed(queries.rows);
    nearest(queries, page, index, full);
    nearest(queries, representatives, index, compressed);
    double mean = 0, sum = 0;
    for (std::size_t t = 0; t < queries.rows; ++t)
        mean += (compressed[t] - full[t]) / static_cast<double>(queries.rows);
    for (std::size_t t = 0; t < queries.rows; ++t) sum += std::pow(compressed[t] - full[t] - mean, 2);
    return sum / static_cast<double>(queries.rows);
}

TEST(Fitted, AnswersUnseenQueriesBetterThanClusters) {
    Model model = model_with_probes();
    const Matrix queries = around_topics(300, 99, 0.8);
    double fitted = 0, kmeans = 0;
    PageWorkspace w;
    for (std::uint64_t p = 0; p < 6; ++p) {
        const Matrix page = around_topics(120, 1000 + p, 0.7);
        Recipe recipe = model.recipe;
        const CompressedPage a = compress_page({page, {}, 1}, model, recipe, w);
        EXPECT_EQ(a.representatives.rows(), 6U);
        for (const auto owner : a.owner) EXPECT_TRUE(owner >= 0 && owner < 6);
        fitted += gap(queries, page, a.representatives);
        recipe.representative = "kmeans";
        recipe.anchors = "kcenter";
        kmeans += gap(queries, page, compress_page({page, {}, 1}, model, recipe, w).representatives);
    }
    EXPECT_LT(fitted, 0.8 * kmeans);
}

TEST(Fitted, SharedPartsAreUsedAndDoNotDependOnThreads) {
    Model model = model_with_probes();
    FittedLearning learning;
    learning.threads = 1;
    Matrix metric = fitted_metric(model.probes, learning);
    std::vector<FitStart> starts(20);
    for (std::size_t i = 0; i < starts.size(); ++i) {
        make_fit_start(around_topics(80, 500 + i, 0.7), 4, model.probes.tokens, metric, learning.settings, starts[i]);
    }
    const FittedParts one = learn_fitted_parts(model.probes, metric, starts, learning);
    learning.threads = 2;
    const FittedParts two = learn_fitted_parts(model.probes, metric, starts, learning);
    EXPECT_EQ(one.offsets, two.offsets);
    EXPECT_TRUE(std::equal(one.start_map.flat().begin(), one.start_map.flat().end(), two.start_map.flat().begin()));
    EXPECT_EQ(one.start_map.rows(), 2 * d + 3);
    // W W^-1 = I, and the probes' second moment is diagonal as the solver sees it.
    for (std::size_t i = 0; i < d; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
            double identity = 0, moment = 0, own = 0;
            for (std::size_t l = 0; l < d; ++l) identity += one.prior(i, l) * one.prior_inverse(l, j);
            for (std::size_t t = 0; t < model.probes.weights.size(); ++t) {
                moment += model.probes.weights[t] * one.images(t, i) * one.images(t, j);
                own += model.probes.weights[t] * one.images(t, i) * one.images(t, i);
            }
            EXPECT_NEAR(identity, i == j ? 1 : 0, 1e-3) << i << " " << j;
            EXPECT_NEAR(moment, i == j ? own : 0, 1e-5) << i << " " << j;
        }
    }

    PageWorkspace w;
    const Matrix page = around_topics(100, 3, 0.7);
    const CompressedPage plain = compress_page({page, {}, 1}, model, model.recipe, w);
    model.fitted = one;
    const CompressedPage shared = compress_page({page, {}, 1}, model, model.recipe, w);
    EXPECT_FALSE(std::equal(plain.representatives.flat().begin(), plain.representatives.flat().end(),
                            shared.representatives.flat().begin()));
    // Images that are packed page by page give the same numbers.
    model.fitted.packed_images = nullptr;
    const CompressedPage unpacked = compress_page({page, {}, 1}, model, model.recipe, w);
    EXPECT_TRUE(std::equal(shared.representatives.flat().begin(), shared.representatives.flat().end(),
                           unpacked.representatives.flat().begin()));
}

TEST(Fitted, StrongAnswersWeighMoreAndDrawingKeepsTheFit) {
    Model model = model_with_probes();
    const Matrix page = around_topics(100, 3, 0.7);
    FittedSettings settings;
    FitStart start;
    make_fit_start(page, 5, model.probes.tokens, {}, settings, start);
    FittedParts parts;
    parts.usual.assign(600, 0.5F);
    parts.spread.assign(600, 0.1F);
    std::vector<float> even, weighted;
    probe_weights(start, model.probes, {}, settings, even);
    probe_weights(start, model.probes, parts, settings, weighted);
    EXPECT_EQ(even, model.probes.weights);
    const auto best = std::max_element(start.targets.begin(), start.targets.end()) - start.targets.begin();
    const auto worst = std::min_element(start.targets.begin(), start.targets.end()) - start.targets.begin();
    EXPECT_GT(weighted[static_cast<std::size_t>(best)], 2 * weighted[static_cast<std::size_t>(worst)]);
    EXPECT_NEAR(std::accumulate(weighted.begin(), weighted.end(), 0.0), 1, 1e-5);

    FitWorkspace w;
    Matrix all, drawn;
    fit_page(start, model.probes, parts, settings, w, all);
    settings.solver_probes = 300;
    fit_page(start, model.probes, parts, settings, w, drawn);
    EXPECT_LT(w.weights.size(), 500U);
    EXPECT_NEAR(std::accumulate(w.weights.begin(), w.weights.end(), 0.0), 1, 0.05);
    EXPECT_LT(gap(model.probes.tokens, page, drawn), 1.5 * gap(model.probes.tokens, page, all));
}

TEST(Fitted, UnusuallyStrongAnswersAreAimedAtHigher) {
    FitStart start;
    start.probes = 3;
    start.targets = {0.4F, 0.7F, 0.9F};
    start.weight.assign(100, 1.0F);
    start.start = Matrix(5, d);
    FittedParts parts;
    parts.usual.assign(3, 0.5F);
    parts.spread.assign(3, 0.1F);
    FittedSettings settings;
    settings.sharpen = 0.5;
    settings.sharpen_from = 2;
    const AimedAnswers aim(start, parts, settings);
    EXPECT_FLOAT_EQ(aim(0), 0.4F);
    EXPECT_NEAR(aim(1), 0.7F, 1e-6);  // two deviations above, no more
    EXPECT_NEAR(aim(2), 0.9F + 0.5F * 0.2F, 1e-6);
    EXPECT_FLOAT_EQ(AimedAnswers(start, {}, settings)(2), 0.9F);  // nobody knows what is usual
    start.start = Matrix(10, d);
    EXPECT_NEAR(AimedAnswers(start, parts, settings)(2), 0.9F + 0.25F * 0.2F, 1e-6);
    settings.sharpen = 0;
    EXPECT_FLOAT_EQ(AimedAnswers(start, parts, settings)(2), 0.9F);
    // What is aimed at arrives in the representatives.
    Model model = model_with_probes();
    const Matrix page = around_topics(100, 3, 0.7);
    make_fit_start(page, 5, model.probes.tokens, {}, settings, start);
    parts.usual.assign(600, 0.5F);
    parts.spread.assign(600, 0.1F);
    FitWorkspace w;
    Matrix plain, sharp;
    fit_page(start, model.probes, parts, settings, w, plain);
    settings.sharpen = 2;
    fit_page(start, model.probes, parts, settings, w, sharp);
    const auto strongest = [&](const Matrix& representatives) {
        std::vector<std::int32_t> winner(600);
        std::vector<float> answers(600);
        nearest(model.probes.tokens, representatives, winner, answers);
        return *std::max_element(answers.begin(), answers.end());
    };
    EXPECT_GT(strongest(sharp), strongest(plain) + 0.05F);
}

TEST(Fitted, SeveralStartsComeCloserAndOneIsThePlainFit) {
    const Model model = model_with_probes();
    FittedSettings one, several, unaffordable;
    one.starts = 1;
    several.starts = 8;
    unaffordable.start_work = 0;
    FitWorkspace w;
    FitStart start;
    const auto fitted = [&](const Matrix& page, const FittedSettings& settings) {
        Matrix x;
        fit_best_start(page, 5, {}, model.probes, {}, settings, start, w, x);
        return x;
    };
    double with_one = 0, with_several = 0;
    std::size_t changed = 0;
    for (std::uint64_t p = 0; p < 12; ++p) {
        const Matrix page = around_topics(90, 2000 + p, 0.7);
        Matrix plain;
        make_fit_start(page, 5, model.probes.tokens, {}, one, start);
        const std::vector<std::int32_t> first = start.cluster;
        fit_page(start, model.probes, {}, one, w, plain);
        const Matrix a = fitted(page, one), b = fitted(page, unaffordable);
        EXPECT_TRUE(std::equal(plain.flat().begin(), plain.flat().end(), a.flat().begin()));
        EXPECT_TRUE(std::equal(plain.flat().begin(), plain.flat().end(), b.flat().begin()));
        EXPECT_EQ(start.cluster, first);
        const Matrix c = fitted(page, several), again = fitted(page, several);
        EXPECT_TRUE(std::equal(c.flat().begin(), c.flat().end(), again.flat().begin()));
        // The clusters reported are those of the start that was taken.
        if (!std::equal(plain.flat().begin(), plain.flat().end(), c.flat().begin())) {
            EXPECT_NE(start.cluster, first);
            ++changed;
        }
        with_one += gap(model.probes.tokens, page, a);
        with_several += gap(model.probes.tokens, page, c);
    }
    EXPECT_GT(changed, 3U);
    EXPECT_LT(with_several, 0.99 * with_one);
}

TEST(Fitted, APageAnswersWhatItRemembers) {
    Model model = model_with_probes();
    const Matrix page = around_topics(100, 3, 0.7);
    std::vector<std::int32_t> winner(600);
    std::vector<float> answers(600), plain(600), told(600);
    nearest(model.probes.tokens, page, winner, answers);
    const auto worst = static_cast<std::size_t>(std::min_element(answers.begin(), answers.end()) - answers.begin());
    const ConstMatrix remembered = model.probes.tokens.view().middle_rows(worst, 1);
    PageWorkspace w;
    const auto fitted = [&](ConstMatrix memory, std::vector<float>& out) {
        const CompressedPage made = compress_page({page, {}, 1, memory}, model, model.recipe, w);
        EXPECT_EQ(made.representatives.rows(), 5U);
        nearest(model.probes.tokens, made.representatives, winner, out);
    };
    ASSERT_GT(answers[worst], 0.01F);
    fitted({}, plain);
    fitted(remembered, told);
    EXPECT_GT(told[worst], plain[worst] + 0.05F);
    // What is weaker than the page's own answers changes nothing, and neither do other representatives heed it.
    Matrix weak(1, d);
    add_scaled(0.01F, remembered.row(0), weak.row(0), d);
    fitted(weak, told);
    EXPECT_EQ(told, plain);
    model.recipe.representative = "kmeans";
    model.recipe.anchors = "kcenter";
    fitted({}, plain);
    fitted(remembered, told);
    EXPECT_EQ(told, plain);
}

TEST(Fitted, UnitNormIsUnit) {
    Model model = model_with_probes();
    model.recipe.unit_norm = true;
    PageWorkspace w;
    const CompressedPage page = compress_page({around_topics(100, 3, 0.7), {}, 1}, model, model.recipe, w);
    for (std::size_t c = 0; c < page.representatives.rows(); ++c) {
        EXPECT_NEAR(dot(page.representatives.row(c), page.representatives.row(c), d), 1, 1e-4);
    }
}

TEST(Fitted, CopiesOfOneVectorAndSingleVectors) {
    Model model = model_with_probes();
    PageWorkspace w;
    const Matrix one = around_topics(1, 5, 0.1);
    Matrix copies(40, d);
    for (std::size_t i = 0; i < 40; ++i) std::copy_n(one.row(0), d, copies.row(i));
    for (const Matrix* page : {static_cast<const Matrix*>(&one), static_cast<const Matrix*>(&copies)}) {
        const CompressedPage out = compress_page({*page, {}, 1}, model, model.recipe, w);
        for (const float x : out.representatives.flat()) EXPECT_TRUE(std::isfinite(x));
        EXPECT_LT(gap(model.probes.tokens, *page, out.representatives), 1e-3);
    }
}

TEST(Fitted, SettingsSurviveTheirTextAndBadOnesAreRefused) {
    FittedSettings s;
    s.ridge = 0.0125;
    s.rounds = 7;
    EXPECT_EQ(to_json(fitted_settings(to_json(s))), to_json(s));
    EXPECT_EQ(fitted_settings("").ridge, FittedSettings{}.ridge);
    EXPECT_THROW(fitted_settings(R"({"fitted":{"ridge":"much"}})"), Error);
    EXPECT_THROW(fitted_settings(R"({"fitted":{"ridge":-1}})"), Error);
    EXPECT_THROW(fitted_settings(R"({"fitted":{"starts":0}})"), Error);
    EXPECT_THROW(fitted_settings(R"({"fitted":{"sharpen":-1}})"), Error);
    EXPECT_EQ(fitted_settings(R"({"fitted":{"ridge":0.01}})").sharpen,
              0);  // a model from before there was such a thing
}

}  // namespace
}  // namespace marginmerge
