#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/dataset.h"
#include "lab/logistic.h"

namespace marginmerge::lab {

/// How soft gates over patches are trained (supplement, pruning diagnostics): a gate g_i = sigmoid(w.x_i + b) scales
/// what patch i may answer, s(q,d) = sum_t max_i g_i (1 + u_t.v_i) / 2, and the relevant page must stay above its hard
/// negatives while gates stay open on a share `keep` of the page.
struct GateOptions {
    double keep = 0.1;
    double budget = 20;         ///< weight of (mean gate - keep)^2
    std::size_t negatives = 4;  ///< the best non-relevant pages of each query
    std::size_t queries = 60;   ///< training queries, at most
    std::size_t steps = 150;
    std::size_t batch = 8;        ///< queries a step
    double learning_rate = 0.05;  ///< Adam
    double clip = 1;              ///< of the gradient's norm
    std::uint64_t seed = 42;
    std::size_t threads = 0;
};

/// One page as a gated query sees it.
struct GatedPage {
    const Matrix* inputs = nullptr;  ///< standardised, [n, inputs]
    Matrix answers;                  ///< (1 + u_t.v_i) / 2, [tokens, n]
};

/// The loss of one query, mean_j softplus(s_j - s_positive) + budget * mean over pages of (mean gate - keep)^2, and its
/// gradient, added to `gradient` [inputs + 1] (the bias last). pages: the positive first.
double gate_loss(std::span<const GatedPage> pages, std::span<const double> parameters, double keep, double budget,
                 std::span<double> gradient);

/// Trained gates as a score of patches; `inputs_of` says what a gate looks at.
LinearScore fit_gates(const Dataset& data, const GateOptions& options,
                      const std::function<Matrix(ConstMatrix page)>& inputs_of);

}  // namespace marginmerge::lab
