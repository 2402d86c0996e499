#include <fmt/core.h>

#include "jobs/bench_clock.h"
#include "kernels/products.h"
#include "merge/construct.h"
#include "merge/features.h"

namespace marginmerge {

namespace {

constexpr std::size_t prototypes = 128;

/// Unit vectors around n/6 directions: pages repeat themselves.
Matrix synthetic_page(std::size_t n, std::size_t d, std::uint64_t seed) {
    Random random(seed);
    const std::size_t themes = std::max<std::size_t>(n / 6, 4);
    Matrix centres;
    centres.reshape(themes, d);
    for (float& x : centres.flat()) x = static_cast<float>(random.normal());
    Matrix v;
    v.reshape(n, d);
    for (std::size_t i = 0; i < n; ++i) {
        const float* centre = centres.row(random.below(themes));
        for (std::size_t j = 0; j < d; ++j) v(i, j) = centre[j] + 0.5f * static_cast<float>(random.normal());
    }
    normalise_rows(v);
    return v;
}

/// A bank near the pages' directions and a network with small random weights.
Model synthetic_model(std::size_t d) {
    Model model;
    Random random(7);
    model.bank.prototypes = synthetic_page(prototypes, d, 11);
    model.bank.frequencies.assign(prototypes, 1.0f / prototypes);
    model.scaling.emplace();
    model.scaling->deviation.fill(1.0f);
    model.network.emplace();
    for (float& x : model.network->parameters) x = 0.1f * static_cast<float>(random.normal());
    return model;
}

}  // namespace

BenchReport bench_page(const BenchOptions& options, const Progress& progress) {
    BenchReport report;
    report.machine = measure_machine(1, options.seconds);
    const Model model = synthetic_model(options.dim);
    Recipe recipe;
    recipe.anchors = "coverage";
    recipe.representative = "learned";
    recipe.budget.keep = options.keep;
    const std::size_t sizes[] = {238, 1175, 2927, 4862};
    std::size_t done = 0;
    for (const std::size_t n : sizes) {
        bench_step(progress, done++, 4);
        const Matrix v = synthetic_page(n, options.dim, n);
        const PageInput page{v.view(), {}, 42};
        const std::size_t k = recipe.budget.count(n);
        PageWorkspace w;
        CompressedPage out;
        const std::string size = fmt::format("{} x {} -> {}", n, options.dim, k);
        const auto time = [&](auto&& f) { return best_seconds(options.seconds, thread_seconds, f); };

        Matrix scores;
        scores.reshape(n, std::max(prototypes, k));
        const double first = time([&] { product(v, model.bank.prototypes, {scores.data(), n, prototypes}); });
        const double second = time([&] { product(v, v.view().middle_rows(0, k), {scores.data(), n, k}); });
        const double products = first + second;
        const double flops = 2.0 * static_cast<double>(n * options.dim * (prototypes + k));
        report.rows.push_back({"two matrix products", size, 1, products * 1e3, flops / products / 1e9, "GFLOP/s",
                               flops / products / 1e9 / report.machine.fma, "FMA peak"});
        const auto stage = [&](const char* name, double seconds) {
            report.rows.push_back({name, size, 1, seconds * 1e3, 0, "", seconds / products, "x products"});
        };
        stage("  responses, coverage", time([&] { page_responses(page, model, recipe, w); }));
        stage("  anchors", time([&] { choose_anchors(page, recipe, k, w); }));
        stage("  assignment", time([&] { cluster_page(page, w); }));
        stage("  base weights", time([&] { base_weights(recipe, w); }));
        stage("  features", time([&] { compute_features(page, false, w, w.clusters.features); }));
        stage("  network", time([&] { page_residuals(model, recipe, w); }));
        stage("  weights, synthesis", time([&] {
                  page_alpha(w.residual, w);
                  out.representatives.reshape(k, options.dim);
                  cluster_centroids(w.lists, w.weight, out.representatives);
              }));
        stage("whole construction", time([&] { compress_page(page, model, recipe, w, out); }));
    }
    bench_step(progress, 4, 4);
    report.notes.push_back("processor time of one thread; coverage anchors, learned weights, synthetic pages");
    return report;
}

}  // namespace marginmerge
