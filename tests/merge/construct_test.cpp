// The whole construction against the reference values, step by step.
#include "merge/construct.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/products.h"
#include "marginmerge/core/error.h"
#include "merge/features.h"
#include "merge/registry.h"
#include "support/compress_case.h"

namespace marginmerge {
namespace {

using test::CompressCase;

ConstMatrix as_row(const std::vector<float>& values) { return {values.data(), 1, values.size()}; }

// Reference clusters are numbered by ascending anchor, ours by pick order.
std::vector<std::size_t> reference_number(const std::vector<std::int32_t>& ours,
                                          const std::vector<std::int32_t>& reference) {
    std::vector<std::size_t> number;
    for (const auto anchor : ours)
        number.push_back(
            static_cast<std::size_t>(std::find(reference.begin(), reference.end(), anchor) - reference.begin()));
    return number;
}

// Patches whose best two anchors differ by 1e-6 or less may go either way, and with them their cluster.
std::vector<char> ambiguous_patches(const CompressCase& c) {
    const auto anchors = c.ints("anchors");
    std::vector<char> ambiguous(c.V.rows(), 0);
    for (std::size_t i = 0; i < c.V.rows(); ++i) {
        double best = -2, second = -2;
        for (const auto a : anchors) {
            double s = 0;
            for (std::size_t j = 0; j < c.V.cols(); ++j)
                s += static_cast<double>(c.V(i, j)) * c.V(static_cast<std::size_t>(a), j);
            if (s > best)
                second = best, best = s;
            else
                second = std::max(second, s);
        }
        ambiguous[i] = best - second <= 1e-6;
    }
    return ambiguous;
}

// Our own steps on the reference's anchors: in saturated_600 one of them is an exact copy of the
// patch that we would take.
void construct(const CompressCase& c, PageWorkspace& w) {
    const PageInput page{c.V, {}, 42};
    page_responses(page, c.model, c.recipe, w);
    w.clusters.anchors = c.ints("greedy_order");
    cluster_page(page, w);
    base_weights(c.recipe, w);
    compute_features(page, false, w, w.clusters.features);
    page_residuals(c.model, c.recipe, w);
    page_alpha(w.residual, w);
}

// The fill finds the nearest of the picks before it; the assignment takes that over. Copies of patches make ties.
TEST(Assignment, WhatTheFillFoundChangesNothing) {
    Random random(3);
    Matrix v(400, 16);
    for (float& x : v.flat()) x = static_cast<float>(random.normal());
    for (std::size_t i = 300; i < 400; ++i) std::copy_n(v.row(i - 300), 16, v.row(i));
    normalise_rows(v);
    Model model;
    model.bank.prototypes = Matrix(10, 16);
    for (float& x : model.bank.prototypes.flat()) x = static_cast<float>(random.normal());
    normalise_rows(model.bank.prototypes);
    model.bank.frequencies.assign(10, 0.1f);
    Recipe recipe;
    recipe.anchors = "coverage";
    recipe.fill = "farthest";
    const PageInput page{v.view(), {}, 42};
    PageWorkspace w;
    page_responses(page, model, recipe, w);
    for (const std::size_t k : {5u, 60u, 320u}) {
        choose_anchors(page, recipe, k, w);
        EXPECT_EQ(w.selection.compared > 0, k > 10);
        cluster_page(page, w);
        const auto assign = w.clusters.assign;
        const auto cosine = w.clusters.anchor_cosine;
        w.selection.compared = 0;
        cluster_page(page, w);
        EXPECT_EQ(assign, w.clusters.assign) << k;
        EXPECT_EQ(cosine, w.clusters.anchor_cosine) << k;
    }
}

class Oracle : public testing::TestWithParam<std::string> {};

TEST_P(Oracle, ClustersAndFeatures) {
    const CompressCase c = test::load_case(GetParam());
    PageWorkspace w;
    construct(c, w);
    const PageClusters& found = w.clusters;
    const auto anchors = c.ints("anchors");
    const auto assign = c.ints("assign");
    const auto number = reference_number(found.anchors, anchors);
    const auto ambiguous = ambiguous_patches(c);
    std::vector<char> skip(c.k(), 0);  // clusters that differ by an ambiguous patch
    std::size_t differing = 0;
    for (std::size_t i = 0; i < assign.size(); ++i) {
        const std::size_t ours = number[static_cast<std::size_t>(found.assign[i])];
        if (ours == static_cast<std::size_t>(assign[i])) continue;
        EXPECT_TRUE(ambiguous[i]) << "patch " << i;
        ++differing;
        skip[ours] = skip[static_cast<std::size_t>(assign[i])] = 1;
    }
    EXPECT_LE(differing, 5u);
    for (std::size_t a = 0; a < anchors.size(); ++a)
        EXPECT_EQ(number[static_cast<std::size_t>(found.assign[static_cast<std::size_t>(anchors[a])])], a);
    EXPECT_LE(test::largest_gap(as_row(found.relevance), c.floats("relevance")), 1e-5);
    EXPECT_LE(test::largest_gap(as_row(found.anchor_cosine), c.floats("anchor_cos")), 1e-5);
    const Matrix base = c.floats("base_weight"), features = c.floats("features");
    for (std::size_t i = 0; i < assign.size(); ++i) {
        // Base weights reach e^10, so their tolerance is relative.
        EXPECT_NEAR(found.base_weight[i], base.flat()[i], 1e-5 * std::max(1.0f, base.flat()[i]) * 2);
        if (skip[static_cast<std::size_t>(assign[i])]) continue;
        for (std::size_t f = 0; f < feature_count; ++f)
            EXPECT_NEAR(found.features(i, f), features(i, f), 1e-5) << "patch " << i << " feature " << f;
    }
}

TEST_P(Oracle, WeightsAndRepresentatives) {
    const CompressCase c = test::load_case(GetParam());
    PageWorkspace w;
    construct(c, w);
    const auto number = reference_number(w.clusters.anchors, c.ints("anchors"));
    const auto assign = c.ints("assign");
    std::vector<char> skip(c.k(), 0);
    for (std::size_t i = 0; i < assign.size(); ++i) {
        const std::size_t ours = number[static_cast<std::size_t>(w.clusters.assign[i])];
        if (ours != static_cast<std::size_t>(assign[i])) skip[ours] = skip[static_cast<std::size_t>(assign[i])] = 1;
    }
    const Matrix residual = c.floats("residual"), alpha = c.floats("alpha");
    const double residual_tolerance = c.name == "keep_all" ? 1e-3 : 2e-5;  // deviations at their floor there
    for (std::size_t i = 0; i < assign.size(); ++i) {
        if (skip[static_cast<std::size_t>(assign[i])]) continue;
        EXPECT_NEAR(w.residual[i], residual.flat()[i], residual_tolerance) << i;
        EXPECT_NEAR(w.weight[i], alpha.flat()[i], 1e-5) << i;
    }
    Matrix made(c.k(), c.V.cols());
    const auto compare = [&](std::span<const float> weight, const char* file) {
        cluster_centroids(w.lists, weight, made);
        const Matrix expected = c.floats(file);
        for (std::size_t r = 0; r < c.k(); ++r) {
            if (skip[number[r]]) continue;
            EXPECT_LE(test::largest_gap(made.view().middle_rows(r, 1), expected.view().middle_rows(number[r], 1)), 1e-5)
                << file << ' ' << r;
        }
    };
    compare(w.weight, "representatives");
    compare(w.clusters.base_weight, "response_centroids");
    compare({}, "uniform_centroids");
}

// The same through the one call that users make.
TEST_P(Oracle, CompressPage) {
    const CompressCase c = test::load_case(GetParam());
    if (c.name == "saturated_600") return;  // its anchors hold a copy, see above
    PageWorkspace w;
    Recipe recipe = c.recipe;
    for (const auto& [representative, file] : {std::pair{"learned", "representatives"},
                                               {"response", "response_centroids"},
                                               {"uniform", "uniform_centroids"}}) {
        recipe.representative = representative;
        const CompressedPage page = compress_page({c.V, {}, 42}, c.model, recipe, w);
        const auto number = reference_number(c.ints("greedy_order"), c.ints("anchors"));
        const Matrix expected = c.floats(file);
        for (std::size_t r = 0; r < c.k(); ++r)
            EXPECT_LE(test::largest_gap(page.representatives.view().middle_rows(r, 1),
                                        expected.view().middle_rows(number[r], 1)),
                      1e-5)
                << file << ' ' << r;
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, Oracle, testing::ValuesIn(test::compress_cases()),
                         [](const auto& value) { return value.param; });

TEST(Construct, EveryRepresentativeOwnsEveryPatch) {
    const Matrix v = test::random_page(300, 24, 40, 0.6, 3);
    const Model model = test::random_model(16, 24, 3);
    PageWorkspace w;
    for (const RepresentativeRule& rule : representative_rules()) {
        if (rule.needs_probes) continue;
        for (const double keep : {0.004, 0.05, 0.3, 1.0}) {
            Recipe recipe = model.recipe;
            recipe.representative = rule.name;
            recipe.budget.keep = keep;
            const CompressedPage page = compress_page({v, {}, 42}, model, recipe, w);
            ASSERT_EQ(page.representatives.rows(), recipe.budget.count(300));
            ASSERT_EQ(page.owner.size(), 300u);
            for (const auto owner : page.owner) {
                ASSERT_GE(owner, 0) << rule.name;
                ASSERT_LT(owner, static_cast<std::int32_t>(page.representatives.rows())) << rule.name;
            }
            for (const float x : page.representatives.flat()) ASSERT_TRUE(std::isfinite(x)) << rule.name;
        }
    }
}

TEST(Construct, PagesOfOneVectorOfCopiesAndOfNone) {
    const Model model = test::random_model(16, 24, 3);
    PageWorkspace w;
    const Matrix copies = test::random_page(50, 24, 1, 0.0, 3);
    for (const RepresentativeRule& rule : representative_rules()) {
        if (rule.needs_probes) continue;
        Recipe recipe = model.recipe;
        recipe.representative = rule.name;
        recipe.budget.keep = 0.1;
        const CompressedPage same = compress_page({copies, {}, 42}, model, recipe, w);
        for (std::size_t r = 0; r < same.representatives.rows(); ++r)
            EXPECT_LE(test::largest_gap(same.representatives.view().middle_rows(r, 1), copies.view().middle_rows(0, 1)),
                      1e-5)
                << rule.name;
        const CompressedPage one = compress_page({copies.view().middle_rows(0, 1), {}, 42}, model, recipe, w);
        EXPECT_LE(test::largest_gap(one.representatives, copies.view().middle_rows(0, 1)), 1e-5) << rule.name;
        const CompressedPage none = compress_page({copies.view().middle_rows(0, 0), {}, 42}, model, recipe, w);
        EXPECT_EQ(none.representatives.rows(), 0u);
    }
}

TEST(Construct, WorkspaceCarriesNothingOver) {
    const Model model = test::random_model(16, 24, 3);
    const Matrix small = test::random_page(37, 24, 5, 0.6, 1), large = test::random_page(410, 24, 30, 0.6, 2);
    PageWorkspace reused;
    for (const RepresentativeRule& rule : representative_rules()) {
        if (rule.needs_probes) continue;
        Recipe recipe = model.recipe;
        recipe.representative = rule.name;
        for (const Matrix* page : {&large, &small, &large}) {
            PageWorkspace fresh;
            const auto a = compress_page({*page, {}, 42}, model, recipe, reused);
            const auto b = compress_page({*page, {}, 42}, model, recipe, fresh);
            EXPECT_EQ(test::largest_gap(a.representatives, b.representatives), 0.0) << rule.name;
            EXPECT_EQ(a.owner, b.owner) << rule.name;
        }
    }
}

TEST(Construct, GridFillsCoordinatesOnlyForModelsTrainedWithIt) {
    Model model = test::random_model(16, 24, 3);
    const Matrix v = test::random_page(13, 24, 5, 0.6, 1);
    PageWorkspace w;
    const PatchGrid grid{4, 3};
    EXPECT_EQ(build_clusters({v, grid, 42}, model, model.recipe, w).features(5, 7), 0.0f);
    model.uses_grid = true;
    const auto with = build_clusters({v, grid, 42}, model, model.recipe, w);
    EXPECT_FLOAT_EQ(with.features(5, 7), 1.5f / 4);
    EXPECT_FLOAT_EQ(with.features(5, 8), 1.5f / 3);
    EXPECT_EQ(with.features(12, 7), 0.0f);  // past the grid
}

TEST(Construct, OneClusterOfAWholePageNeedsNoLargeGram) {
    const Model model = test::random_model(16, 24, 3);
    const Matrix v = test::random_page(6000, 24, 3, 0.1, 1);
    Recipe recipe = model.recipe;
    recipe.budget.vectors = 1;
    PageWorkspace w;
    const auto page = compress_page({v, {}, 42}, model, recipe, w);
    EXPECT_EQ(page.representatives.rows(), 1u);
    EXPECT_LE(w.gram.size(), std::size_t{1} << 20);
}

TEST(Registry, SaysWhatTheModelLacks) {
    Model model = test::random_model(16, 24, 3);
    Recipe recipe = model.recipe;
    EXPECT_NO_THROW(check_recipe(recipe, model));
    model.network.reset();
    EXPECT_THROW(check_recipe(recipe, model), Error);
    recipe.representative = "response";
    EXPECT_NO_THROW(check_recipe(recipe, model));
    recipe.representative = "ward";
    EXPECT_NO_THROW(check_recipe(recipe, Model{}));
    recipe.representative = "kmeans";
    EXPECT_THROW(check_recipe(recipe, Model{}), Error);
    recipe.anchors = "kcenter";
    EXPECT_NO_THROW(check_recipe(recipe, Model{}));
}

TEST(Construct, AnAlignmentIsAppliedToWhateverWasBuilt) {
    const Matrix v = test::random_page(40, 24, 4, 0.4, 5);
    Model model;
    model.alignment.change = Matrix(24, 24);
    model.alignment.change(2, 7) = 0.5f;
    model.alignment.length_power = -0.5f;
    model.alignment.usual_length = 10;
    Recipe recipe;
    recipe.anchors = "kcenter";
    recipe.representative = "kmeans";
    recipe.budget.keep = 0.2;
    PageWorkspace w;
    const PageInput page{v, {}, 1};
    const CompressedPage plain = compress_page(page, model, recipe, w);
    recipe.align = true;
    const CompressedPage aligned = compress_page(page, model, recipe, w);
    EXPECT_EQ(plain.owner, aligned.owner);
    for (std::size_t i = 0; i < plain.representatives.rows(); ++i) {
        for (std::size_t j = 0; j < 24; ++j) {
            const float moved = plain.representatives(i, j) + (j == 2 ? 0.5f * plain.representatives(i, 7) : 0.0f);
            EXPECT_FLOAT_EQ(aligned.representatives(i, j), 0.5f * moved);
        }
    }
    recipe.unit_norm = true;
    const CompressedPage unit = compress_page(page, model, recipe, w);
    for (std::size_t i = 0; i < unit.representatives.rows(); ++i)
        EXPECT_NEAR(dot(unit.representatives.row(i), unit.representatives.row(i), 24), 1, 1e-5);

    EXPECT_THROW(check_recipe(recipe, Model()), Error);
    const Matrix other = test::random_page(40, 16, 4, 0.4, 5);
    EXPECT_THROW(compress_page({other, {}, 1}, model, recipe, w), Error);
}

}  // namespace
}  // namespace marginmerge
