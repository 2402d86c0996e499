#include "lab/logistic.h"

#include <Eigen/Dense>
#include <cmath>

namespace marginmerge::lab {

double LinearScore::operator()(std::span<const float> x) const {
    double sum = bias;
    for (std::size_t j = 0; j < weight.size(); ++j) sum += weight[j] * (x[j] - mean[j]) / deviation[j];
    return sum;
}

LinearScore standardised(ConstMatrix x) {
    LinearScore score;
    const std::size_t d = x.cols;
    score.mean.assign(d, 0);
    score.deviation.assign(d, 0);
    score.weight.assign(d, 0);
    const double n = static_cast<double>(std::max<std::size_t>(x.rows, 1));
    for (std::size_t i = 0; i < x.rows; ++i)
        for (std::size_t j = 0; j < d; ++j) score.mean[j] += x(i, j) / n;
    for (std::size_t i = 0; i < x.rows; ++i)
        for (std::size_t j = 0; j < d; ++j)
            score.deviation[j] += (x(i, j) - score.mean[j]) * (x(i, j) - score.mean[j]) / n;
    for (double& s : score.deviation) s = s > 1e-12 ? std::sqrt(s) : 1;
    return score;
}

LinearScore fit_logistic(ConstMatrix x, std::span<const float> labels, const LogisticOptions& options) {
    LinearScore score = standardised(x);
    const auto n = static_cast<Eigen::Index>(x.rows), d = static_cast<Eigen::Index>(x.cols);
    Eigen::MatrixXd a(n, d + 1);
    double positives = 0;
    for (Eigen::Index i = 0; i < n; ++i) {
        const auto row = static_cast<std::size_t>(i);
        for (Eigen::Index j = 0; j < d; ++j) {
            const auto c = static_cast<std::size_t>(j);
            a(i, j) = (x(row, c) - score.mean[c]) / score.deviation[c];
        }
        a(i, d) = 1;
        positives += labels[row];
    }
    const double rows = static_cast<double>(n), negatives = rows - positives;
    if (positives == 0 || negatives == 0) return score;
    const double weight_of[2] = {rows / (2 * negatives), rows / (2 * positives)};
    Eigen::VectorXd penalty = Eigen::VectorXd::Constant(d + 1, options.penalty);
    penalty(d) = 0;
    // Objective in beta: sum_i c_i log(1 + exp(-y_i z_i)) + penalty/2 |w|^2.
    const auto objective = [&](const Eigen::VectorXd& beta) {
        const Eigen::VectorXd z = a * beta;
        double sum = 0;
        for (Eigen::Index i = 0; i < n; ++i) {
            const bool one = labels[static_cast<std::size_t>(i)] > 0.5f;
            const double t = one ? -z(i) : z(i);
            sum += weight_of[one] * (t > 0 ? t + std::log1p(std::exp(-t)) : std::log1p(std::exp(t)));
        }
        return sum + 0.5 * (penalty.array() * beta.array().square()).sum();
    };
    Eigen::VectorXd beta = Eigen::VectorXd::Zero(d + 1);
    double value = objective(beta);
    for (std::size_t step = 0; step < options.steps; ++step) {
        const Eigen::VectorXd z = a * beta;
        Eigen::VectorXd residual(n), curvature(n);
        for (Eigen::Index i = 0; i < n; ++i) {
            const bool one = labels[static_cast<std::size_t>(i)] > 0.5f;
            const double p = 1 / (1 + std::exp(-z(i)));
            residual(i) = weight_of[one] * (p - (one ? 1.0 : 0.0));
            curvature(i) = weight_of[one] * p * (1 - p);
        }
        const Eigen::VectorXd gradient = a.transpose() * residual + penalty.cwiseProduct(beta);
        if (gradient.cwiseAbs().maxCoeff() <= options.tolerance * rows) break;
        Eigen::MatrixXd hessian = a.transpose() * curvature.asDiagonal() * a;
        hessian.diagonal() += penalty;
        hessian.diagonal().array() += 1e-9;
        const Eigen::VectorXd direction = hessian.llt().solve(gradient);
        double scale = 1;
        for (int halving = 0; halving < 20; ++halving, scale /= 2) {
            const double next = objective(beta - scale * direction);
            if (next < value) {
                value = next;
                break;
            }
        }
        beta -= scale * direction;
    }
    for (Eigen::Index j = 0; j < d; ++j) score.weight[static_cast<std::size_t>(j)] = beta(j);
    score.bias = beta(d);
    return score;
}

}  // namespace marginmerge::lab
