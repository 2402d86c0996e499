// Representatives fitted to the page's answers: see fitted_start.h for the start, fitted_solver.h for the
// optimisation, learn/fitted_parts.h for what is learned once for all pages.
#include "merge/fitted.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "kernels/products.h"
#include "merge/registry.h"

namespace marginmerge {

void pack_images(FittedParts& parts) {
    parts.packed_images = parts.images.empty() ? nullptr : std::make_shared<const PackedRows>(parts.images);
}

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

AimedAnswers::AimedAnswers(const FitStart& start, const FittedParts& parts, const FittedSettings& settings)
    : start_(start), parts_(parts), sharpen_(0), from_(static_cast<float>(settings.sharpen_from)) {
    if (parts.usual.size() < start.probes) return;  // nobody knows what is usual
    const double keep = static_cast<double>(start.start.rows()) / static_cast<double>(start.weight.size());
    sharpen_ = static_cast<float>(settings.sharpen * std::min(1.0, settings.sharpen_keep / keep));
}

float AimedAnswers::operator()(std::size_t probe) const {
    const float answer = start_.targets[probe];
    if (sharpen_ == 0) return answer;
    return answer + sharpen_ * std::max(0.0F, answer - parts_.usual[probe] - from_ * parts_.spread[probe]);
}

namespace {

// Keeps about as many probes as the solver takes: the heavy ones for sure, of the light ones every so-many-th, which
// then stands for those passed over. Weights come in for all probes; fills targets and weights of `w` and returns the
// probes' rows.
ConstMatrix draw_probes(const FitStart& start, ConstMatrix tokens, const FittedParts& parts,
                        const FittedSettings& settings, FitWorkspace& w) {
    const std::size_t wanted = settings.solver_probes;
    const std::size_t d = tokens.cols;
    const AimedAnswers aim(start, parts, settings);
    const auto target = [&](std::size_t t) { return aim(t) + (t < parts.offsets.size() ? parts.offsets[t] : 0.0F); };
    w.targets.resize(start.probes);
    if (start.probes <= wanted) {
        for (std::size_t t = 0; t < start.probes; ++t) w.targets[t] = target(t);
        return tokens.middle_rows(0, start.probes);
    }
    const auto light = 1.0F / static_cast<float>(wanted);
    w.chosen.reshape(start.probes, d);
    std::size_t drawn = 0;
    double passed = 0.5;
    for (std::size_t t = 0; t < start.probes; ++t) {
        float weight = w.weights[t];
        if (weight < light) {
            passed += weight / light;
            if (passed < 1) continue;
            passed -= 1;
            weight = light;
        }
        std::copy_n(tokens.row(t), d, w.chosen.row(drawn));
        w.targets[drawn] = target(t);
        w.weights[drawn++] = weight;
    }
    w.weights.resize(drawn);
    w.targets.resize(drawn);
    return w.chosen.view().middle_rows(0, drawn);
}

// All of a page's problem but where it starts. With a prior it is posed in coordinates y = W^-1 x: there the penalty is
// a plain distance and a probe u becomes W u.
FitProblem pose(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
                FitWorkspace& w) {
    probe_weights(start, probes, parts, settings, w.weights);
    FitProblem problem;
    problem.probes =
        draw_probes(start, parts.prior.empty() ? probes.tokens.view() : parts.images.view(), parts, settings, w);
    if (problem.probes.data == parts.images.data()) problem.lanes = parts.packed_images.get();
    problem.weights = w.weights;
    problem.targets = w.targets;
    problem.ridge = settings.ridge;
    problem.rounds = settings.rounds;
    problem.inner = settings.inner;
    return problem;
}

// s = r0 + B' features, in the problem's coordinates.
Matrix corrected_start(const FitStart& start, const FittedParts& parts) {
    const std::size_t k = start.start.rows(), d = start.start.cols();
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
    if (parts.prior.empty()) return corrected;
    Matrix from(k, d);
    product(corrected, parts.prior_inverse, from);
    return from;
}

// Near `start`, with the steps setting out from `begin`.
void solve(FitProblem& problem, const Matrix& start, const Matrix& begin, const FittedParts& parts, FitWorkspace& w,
           Matrix& x) {
    problem.start = start;
    problem.begin = begin;
    x.reshape(start.rows(), start.cols());
    if (parts.prior.empty()) {
        fit_vectors(problem, w, x);
        return;
    }
    Matrix to(start.rows(), start.cols());
    fit_vectors(problem, w, to);
    product(to, parts.prior, x);
}

// One step from a start on a prefix of the probes: cheap, what it leaves is lowest where the whole fit ends lowest, and
// the whole fit has a step less to make when it goes on from there.
class Preview {
public:
    Preview(const FitProblem& whole, std::size_t probes, FitWorkspace& w) : problem_(whole), w_(w) {
        const std::size_t count = std::min(probes, whole.probes.rows);
        problem_.probes = whole.probes.middle_rows(0, count);
        problem_.weights = whole.weights.first(count);
        problem_.targets = whole.targets.first(count);
        problem_.rounds = 1;
        // The weights' sum is no longer 1; the ridge keeps its share.
        problem_.ridge *= std::accumulate(problem_.weights.begin(), problem_.weights.end(), 0.0);
    }
    double operator()(const Matrix& from) {
        problem_.start = from;
        reached_.reshape(from.rows(), from.cols());
        return fit_vectors(problem_, w_, reached_);
    }
    /// Where the step led.
    Matrix& reached() { return reached_; }

private:
    FitProblem problem_;
    FitWorkspace& w_;
    Matrix reached_;
};

// Answers to the first probes become at least as strong as those of these rows.
void answer_with(ConstMatrix rows, ConstMatrix probes, std::span<float> answers) {
    if (rows.rows == 0 || answers.empty()) return;
    std::vector<std::int32_t> winner(answers.size());
    std::vector<float> answer(answers.size());
    nearest(probes.middle_rows(0, answers.size()), rows, winner, answer);
    for (std::size_t t = 0; t < answers.size(); ++t) answers[t] = std::max(answers[t], answer[t]);
}

std::size_t affordable_starts(std::size_t n, std::size_t k, const FittedSettings& settings) {
    if (k >= n) return 1;
    const double affordable = settings.start_work / (static_cast<double>(n) * static_cast<double>(k));
    return std::min(settings.starts, static_cast<std::size_t>(std::max(1.0, affordable)));
}

}  // namespace

void fit_page(const FitStart& start, const ProbeSet& probes, const FittedParts& parts, const FittedSettings& settings,
              FitWorkspace& w, Matrix& x) {
    FitProblem problem = pose(start, probes, parts, settings, w);
    const Matrix from = corrected_start(start, parts);
    Preview preview(problem, settings.start_probes, w);
    preview(from);
    solve(problem, from, preview.reached(), parts, w, x);
}

void fit_best_start(ConstMatrix v, std::size_t k, ConstMatrix remembered, const ProbeSet& probes,
                    const FittedParts& parts, const FittedSettings& settings, FitStart& start, FitWorkspace& w,
                    Matrix& x) {
    make_fit_start(v, k, probes.tokens, parts.metric, settings, start);
    answer_with(remembered, probes.tokens, start.targets);
    FitProblem problem = pose(start, probes, parts, settings, w);
    Matrix from = corrected_start(start, parts), begin;
    Preview preview(problem, settings.start_probes, w);
    double least = preview(from);
    std::swap(begin, preview.reached());
    std::vector<std::int32_t> cluster(start.cluster);
    const std::size_t starts = affordable_starts(v.rows, k, settings);
    for (std::size_t attempt = 1; attempt < starts; ++attempt) {
        cluster_start(v, k, attempt, settings, start);
        Matrix other = corrected_start(start, parts);
        const double energy = preview(other);
        if (!(energy < least)) continue;
        least = energy;
        std::swap(from, other);
        std::swap(begin, preview.reached());
        cluster = start.cluster;
    }
    std::swap(start.cluster, cluster);
    solve(problem, from, begin, parts, w, x);
}

void represent_fitted(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    const FittedSettings settings = fitted_settings(request.model.settings);
    fit_best_start(request.page.vectors, request.k, request.page.remembered, request.model.probes, request.model.fitted,
                   settings, w.fit_start, w.fit, out.representatives);
    std::copy(w.fit_start.cluster.begin(), w.fit_start.cluster.end(), out.owner.begin());
    if (request.recipe.unit_norm) normalise_rows(out.representatives);
}

}  // namespace marginmerge
