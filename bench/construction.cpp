// The construction of a page, stage by stage, against the two matrix products it cannot do without
// (responses to the prototypes, similarities to the anchors), on one thread. Every figure is the
// best of several repetitions in the same run.
#include <fmt/core.h>

#include <ctime>
#include <functional>
#include <limits>
#include <vector>

#include "core/random.h"
#include "jobs/synth_model.h"
#include "kernels/maxsim.h"
#include "kernels/products.h"
#include "merge/construct.h"
#include "merge/features.h"

namespace {

using namespace marginmerge;

// Processor time of this thread in milliseconds: unlike the wall clock it means the same on a busy
// machine.
double thread_ms() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// The best of repetitions over about a third of a second.
double best_ms(const std::function<void()>& body) {
    double best = std::numeric_limits<double>::infinity();
    const double end = thread_ms() + 350;
    int repetitions = 0;
    do {
        const double start = thread_ms();
        body();
        best = std::min(best, thread_ms() - start);
    } while (++repetitions < 5 || thread_ms() < end);
    return best;
}

Model bank_of(const SynthModel& corpus, std::size_t prototypes) {
    Model model;
    model.bank.prototypes = Matrix(corpus.topics.view().middle_rows(0, prototypes));
    model.bank.frequencies.assign(prototypes, 1.0f / static_cast<float>(prototypes));
    FeatureScaling scaling;
    scaling.mean.fill(0.3f);
    scaling.deviation.fill(0.5f);
    model.scaling = scaling;
    Network network;
    Random random(1);
    for (float& x : network.parameters) x = static_cast<float>(0.2 * random.normal());
    model.network = network;
    return model;
}

void page(std::size_t vectors, double redundancy_noise) {
    SynthModel corpus;
    corpus.vectors = vectors;
    corpus.patch_noise = redundancy_noise;
    corpus.regions = 40;
    corpus.draw_topics(400);
    SynthPage made = synth_page(corpus, 0);
    Matrix v(vectors, corpus.dim);
    for (std::size_t i = 0; i < vectors; ++i)
        std::copy_n(made.vectors.row(i % made.vectors.rows()), corpus.dim, v.row(i));
    const Model model = bank_of(corpus, 128);
    Recipe recipe;
    recipe.anchors = "coverage";
    recipe.representative = "learned";
    const PageInput input{v, {}, 42};
    const std::size_t k = recipe.budget.count(vectors);
    PageWorkspace w;
    CompressedPage out;
    compress_page(input, model, recipe, w, out);

    Matrix responses_out(vectors, 128), anchors(Matrix(v.view().middle_rows(0, k)));
    std::vector<std::int32_t> index(vectors);
    std::vector<float> similarity(vectors);
    Matrix similarities(vectors, k);
    const double product_1 = best_ms([&] { product(v, model.bank.prototypes, responses_out); });
    const double product_2 = best_ms([&] { product(v, anchors, similarities); });
    const double products = product_1 + product_2;
    const double flops =
        2.0 * static_cast<double>(vectors) * static_cast<double>(128 + k) * static_cast<double>(corpus.dim);
    fmt::print("{} x {} -> {}: the two products {:.3f} ms ({:.1f} GFLOP/s)\n", vectors, corpus.dim, k, products,
               flops / products / 1e6);
    const auto stage = [&](const char* name, const std::function<void()>& body) {
        const double ms = best_ms(body);
        fmt::print("  {:<34} {:8.3f} ms  {:5.2f}x\n", name, ms, ms / products);
    };
    stage("responses and coverage", [&] { page_responses(input, model, recipe, w); });
    for (const char* fill : {"farthest", "index"}) {
        recipe.fill = fill;
        stage(fmt::format("anchors, coverage, fill {}", fill).c_str(), [&] { choose_anchors(input, recipe, k, w); });
    }
    recipe.fill = "farthest";
    choose_anchors(input, recipe, k, w);
    stage("assignment and member lists", [&] { cluster_page(input, w); });
    stage("base weights", [&] { base_weights(recipe, w); });
    stage("features", [&] { compute_features(input, false, w, w.clusters.features); });
    stage("network", [&] { page_residuals(model, recipe, w); });
    stage("weights and synthesis", [&] {
        page_alpha(w.residual, w);
        cluster_centroids(w.lists, w.weight, out.representatives);
    });
    stage("complete, fill farthest", [&] { compress_page(input, model, recipe, w, out); });
    recipe.fill = "index";
    stage("complete, fill index", [&] { compress_page(input, model, recipe, w, out); });
    fmt::print("  {} of {} anchors chosen by coverage gain\n", w.selection.reasoned, k);
}

}  // namespace

int main() {
    fmt::print("kernel {}\n", kernel_name());
    page(238, 0.6);
    for (const std::size_t n : {1175u, 2927u, 4862u}) page(n, 0.45);
}
