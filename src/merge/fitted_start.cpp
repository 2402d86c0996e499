#include "merge/fitted_start.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "kernels/products.h"

namespace marginmerge {

std::string to_json(const FittedSettings& s) {
    return nlohmann::json{{"fitted",
                           {{"ridge", s.ridge},
                            {"rounds", s.rounds},
                            {"inner", s.inner},
                            {"cluster_rounds", s.cluster_rounds},
                            {"weight_power", s.weight_power},
                            {"weight_floor", s.weight_floor},
                            {"norm_power", s.norm_power},
                            {"work_limit", s.work_limit},
                            {"least_probes", s.least_probes},
                            {"emphasis", s.emphasis},
                            {"strength", s.strength},
                            {"emphasis_limit", s.emphasis_limit},
                            {"solver_probes", s.solver_probes}}}}
        .dump();
}

FittedSettings fitted_settings(const std::string& json) {
    FittedSettings s;
    if (json.empty()) return s;
    try {
        const auto j = nlohmann::json::parse(json);
        const auto found = j.find("fitted");
        if (found == j.end()) return s;
        s.ridge = found->value("ridge", s.ridge);
        s.rounds = found->value("rounds", s.rounds);
        s.inner = found->value("inner", s.inner);
        s.cluster_rounds = found->value("cluster_rounds", s.cluster_rounds);
        s.weight_power = found->value("weight_power", s.weight_power);
        s.weight_floor = found->value("weight_floor", s.weight_floor);
        s.norm_power = found->value("norm_power", s.norm_power);
        s.work_limit = found->value("work_limit", s.work_limit);
        s.least_probes = found->value("least_probes", s.least_probes);
        s.emphasis = found->value("emphasis", s.emphasis);
        s.strength = found->value("strength", s.strength);
        s.emphasis_limit = found->value("emphasis_limit", s.emphasis_limit);
        s.solver_probes = found->value("solver_probes", s.solver_probes);
    } catch (const nlohmann::json::exception& error) {
        fail(ErrorCode::corrupt, "settings of fitted: expected numbers, found {}", error.what());
    }
    const bool sound = s.ridge > 0 && s.rounds >= 0 && s.rounds <= 1000 && s.inner >= 1 && s.inner <= 1000 &&
                       s.cluster_rounds >= 0 && s.cluster_rounds <= 1000 && s.weight_floor > 0 && s.work_limit > 0 &&
                       std::abs(s.emphasis) <= 20 && std::abs(s.strength) <= 40 && s.emphasis_limit >= 0 &&
                       s.emphasis_limit <= 20 && s.solver_probes > 0;
    if (!sound) fail(ErrorCode::corrupt, "settings of fitted: expected positive numbers, found {}", json);
    return s;
}

namespace {

// Weighted farthest-first seeding: the vector nearest to the weighted mean, then whatever has the largest
// weight x squared distance to the seeds so far. Rows of y have d+1 columns, the last one is 1.
void seed_centres(ConstMatrix y, std::size_t d, std::size_t k, FitStart& w) {
    const std::size_t n = y.rows;
    w.row.reshape(1, n);
    w.distance.assign(n, std::numeric_limits<float>::infinity());
    Matrix probe(1, d + 1);
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) {
        total += w.weight[i];
        for (std::size_t j = 0; j < d; ++j) probe(0, j) += w.weight[i] * y(i, j);
    }
    for (std::size_t j = 0; j < d; ++j) probe(0, j) /= static_cast<float>(total);
    std::vector<float> square(n);
    for (std::size_t i = 0; i < n; ++i) square[i] = dot(y.row(i), y.row(i), d);
    probe(0, d) = 0;
    product(probe, y, w.row);
    std::size_t pick = 0;
    for (std::size_t i = 1; i < n; ++i) {
        if (square[i] - 2 * w.row(0, i) < square[pick] - 2 * w.row(0, pick)) pick = i;
    }
    for (std::size_t c = 0; c < k; ++c) {
        std::copy_n(y.row(pick), d, w.centres.row(c));
        w.centres(c, d) = 0;
        product(ConstMatrix{w.centres.row(c), 1, d + 1}, y, w.row);
        const float own = square[pick];
        std::size_t next = 0;
        float farthest = -1;
        for (std::size_t i = 0; i < n; ++i) {
            w.distance[i] = std::min(w.distance[i], std::max(0.0F, square[i] - 2 * w.row(0, i) + own));
            const float value = w.distance[i] * w.weight[i];
            if (value > farthest) {
                farthest = value;
                next = i;
            }
        }
        pick = next;
    }
}

}  // namespace

void make_fit_start(ConstMatrix v, std::size_t k, ConstMatrix probes, ConstMatrix metric, const FittedSettings& s,
                    FitStart& w) {
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
    w.centres.reshape(k, d + 1);
    seed_centres(w.mapped, d, k, w);
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
    std::vector<float> page_mean(d, 0.0F);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) page_mean[j] += v(i, j);
    }
    for (float& x : page_mean) x /= static_cast<float>(n);
    for (std::size_t c = 0; c < k; ++c) {
        float norm = 1;
        float* r = w.start.row(c);
        if (size[c] > 0) {
            for (std::size_t j = 0; j < d; ++j) r[j] = static_cast<float>(r[j] / w.mass[c]);
            norm = std::sqrt(dot(r, r, d));
            const auto scale = static_cast<float>(std::pow(std::max(norm, 1e-2F), -1 - s.norm_power));
            for (std::size_t j = 0; j < d; ++j) r[j] *= scale;
        } else {
            std::copy(page_mean.begin(), page_mean.end(), r);  // copies of one vector: nothing left to own
        }
        float* f = w.features.row(c);
        std::copy_n(r, d, f);
        std::copy(page_mean.begin(), page_mean.end(), f + d);
        f[2 * d] = norm;
        f[2 * d + 1] = std::log(static_cast<float>(size[c]) + 1);
        f[2 * d + 2] = 1;
    }
}

}  // namespace marginmerge
