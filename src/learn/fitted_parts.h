#pragma once

#include <cstdint>
#include <span>

#include "marginmerge/merge/model.h"
#include "merge/fitted.h"

namespace marginmerge {

struct FittedLearning {
    FittedSettings settings;
    int stages = 3;             ///< 1: nothing is learned across pages
    double metric_power = 0.3;  ///< g: pages are clustered in H^(g/2), H the probes' second moment
    double prior_power = 0.5;   ///< W = C^(power/2), C the second moment of corrections
    double map_ridge = 1;
    std::size_t largest_dimension = 512;  ///< beyond it nothing of size d x d is learned
    std::size_t threads = 0;
};

/// The clustering metric H^(g/2) of these probes; empty when it is not learned.
Matrix fitted_metric(const ProbeSet& probes, const FittedLearning& options);

/// Learns what all pages share from a sample of them, by fitting the sample several times: how far a
/// probe's best response stays out of reach on average (offsets), how starts should be corrected before
/// fitting (start_map), and in which directions corrections are usual (prior). The starts were made
/// with `metric`.
FittedParts learn_fitted_parts(const ProbeSet& probes, Matrix metric, std::span<const FitStart> starts,
                               const FittedLearning& options);

}  // namespace marginmerge
