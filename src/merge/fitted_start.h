#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "merge/fitted_solver.h"

namespace marginmerge {

/// Settings of `fitted`; they stand in the model's settings JSON under "fitted".
struct FittedSettings {
    double ridge = 0.003;       ///< how firmly vectors are held near the start
    int rounds = 4;             ///< Gauss-Newton steps a page
    int inner = 8;              ///< conjugate-gradient steps in each
    int cluster_rounds = 8;     ///< of the start's k-means
    double weight_power = 0.5;  ///< page vectors count (answers/mean answers + floor)^power in the start
    double weight_floor = 0.1;
    double norm_power = 0.5;  ///< a start is scaled to |mean|^-norm_power
    double work_limit = 4e6;  ///< page vectors x probes: longer pages see a prefix of the probes
    std::size_t least_probes = 1000;
    double emphasis = 0.5;      ///< a probe weighs exp(emphasis z + strength f): f the page's answer to it, z how far
    double strength = 3.3;      ///< that answer lies above the usual one, in deviations
    double emphasis_limit = 4;  ///< |z| at most
    std::size_t solver_probes = 3000;  ///< about how many of a page's probes, drawn by weight, are fitted
};

/// Reads {"fitted": {...}}; absent fields keep their defaults. Error(corrupt) on wrong types.
FittedSettings fitted_settings(const std::string& json);
std::string to_json(const FittedSettings& settings);

/// What is known of a page before its vectors are moved. Reused from page to page.
struct FitStart {
    std::size_t probes = 0;             ///< how many of the probes are used, from the first
    std::vector<float> targets;         ///< f_t [probes], best response of the page
    std::vector<std::int32_t> winner;   ///< [probes] page vector that gives it
    std::vector<std::int32_t> cluster;  ///< [n]
    Matrix start;                       ///< r0 [k,d]
    Matrix features;                    ///< [k, 2d+3]: r0, page mean, |mean of the cluster|, log(1+size), 1

    Matrix mapped;                  ///< scratch: metric * v with room for the k-means' bias, [n,d+1]
    Matrix centres;                 ///< scratch [k,d+1]
    Matrix sums;                    ///< scratch [k,d+1]
    Matrix row;                     ///< scratch [1,n]
    std::vector<float> weight;      ///< om_j [n]
    std::vector<float> distance;    ///< scratch [n]
    std::vector<float> similarity;  ///< scratch
    std::vector<double> mass;       ///< scratch [k]
};

/// Targets, then clusters by weighted k-means in the metric (empty: plain), seeded by weighted
/// farthest-first; a start is the weighted mean of its cluster scaled to norm |mean|^-norm_power.
/// v [n,d], probes [P,d].
void make_fit_start(ConstMatrix v, std::size_t k, ConstMatrix probes, ConstMatrix metric,
                    const FittedSettings& settings, FitStart& out);

}  // namespace marginmerge
