// Representatives fitted to the page's answers: see fitted_start.h for the start, fitted_solver.h for the
// optimisation, learn/fitted_parts.h for what is learned once for all pages.
#include "merge/fitted.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/products.h"
#include "merge/registry.h"

namespace marginmerge {

void probe_weights(const FitStart& start, const ProbeSet& probes, const FittedParts& parts,
                   const FittedSettings& settings, std::vector<float>& weights) {
    weights.assign(probes.weights.begin(), probes.weights.begin() + static_cast<std::ptrdiff_t>(start.probes));
    if (start.probes > 0 && parts.usual.size() >= start.probes) {
        const auto limit = static_cast<float>(settings.emphasis_limit);
        const auto emphasis = static_cast<float>(settings.emphasis), strength = static_cast<float>(settings.strength);
        const float highest = *std::max_element(start.targets.begin(), start.targets.end());
        for (std::size_t t = 0; t < start.probes; ++t) {
            const float z = std::clamp((start.targets[t] - parts.usual[t]) / parts.spread[t], -limit, limit);
            weights[t] *= std::exp(emphasis * z + strength * (start.targets[t] - highest));
        }
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (float& v : weights) v = static_cast<float>(v / sum);
}

namespace {

// Keeps about `wanted` probes: the heavy ones for sure, of the light ones every so-many-th, which then stands for
// those passed over. Fills chosen, weights and targets of `w`; weights come in for all probes.
std::size_t draw_probes(const FitStart& start, ConstMatrix tokens, const FittedParts& parts, std::size_t wanted,
                        FitWorkspace& w) {
    const std::size_t d = tokens.cols;
    const bool all = start.probes <= wanted;
    const auto light = 1.0F / static_cast<float>(wanted);
    w.chosen.reshape(start.probes, d);
    w.targets.resize(start.probes);
    std::size_t drawn = 0;
    double passed = 0.5;
    for (std::size_t t = 0; t < start.probes; ++t) {
        float weight = w.weights[t];
        if (!all && weight < light) {
            passed += weight / light;
            if (passed < 1) continue;
            passed -= 1;
            weight = light;
        }
        std::copy_n(tokens.row(t), d, w.chosen.row(drawn));
        w.targets[drawn] = start.targets[t] + (t < parts.offsets.size() ? parts.offsets[t] : 0.0F);
        w.weights[drawn++] = weight;
    }
    w.weights.resize(drawn);
    w.targets.resize(drawn);
    return drawn;
}

}  // namespace

void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x) {
    const std::size_t k = start.start.rows(), d = start.start.cols();
    // s = r0 + B' features
    Matrix corrected(start.start);
    if (!parts.start_map.empty()) {
        for (std::size_t c = 0; c < k; ++c) {
            float* s = corrected.row(c);
            for (std::size_t f = 0; f < start.features.cols(); ++f) {
                const float scale = start.features(c, f);
                const float* b = parts.start_map.row(f);
                for (std::size_t j = 0; j < d; ++j) s[j] += scale * b[j];
            }
        }
    }
    probe_weights(start, probes, parts, settings, w.weights);
    const ConstMatrix tokens = parts.prior.empty() ? probes.tokens.view() : parts.images.view();
    const std::size_t drawn = draw_probes(start, tokens, parts, settings.solver_probes, w);

    FitProblem problem;
    problem.probes = w.chosen.view().middle_rows(0, drawn);
    problem.weights = w.weights;
    problem.targets = w.targets;
    problem.ridge = settings.ridge;
    problem.rounds = settings.rounds;
    problem.inner = settings.inner;
    x.reshape(k, d);
    if (parts.prior.empty()) {
        problem.start = corrected;
        fit_vectors(problem, w, x);
        return;
    }
    // In coordinates y = W^-1 x the penalty is a plain distance and a probe u becomes W u.
    Matrix from(k, d), to(k, d);
    product(corrected, parts.prior_inverse, from);
    problem.start = from;
    fit_vectors(problem, w, to);
    product(to, parts.prior, x);
}

void represent_fitted(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    const FittedSettings settings = fitted_settings(request.model.settings);
    make_fit_start(request.page.vectors, request.k, request.model.probes.tokens, request.model.fitted.metric, settings,
                   w.fit_start);
    fit_page(w.fit_start, request.model.probes, request.model.fitted, settings, w.fit, out.representatives);
    std::copy(w.fit_start.cluster.begin(), w.fit_start.cluster.end(), out.owner.begin());
    if (request.recipe.unit_norm) normalise_rows(out.representatives);
}

}  // namespace marginmerge
