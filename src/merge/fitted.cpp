// Representatives fitted to the page's answers: see fitted_start.h for the start, fitted_solver.h for the
// optimisation, learn/fitted_parts.h for what is learned once for all pages.
#include "merge/fitted.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/products.h"
#include "merge/registry.h"

namespace marginmerge {

void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x) {
    const std::size_t k = start.start.rows(), d = start.start.cols(), count = start.probes;
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
    std::vector<float> targets(start.targets.begin(), start.targets.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t t = 0; t < std::min(count, parts.offsets.size()); ++t) targets[t] += parts.offsets[t];
    std::vector<float> weights(probes.weights.begin(), probes.weights.begin() + static_cast<std::ptrdiff_t>(count));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (float& v : weights) v = static_cast<float>(v / sum);

    FitProblem problem;
    problem.weights = weights;
    problem.targets = targets;
    problem.ridge = settings.ridge;
    problem.rounds = settings.rounds;
    problem.inner = settings.inner;
    x.reshape(k, d);
    if (parts.prior.empty()) {
        problem.probes = probes.tokens.view().middle_rows(0, count);
        problem.start = corrected;
        fit_vectors(problem, w, x);
        return;
    }
    // In coordinates y = W^-1 x the penalty is a plain distance and a probe u becomes W u.
    Matrix from(k, d), to(k, d);
    product(corrected, parts.prior_inverse, from);
    problem.probes = parts.images.view().middle_rows(0, count);
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
