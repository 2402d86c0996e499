#include "merge/fitted_start.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.h"
#include "kernels/products.h"
#include "select/draw.h"

namespace marginmerge {

namespace {

// Attempts after the first are seeded by chance: this and their number decide, so every run draws alike.
constexpr std::uint64_t attempt_seed = 17;

// The row of y nearest to their weighted mean.
std::size_t central_row(ConstMatrix y, const FitStart& w) {
    Matrix mean(1, y.cols);
    double total = 0;
    for (std::size_t i = 0; i < y.rows; ++i) {
        total += w.weight[i];
        add_scaled(w.weight[i], y.row(i), mean.row(0), y.cols);
    }
    for (float& x : mean.flat()) x = static_cast<float>(x / total);
    std::vector<float> product(y.rows);
    dot_rows(mean.row(0), y.data, y.rows, y.cols, product.data());
    std::size_t best = 0;
    for (std::size_t i = 1; i < y.rows; ++i) {
        if (w.square[i] - 2 * product[i] < w.square[best] - 2 * product[best]) best = i;
    }
    return best;
}

// Each next one by chance, in proportion to weight x squared distance to those so far.
void draw_seeds(ConstMatrix y, std::size_t k, std::uint64_t seed, FitStart& w) {
    const std::size_t n = y.rows;
    Random random(seed);
    std::vector<float> distance(n, std::numeric_limits<float>::infinity()), chance(w.weight), product(n);
    w.seeds.clear();
    while (w.seeds.size() < k) {
        // Where every vector is a seed already, the last one stands for itself again.
        const std::size_t pick = std::min(draw_in_proportion(chance, random), n - 1);
        w.seeds.push_back(static_cast<std::int32_t>(pick));
        dot_rows(y.row(pick), y.data, n, y.cols, product.data());
        for (std::size_t i = 0; i < n; ++i) {
            distance[i] = std::min(distance[i], std::max(0.0F, w.square[i] - 2 * product[i] + w.square[pick]));
            chance[i] = distance[i] * w.weight[i];
        }
    }
}

// The first attempt takes the central row, then whatever has the largest weight x squared distance to the seeds so far.
// Rows of y have d+1 columns, the last one is 1.
void seed_centres(ConstMatrix y, std::size_t d, std::size_t k, std::size_t attempt, FitStart& w) {
    if (attempt == 0) {
        w.seeds.assign(1, static_cast<std::int32_t>(central_row(y, w)));
        extend_farthest(y, {w.weight, w.square}, k, w.farthest, w.seeds);
    } else {
        draw_seeds(y, k, mix_seed(attempt_seed, attempt), w);
    }
    for (std::size_t c = 0; c < k; ++c) std::copy_n(y.row(static_cast<std::size_t>(w.seeds[c])), d, w.centres.row(c));
}

}  // namespace

void answer_probes(ConstMatrix v, ConstMatrix probes, ConstMatrix metric, const FittedSettings& s, FitStart& w) {
    const std::size_t n = v.rows, d = v.cols;
    const auto affordable = static_cast<std::size_t>(s.work_limit / static_cast<double>(n));
    w.probes = std::min(probes.rows, std::max(s.least_probes, affordable));
    w.targets.resize(w.probes);
    w.winner.resize(w.probes);
    nearest(probes.middle_rows(0, w.probes), v, w.winner, w.targets);

    // Vectors that answer many probes pull the clusters towards themselves.
    w.weight.assign(n, 0.0F);
    for (const auto j : w.winner) w.weight[static_cast<std::size_t>(j)] += 1;
    const double mean = std::max(1e-9, static_cast<double>(w.probes) / static_cast<double>(n));
    for (float& x : w.weight) x = static_cast<float>(std::pow(x / mean + s.weight_floor, s.weight_power));

    // argmin |y - c|^2 = argmax y.c - |c|^2/2: an extra column of ones carries the bias.
    w.mapped.reshape(n, d + 1);
    if (metric.rows == d) {
        Matrix image(n, d);
        product(v, metric, image);  // the metric is symmetric
        for (std::size_t i = 0; i < n; ++i) std::copy_n(image.row(i), d, w.mapped.row(i));
    } else {
        for (std::size_t i = 0; i < n; ++i) std::copy_n(v.row(i), d, w.mapped.row(i));
    }
    for (std::size_t i = 0; i < n; ++i) w.mapped(i, d) = 1;
    w.square.resize(n);
    for (std::size_t i = 0; i < n; ++i) w.square[i] = dot(w.mapped.row(i), w.mapped.row(i), d + 1);
    w.page_mean.assign(d, 0.0F);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) w.page_mean[j] += v(i, j);
    }
    for (float& x : w.page_mean) x /= static_cast<float>(n);
}

