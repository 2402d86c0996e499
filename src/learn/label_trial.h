#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "learn/judged_query.h"

namespace marginmerge {

/// What several strengths of something learned from judgements do to queries it was not learned from. The first
/// strength is none: the full index as it is.
class LabelTrial {
public:
    explicit LabelTrial(std::vector<double> strengths);

    std::size_t queries() const { return ndcg_.front().size(); }
    std::span<const double> strengths() const { return strengths_; }
    /// One query's effects, one for each strength.
    void add(std::span<const RankingEffect> of_query);

    /// Whether nDCG@5 gains more than its standard error.
    bool helps(std::size_t i) const { return i != 0 && ndcg(i) - ndcg(0) > standard_error(i); }

    /// Whether it gains at least so much nDCG@5 for the share of pairs it changes.
    bool pays(std::size_t i, double least) const { return ndcg(i) - ndcg(0) >= least * flips(i); }

    double gain(std::size_t i) const { return loss_[0] - loss_[i]; }  ///< by how much the sum of losses falls
    double ndcg(std::size_t i) const;
    double flips(std::size_t i) const;           ///< share of pairs (relevant, drawn at random) in another order
    double standard_error(std::size_t i) const;  ///< of the mean difference in nDCG@5 to none

private:
    std::vector<double> strengths_;
    std::vector<double> loss_;
    std::vector<std::size_t> flips_;
    std::vector<std::vector<double>> ndcg_;  ///< by strength, of each query
    std::size_t pairs_ = 0;
};

/// Strengths of two things that together change at most this share of the pairs and gain most, as far as changed pairs
/// and gains add up.
std::pair<std::size_t, std::size_t> best_together(const LabelTrial& a, const LabelTrial& b, double most_flips);

}  // namespace marginmerge
