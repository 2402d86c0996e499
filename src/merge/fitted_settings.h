#pragma once

#include <cstddef>
#include <string>

namespace marginmerge {

/// Settings of `fitted`; they stand in the model's settings JSON under "fitted".
struct FittedSettings {
    double ridge = 0.003;       ///< how firmly vectors are held near the start
    int rounds = 2;             ///< Gauss-Newton steps a page
    int inner = 3;              ///< conjugate-gradient steps in each
    int cluster_rounds = 8;     ///< of the start's k-means
    double weight_power = 0.5;  ///< page vectors count (answers/mean answers + floor)^power in the start
    double weight_floor = 0.1;
    double norm_power = 0.5;  ///< a start is scaled to |mean|^-norm_power
    double work_limit = 4e6;  ///< page vectors x probes: longer pages see a prefix of the probes
    std::size_t least_probes = 1000;
    double emphasis = 0.5;       ///< a probe weighs exp(emphasis z + strength f): f the page's answer to it, z how far
    double strength = 3.3;       ///< that answer lies above the usual one, in deviations
    double emphasis_limit = 4;   ///< |z| at most
    double sharpen = 0.5;        ///< an answer is aimed at higher by this part of what it has beyond
    double sharpen_from = 2;     ///< so many deviations above the usual one; in full while a page keeps no more than
    double sharpen_keep = 0.05;  ///< this share of its vectors, in proportion less beyond
    std::size_t solver_probes = 12000;  ///< about how many of a page's probes, drawn by weight, are fitted
    std::size_t starts = 3;             ///< k-means starts tried; the fit goes on from the most promising one,
    std::size_t start_probes = 1440;    ///< found by one step on so many probes
    double start_work = 2e5;            ///< page vectors x k x starts: longer pages try fewer, at least one
};

/// Reads {"fitted": {...}}; absent fields keep their defaults. Error(corrupt) on wrong types.
FittedSettings fitted_settings(const std::string& json);
std::string to_json(const FittedSettings& settings);

}  // namespace marginmerge