void cluster_start(ConstMatrix v, std::size_t k, std::size_t attempt, const FittedSettings& s, FitStart& w) {
    const std::size_t n = v.rows, d = v.cols;
    w.centres.reshape(k, d + 1);
    seed_centres(w.mapped, d, k, attempt, w);
    w.cluster.assign(n, 0);
    w.similarity.resize(n);
    w.sums.reshape(k, d + 1);
    for (int round = 0; round <= s.cluster_rounds; ++round) {
        for (std::size_t c = 0; c < k; ++c) w.centres(c, d) = -0.5F * dot(w.centres.row(c), w.centres.row(c), d);
        const std::vector<std::int32_t> before = w.cluster;
        nearest(w.mapped, w.centres, w.cluster, w.similarity);
        if (round > 0 && before == w.cluster) break;
        if (round == s.cluster_rounds) break;
        std::fill_n(w.sums.data(), w.sums.size(), 0.0F);
        add_to_clusters(w.mapped, w.cluster, w.weight, w.sums);
        for (std::size_t c = 0; c < k; ++c) {
            const float mass = w.sums(c, d);  // the column of ones sums the weights
            if (!(mass > 0)) continue;
            for (std::size_t j = 0; j < d; ++j) w.centres(c, j) = w.sums(c, j) / mass;
        }
    }

    w.start.reshape(k, d);
    std::fill_n(w.start.data(), w.start.size(), 0.0F);
    add_to_clusters(v, w.cluster, w.weight, w.start);
    w.mass.assign(k, 0.0);
    std::vector<std::size_t> size(k, 0);
    for (std::size_t i = 0; i < n; ++i) {
        w.mass[static_cast<std::size_t>(w.cluster[i])] += w.weight[i];
        ++size[static_cast<std::size_t>(w.cluster[i])];
    }
    w.features.reshape(k, 2 * d + 3);
    for (std::size_t c = 0; c < k; ++c) {
        float norm = 1;
        float* r = w.start.row(c);
        if (size[c] > 0) {
            for (std::size_t j = 0; j < d; ++j) r[j] = static_cast<float>(r[j] / w.mass[c]);
            norm = std::sqrt(dot(r, r, d));
            const auto scale = static_cast<float>(std::pow(std::max(norm, 1e-2F), -1 - s.norm_power));
            for (std::size_t j = 0; j < d; ++j) r[j] *= scale;
        } else {
            std::copy(w.page_mean.begin(), w.page_mean.end(), r);  // copies of one vector: nothing left to own
        }
        float* f = w.features.row(c);
        std::copy_n(r, d, f);
        std::copy(w.page_mean.begin(), w.page_mean.end(), f + d);
        f[2 * d] = norm;
        f[2 * d + 1] = std::log(static_cast<float>(size[c]) + 1);
        f[2 * d + 2] = 1;
    }
}

void make_fit_start(ConstMatrix v, std::size_t k, ConstMatrix probes, ConstMatrix metric, const FittedSettings& s,
                    FitStart& w) {
    answer_probes(v, probes, metric, s, w);
    cluster_start(v, k, 0, s, w);
}

}  // namespace marginmerge
