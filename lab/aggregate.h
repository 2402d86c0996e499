#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "lab/statistics.h"
#include "lab/workbench.h"

namespace marginmerge::lab {

/// Sum of one over the sum of the other, 0 over nothing.
double rate(const std::vector<double>& part, const std::vector<double>& whole);

/// A method on a dataset over several seeds: observations are (seed, query), so that two methods pair up.
struct Figures {
    std::vector<double> ndcg, full, pairs, flips, reversals, loss;
    std::vector<double> seed_ndcg, seed_flips;  ///< by seed
    double vectors = 0, bytes = 0;
    std::map<std::string, double> extra;
    std::string skipped;

    bool there() const { return skipped.empty() && !ndcg.empty(); }
    double mean_ndcg() const { return mean(ndcg); }
    double retention() const { return mean(full) > 0 ? mean(ndcg) / mean(full) : 0; }
    double flip_rate() const;
    double reversal_rate() const;
};

Figures gather(Workbench& bench, const Dataset& data, const Method& method, const RunSettings& settings,
               std::span<const std::uint64_t> seeds);

/// a - b over datasets: nDCG@5, and flip rates.
Interval ndcg_difference(std::span<const Figures> a, std::span<const Figures> b);
Interval flip_difference(std::span<const Figures> a, std::span<const Figures> b);

}  // namespace marginmerge::lab
