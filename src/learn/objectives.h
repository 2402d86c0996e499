#pragma once

#include <span>
#include <string>
#include <vector>

#include "learn/page_pass.h"

namespace marginmerge {

/// What training minimises, with the paper's coefficients. Each term is switched off by a zero.
struct Objective {
    double margin = 1;              ///< lambda_m
    double rank = 0.5;              ///< lambda_r
    double list = 0.5;              ///< lambda_l
    double weight = 1e-3;           ///< lambda_w
    double entropy = 0.01;          ///< lambda_e
    double anchor = 0.01;           ///< lambda_a
    double score = 0;               ///< score reconstruction: Huber of each score's error
    bool boundary_weights = true;   ///< nu_j from the full margins; false: 1/N
    double margin_temperature = 2;  ///< T_m
    double huber = 0.5;             ///< delta
    double hinge = 0.2;             ///< gamma
};

/// `full` (the paper's), `margin`, `score`, and the ablations `no_listwise`, `no_boundary`, `no_rank`.
Objective objective_named(const std::string& name);
std::vector<std::string> objective_names();

/// The loss of one query, term by term, before coefficients; `total` with them.
struct LossTerms {
    double margin = 0, rank = 0, list = 0, score = 0, weight = 0, entropy = 0, anchor = 0, total = 0;
    LossTerms& operator+=(const LossTerms& other);
    LossTerms scaled(double factor) const;
};

/// The terms that look at scores. `full` and `compressed` hold the positives first, then the
/// negatives; `positive_weight` [positives] sums to 1 (one positive: the paper's loss; several:
/// each against every negative, averaged with these weights). d_compressed receives the gradient.
LossTerms score_loss(const Objective& objective, std::span<const double> full, std::span<const double> compressed,
                     std::span<const double> positive_weight, std::span<double> d_compressed);

/// One query with its documents, for training: positives first.
struct TrainingExample {
    const PreparedQuery* query = nullptr;
    std::vector<const TrainingPage*> pages;
    std::vector<double> full_scores;      ///< as many as pages
    std::vector<double> positive_weight;  ///< as many as positives, sum 1
};

/// Loss and gradient of some examples, each a task of its own, or several where there are more
/// threads; gradients are added in the order of examples and pages, so the result does not depend
/// on the number of threads.
class BatchPass {
public:
    /// Adds dL/dtheta, each example's divided by `divisor`, to `gradient`; returns each one's loss.
    std::vector<LossTerms> run(const Objective& objective, const Parameters& parameters, double clip,
                               std::span<const TrainingExample> examples, double divisor, std::size_t threads,
                               Gradient& gradient);

private:
    std::vector<PagePass> passes_;     ///< of one example for every thread
    std::vector<Gradient> gradients_;  ///< of every page
};

}  // namespace marginmerge
