#include "learn/label_trial.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace marginmerge {

namespace {

double mean_of(std::span<const double> x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / std::max(1.0, static_cast<double>(x.size()));
}

}  // namespace

LabelTrial::LabelTrial(std::vector<double> strengths)
    : strengths_(std::move(strengths)),
      loss_(strengths_.size(), 0.0),
      flips_(strengths_.size(), 0),
      ndcg_(strengths_.size()) {}

void LabelTrial::add(std::span<const RankingEffect> of_query) {
    pairs_ += of_query.front().pairs;
    for (std::size_t i = 0; i < strengths_.size(); ++i) {
        loss_[i] += of_query[i].loss;
        flips_[i] += of_query[i].flips;
        ndcg_[i].push_back(of_query[i].ndcg);
    }
}

double LabelTrial::ndcg(std::size_t i) const { return mean_of(ndcg_[i]); }

double LabelTrial::flips(std::size_t i) const {
    return static_cast<double>(flips_[i]) / std::max(1.0, static_cast<double>(pairs_));
}

double LabelTrial::standard_error(std::size_t i) const {
    const auto n = static_cast<double>(ndcg_[i].size());
    const double difference = ndcg(i) - ndcg(0);
    double square = 0;
    for (std::size_t q = 0; q < ndcg_[i].size(); ++q) square += std::pow(ndcg_[i][q] - ndcg_[0][q] - difference, 2);
    return std::sqrt(square / std::max(1.0, n - 1) / std::max(1.0, n));
}

std::pair<std::size_t, std::size_t> best_together(const LabelTrial& a, const LabelTrial& b, double most_flips) {
    std::pair<std::size_t, std::size_t> best{0, 0};
    for (std::size_t i = 0; i < a.strengths().size(); ++i)
        for (std::size_t j = 0; j < b.strengths().size(); ++j)
            if (a.flips(i) + b.flips(j) <= most_flips &&
                a.gain(i) + b.gain(j) > a.gain(best.first) + b.gain(best.second))
                best = {i, j};
    return best;
}

}  // namespace marginmerge
