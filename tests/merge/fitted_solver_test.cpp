#include "merge/fitted_solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/products.h"

namespace marginmerge {
namespace {

Matrix random_rows(std::size_t rows, std::size_t d, std::uint64_t seed) {
    Random random(seed);
    Matrix m(rows, d);
    for (float& x : m.flat()) x = static_cast<float>(random.normal() / std::sqrt(static_cast<double>(d)));
    return m;
}

double best_response(const float* u, ConstMatrix x) {
    double best = -1e30;
    for (std::size_t c = 0; c < x.rows; ++c) {
        double s = 0;
        for (std::size_t j = 0; j < x.cols; ++j) s += static_cast<double>(u[j]) * x(c, j);
        best = std::max(best, s);
    }
    return best;
}

double energy(const FitProblem& p, ConstMatrix x) {
    double e = 0;
    for (std::size_t t = 0; t < p.probes.rows; ++t) {
        e += p.weights[t] * std::pow(best_response(p.probes.row(t), x) - p.targets[t], 2);
    }
    double away = 0;
    for (std::size_t i = 0; i < x.size(); ++i) away += std::pow(x.data[i] - p.start.data[i], 2);
    return e + p.ridge / static_cast<double>(x.rows) * away;
}

struct Case {
    Matrix probes, page, start;
    std::vector<float> weights, targets;
    FitProblem problem;
    Case(std::size_t probe_count, std::size_t n, std::size_t k, std::size_t d)
        : probes(random_rows(probe_count, d, 1)), page(random_rows(n, d, 2)), start(random_rows(k, d, 3)) {
        for (std::size_t t = 0; t < probe_count; ++t) {
            weights.push_back(1.0F / static_cast<float>(probe_count));
            targets.push_back(static_cast<float>(best_response(probes.row(t), page)));
        }
        problem.probes = probes;
        problem.weights = weights;
        problem.targets = targets;
        problem.start = start;
    }
};

TEST(FittedSolver, ReturnsTheEnergyOfWhatItReturnsAndLowersIt) {
    for (const std::size_t d : {16U, 17U, 33U, 128U}) {
        for (const std::size_t k : {1U, 3U, 40U}) {
            Case c(333, 60, k, d);
            Matrix x(k, d);
            FitWorkspace w;
            const double before = energy(c.problem, c.start);
            const double after = fit_vectors(c.problem, w, x);
            EXPECT_NEAR(after, energy(c.problem, x), 1e-5 * before) << d << " " << k;
            EXPECT_LT(after, 0.9 * before) << d << " " << k;
        }
    }
}

TEST(FittedSolver, OneVectorIsTheRidgeRegression) {
    // With k = 1 the problem is linear: the gradient must vanish after enough inner steps.
    Case c(200, 20, 1, 24);
    c.problem.inner = 60;
    c.problem.ridge = 0.1;
    Matrix x(1, 24);
    FitWorkspace w;
    fit_vectors(c.problem, w, x);
    for (std::size_t j = 0; j < 24; ++j) {
        double gradient = c.problem.ridge * (x(0, j) - c.start(0, j));
        for (std::size_t t = 0; t < 200; ++t) {
            gradient += c.weights[t] * (best_response(c.probes.row(t), x) - c.targets[t]) * c.probes(t, j);
        }
        EXPECT_NEAR(gradient, 0, 2e-5) << j;
    }
}

TEST(FittedSolver, AStrongRidgeKeepsTheStartAndNoProbesKeepItExactly) {
    Case c(100, 30, 5, 32);
    c.problem.ridge = 1e6;
    Matrix x(5, 32);
    FitWorkspace w;
    fit_vectors(c.problem, w, x);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x.data()[i], c.start.data()[i], 1e-4);
    FitProblem none;
    none.start = c.start;
    fit_vectors(none, w, x);
    EXPECT_TRUE(std::equal(x.flat().begin(), x.flat().end(), c.start.flat().begin()));
}

TEST(FittedSolver, GoesOnFromWhereItIsToldAndIsStillHeldNearTheStart) {
    Case c(300, 40, 4, 32);
    c.problem.ridge = 0.05;
    Matrix once(4, 32), again(4, 32);
    FitWorkspace w;
    const double before = fit_vectors(c.problem, w, once);
    c.problem.begin = once;
    const double after = fit_vectors(c.problem, w, again);
    EXPECT_LE(after, before + 1e-9);
    EXPECT_NEAR(after, energy(c.problem, again), 1e-5 * energy(c.problem, c.start));
    // No steps left: what it began with, at the energy that has.
    c.problem.rounds = 0;
    Matrix same(4, 32);
    EXPECT_NEAR(fit_vectors(c.problem, w, same), before, 1e-6 * before);
    EXPECT_TRUE(std::equal(same.flat().begin(), same.flat().end(), once.flat().begin()));
}

TEST(FittedSolver, ProbesPackedOnceGiveTheSame) {
    // The packed ones may be more: a short fit sees the first of them.
    for (const std::size_t used : {500U, 333U, 48U, 1U}) {
        Case c(500, 40, 5, 40);
        c.problem.probes = c.probes.view().middle_rows(0, used);
        c.problem.weights = c.problem.weights.first(used);
        c.problem.targets = c.problem.targets.first(used);
        Matrix plain(5, 40), packed(5, 40);
        FitWorkspace w;
        fit_vectors(c.problem, w, plain);
        const PackedRows lanes(c.probes);
        c.problem.lanes = &lanes;
        fit_vectors(c.problem, w, packed);
        EXPECT_TRUE(std::equal(plain.flat().begin(), plain.flat().end(), packed.flat().begin())) << used;
    }
}

TEST(FittedSolver, FewStepsComeFarWhereProbesLieAroundTheirMean) {
    // Tokens of one cell share a direction that is many times as strong as all others together.
    Case c(400, 20, 1, 64);
    for (std::size_t t = 0; t < 400; ++t) {
        for (std::size_t j = 0; j < 64; ++j) c.probes(t, j) = 0.3F * c.probes(t, j) + (j < 8 ? 0.35F : 0.0F);
        c.targets[t] = static_cast<float>(best_response(c.probes.row(t), c.page));
    }
    c.problem.ridge = 1e-3;
    c.problem.rounds = 1;
    FitWorkspace w;
    Matrix x(1, 64);
    c.problem.inner = 60;
    const double least = fit_vectors(c.problem, w, x);
    c.problem.inner = 3;
    EXPECT_LT(fit_vectors(c.problem, w, x), 1.25 * least);
}

TEST(FittedSolver, WorkspaceLeavesNoTrace) {
    Case big(500, 60, 20, 64), small(90, 20, 4, 32);
    FitWorkspace used, fresh;
    Matrix x(20, 64), a(4, 32), b(4, 32);
    fit_vectors(big.problem, used, x);
    fit_vectors(small.problem, used, a);
    fit_vectors(small.problem, fresh, b);
    EXPECT_TRUE(std::equal(a.flat().begin(), a.flat().end(), b.flat().begin()));
}

}  // namespace
}  // namespace marginmerge
