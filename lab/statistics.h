#pragma once

#include <span>
#include <vector>

#include "marginmerge/eval/bootstrap.h"

namespace marginmerge::lab {

double mean(std::span<const double> values);
/// Of the population, as the paper reports over seeds.
double deviation(std::span<const double> values);

/// Spearman's rank correlation, ties by mean rank; 0 when a side is constant.
double rank_correlation(std::span<const double> x, std::span<const double> y);
/// With an interval over resampled pairs.
Interval rank_correlation_interval(std::span<const double> x, std::span<const double> y,
                                   const BootstrapOptions& options = {});

/// Paired observations of one dataset.
struct Paired {
    std::vector<double> a, b;
};
/// Mean over datasets of mean(a - b), each dataset resampled by itself. One dataset: the paper's paired bootstrap.
Interval stratified_difference(std::span<const Paired> datasets, const BootstrapOptions& options = {});
/// The same for rates sum(part)/sum(whole): first minus second.
struct PairedRates {
    std::vector<double> part_a, whole_a, part_b, whole_b;
};
Interval stratified_rate_difference(std::span<const PairedRates> datasets, const BootstrapOptions& options = {});

}  // namespace marginmerge::lab
