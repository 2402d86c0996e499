#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

struct PackedRows;

/// The k vectors x_c of a page are moved so that over weighted probes u_t the best response of the
/// vectors comes close to a target, without going far from a start:
///
///   E(x) = sum_t w_t (max_c u_t . x_c - b_t)^2 + (ridge / k) sum_c |x_c - x0_c|^2
struct FitProblem {
    ConstMatrix probes;                 ///< u_t [P,d]
    const PackedRows* lanes = nullptr;  ///< the same packed once, perhaps more of them behind; null: packed here
    std::span<const float> weights;     ///< w_t [P], sum 1
    std::span<const float> targets;     ///< b_t [P]
    ConstMatrix start;                  ///< x0 [k,d]
    ConstMatrix begin;                  ///< [k,d] where the steps set out from; empty: x0
    double ridge = 0.005;
    int rounds = 4;  ///< Gauss-Newton steps
    int inner = 8;   ///< conjugate-gradient steps in each
};

/// Memory of the solver, reused from page to page.
struct FitWorkspace {
    Matrix responses;  ///< G [k,P]
    Matrix change;     ///< response to a step, [k,P]
    Matrix step;       ///< [k,d]
    Matrix packed;     ///< the probes that one vector wins, padded to whole vectors
    Matrix vectors;    ///< scratch rows of one solve
    std::vector<std::int32_t> winner;
    std::vector<std::int32_t> order;  ///< probes by winner
    std::vector<float> residual;
    std::vector<float> packed_weight;    ///< in that order
    std::vector<float> packed_residual;  ///< in that order
    Matrix chosen;                       ///< the probes drawn for a page
    std::vector<float> weights;          ///< of all probes, then of those drawn
    std::vector<float> targets;          ///< of those drawn
};

/// Minimises E by Gauss-Newton: with the winners held fixed the problem falls apart into one ridge
/// regression a vector, solved by conjugate gradients over the probes that vector wins, with the diagonal
/// beside their mean as preconditioner; a step is halved until E falls. x [k,d] receives the result. Returns E.
double fit_vectors(const FitProblem& problem, FitWorkspace& w, MutMatrix x);

}  // namespace marginmerge
