#include "learn/fitted_parts.h"

#include <cmath>

#include "core/parallel.h"
#include "kernels/products.h"
#include "learn/symmetric.h"

namespace marginmerge {

namespace {

constexpr double least_eigenvalue = 1e-9;
constexpr double least_spread = 1e-4;

// Second moment sum_i w_i x_i x_i'.
Dense second_moment(ConstMatrix rows, std::span<const float> weights) {
    const Dense x = to_dense(rows);
    Eigen::VectorXd w(x.rows());
    for (Eigen::Index i = 0; i < w.size(); ++i) w[i] = weights[static_cast<std::size_t>(i)];
    return x.transpose() * w.asDiagonal() * x;
}

// Mean and deviation over pages of each probe's best response.
void usual_answers(std::size_t probes, std::span<const FitStart> starts, FittedParts& parts) {
    std::vector<double> sum(probes, 0.0), square(probes, 0.0);
    std::vector<std::size_t> count(probes, 0);
    for (const FitStart& start : starts) {
        for (std::size_t t = 0; t < start.probes; ++t) {
            sum[t] += start.targets[t];
            square[t] += static_cast<double>(start.targets[t]) * start.targets[t];
            ++count[t];
        }
    }
    parts.usual.resize(probes);
    parts.spread.resize(probes);
    for (std::size_t t = 0; t < probes; ++t) {
        const double n = std::max<double>(1, static_cast<double>(count[t])), mean = sum[t] / n;
        parts.usual[t] = static_cast<float>(mean);
        parts.spread[t] = static_cast<float>(std::sqrt(std::max(0.0, square[t] / n - mean * mean)) + least_spread);
    }
}

}  // namespace

Matrix fitted_metric(const ProbeSet& probes, const FittedLearning& o) {
    if (probes.empty() || probes.tokens.cols() > o.largest_dimension || o.metric_power <= 0) return {};
    return to_matrix(symmetric_function(second_moment(probes.tokens, probes.weights),
                                        [&](double x) { return std::pow(std::max(x, 1e-7), o.metric_power / 2); }));
}

FittedParts learn_fitted_parts(const ProbeSet& probes, Matrix metric, std::span<const FitStart> starts,
                               const FittedLearning& o) {
    FittedParts parts;
    parts.metric = std::move(metric);
    const std::size_t d = probes.tokens.cols(), pages = starts.size();
    if (d > o.largest_dimension || probes.empty() || o.stages <= 1 || pages == 0) return parts;
    usual_answers(probes.tokens.rows(), starts, parts);
    const auto features = static_cast<Eigen::Index>(2 * d + 3);
    for (int stage = 0; stage + 1 < o.stages; ++stage) {
        std::vector<Matrix> fitted(pages);
        std::vector<std::vector<float>> missing(pages), weights(pages);
        std::vector<FitWorkspace> workspaces(resolve_threads(o.threads));
        parallel_for_workers(pages, o.threads, [&](std::size_t i, std::size_t worker) {
            fit_page(starts[i], probes, parts, o.settings, workspaces[worker], fitted[i]);
            missing[i].resize(starts[i].probes);
            std::vector<std::int32_t> winner(starts[i].probes);
            nearest(ConstMatrix{probes.tokens.data(), starts[i].probes, d}, fitted[i], winner, missing[i]);
            const AimedAnswers aim(starts[i], parts, o.settings);
            for (std::size_t t = 0; t < missing[i].size(); ++t) missing[i][t] -= aim(t);
            probe_weights(starts[i], probes, parts, o.settings, weights[i]);
        });
        // Sums run over pages in order, so that threads do not matter.
        std::vector<double> sum(probes.tokens.rows(), 0.0), mass(probes.tokens.rows(), 0.0);
        for (std::size_t i = 0; i < pages; ++i) {
            for (std::size_t t = 0; t < missing[i].size(); ++t) {
                sum[t] += static_cast<double>(weights[i][t]) * missing[i][t];
                mass[t] += weights[i][t];
            }
        }
        parts.offsets.resize(sum.size());
        for (std::size_t t = 0; t < sum.size(); ++t) {
            parts.offsets[t] = mass[t] > 0 ? static_cast<float>(sum[t] / mass[t]) : 0;
        }

        Dense normal = Dense::Zero(features, features), right = Dense::Zero(features, static_cast<Eigen::Index>(d));
        std::size_t vectors = 0;
        for (std::size_t i = 0; i < pages; ++i) {
            const Dense f = to_dense(starts[i].features), change = to_dense(fitted[i]) - to_dense(starts[i].start);
            normal.noalias() += f.transpose() * f;
            right.noalias() += f.transpose() * change;
            vectors += fitted[i].rows();
        }
        normal.diagonal().array() += o.map_ridge * static_cast<double>(vectors) / static_cast<double>(d);
        const Dense map = normal.ldlt().solve(right);
        parts.start_map = to_matrix(map);

        Dense moment = Dense::Zero(static_cast<Eigen::Index>(d), static_cast<Eigen::Index>(d));
        for (std::size_t i = 0; i < pages; ++i) {
            const Dense rest = to_dense(fitted[i]) - to_dense(starts[i].start) - to_dense(starts[i].features) * map;
            moment.noalias() += rest.transpose() * rest;
        }
        moment /= static_cast<double>(vectors);
        const double power = o.prior_power / 2;
        const auto raised = [&](double sign) {
            return symmetric_function(moment,
                                      [&](double x) { return std::pow(std::max(x, least_eigenvalue), sign * power); });
        };
        Dense prior = raised(1);
        const double scale = std::sqrt(static_cast<double>(d) / prior.squaredNorm());  // tr W'W = d
        prior *= scale;
        // Any rotation of W stands for the same prior. In this one the probes' second moment is diagonal, which is what
        // the solver divides by.
        const Dense rotation = eigenvectors_of(prior * second_moment(probes.tokens, probes.weights) * prior);
        const Dense turned = prior * rotation;
        parts.prior = to_matrix(turned);
        parts.prior_inverse = to_matrix(rotation.transpose() * raised(-1) / scale);
        parts.images = Matrix(probes.tokens.rows(), d);
        product(probes.tokens, to_matrix(turned.transpose()), parts.images);
        pack_images(parts);
    }
    return parts;
}

}  // namespace marginmerge
