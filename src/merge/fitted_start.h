#pragma once

#include <cstdint>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "merge/fitted_settings.h"
#include "select/farthest_first.h"

namespace marginmerge {

/// What is known of a page before its vectors are moved. Reused from page to page.
struct FitStart {
    std::size_t probes = 0;             ///< how many of the probes are used, from the first
    std::vector<float> targets;         ///< f_t [probes], best response of the page
    std::vector<std::int32_t> winner;   ///< [probes] page vector that gives it
    std::vector<std::int32_t> cluster;  ///< [n]
    Matrix start;                       ///< r0 [k,d]
    Matrix features;                    ///< [k, 2d+3]: r0, page mean, |mean of the cluster|, log(1+size), 1

    Matrix mapped;                    ///< metric * v with room for the k-means' bias, [n,d+1]
    std::vector<float> square;        ///< |mapped|^2 [n]
    std::vector<float> page_mean;     ///< [d]
    Matrix centres;                   ///< scratch [k,d+1]
    Matrix sums;                      ///< scratch [k,d+1]
    std::vector<float> weight;        ///< om_j [n]
    std::vector<std::int32_t> seeds;  ///< scratch [k]
    FarthestWorkspace farthest;
    std::vector<float> similarity;  ///< scratch
    std::vector<double> mass;       ///< scratch [k]
};

/// The page's answers to the probes (targets, winner), what its vectors weigh in the clusters, and its vectors in the
/// metric (empty: plain). v [n,d], probes [P,d].
void answer_probes(ConstMatrix v, ConstMatrix probes, ConstMatrix metric, const FittedSettings& settings,
                   FitStart& out);

/// Clusters of a page that has answered, by weighted k-means in the metric; a start is the weighted mean of its cluster
/// scaled to norm |mean|^-norm_power. The first attempt (0) is seeded by weighted farthest-first, the others by chance.
void cluster_start(ConstMatrix v, std::size_t k, std::size_t attempt, const FittedSettings& settings, FitStart& out);

/// Answers and the first attempt.
void make_fit_start(ConstMatrix v, std::size_t k, ConstMatrix probes, ConstMatrix metric,
                    const FittedSettings& settings, FitStart& out);

}  // namespace marginmerge
