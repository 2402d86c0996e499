#include "learn/token_model.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr double shrinkage = 1e-3;         // of the mean eigenvalue, added to every covariance
constexpr double regression_ridge = 0.02;  // x pairs / d

struct Gaussian {
    Eigen::RowVectorXd mean;
    Dense covariance;
};

Gaussian gaussian_of(const Dense& rows, const Eigen::VectorXd& weights) {
    Gaussian g;
    g.mean = weights.transpose() * rows;
    const Dense centred = rows.rowwise() - g.mean;
    g.covariance = centred.transpose() * weights.asDiagonal() * centred;
    g.covariance.diagonal().array() +=
        shrinkage * std::max(1e-12, g.covariance.trace()) / static_cast<double>(rows.cols());
    return g;
}

double root(double x) { return std::sqrt(std::max(x, 0.0)); }

}  // namespace

Matrix TokenModel::carry(ConstMatrix vectors, std::uint64_t seed) const {
    Dense moved = ((to_dense(vectors).rowwise() - origin) * map).rowwise() + mean;
    if (noise.size() > 0) {
        Random random(seed);
        Dense z(moved.rows(), moved.cols());
        for (Eigen::Index i = 0; i < z.rows(); ++i) {
            for (Eigen::Index j = 0; j < z.cols(); ++j) z(i, j) = random.normal();
        }
        moved.noalias() += z * noise;
    }
    Matrix out = to_matrix(moved);
    normalise_rows(out);
    return out;
}

TokenModel transport_model(ConstMatrix vectors, ConstMatrix tokens, std::span<const double> weights) {
    const Dense corpus = to_dense(vectors), queries = to_dense(tokens);
    const Gaussian from =
        gaussian_of(corpus, Eigen::VectorXd::Constant(corpus.rows(), 1.0 / static_cast<double>(corpus.rows())));
    const Gaussian to = gaussian_of(queries, Eigen::Map<const Eigen::VectorXd>(weights.data(), queries.rows()));
    const Dense half = symmetric_function(from.covariance, root);
    const Dense inverse =
        symmetric_function(from.covariance, [](double x) { return 1 / std::sqrt(std::max(x, 1e-12)); });
    return {from.mean, to.mean, inverse * symmetric_function(half * to.covariance * half, root) * inverse, {}};
}

TokenModel answer_model(ConstMatrix answers, ConstMatrix tokens) {
    const Dense v = to_dense(answers), u = to_dense(tokens);
    const auto pairs = static_cast<double>(v.rows()), d = static_cast<double>(v.cols());
    TokenModel model;
    model.origin = v.colwise().mean();
    model.mean = u.colwise().mean();
    const Dense from = v.rowwise() - model.origin, to = u.rowwise() - model.mean;
    Dense normal = from.transpose() * from;
    normal.diagonal().array() += regression_ridge * pairs / d;
    model.map = normal.ldlt().solve(from.transpose() * to);
    const Dense rest = to - from * model.map;
    model.noise = symmetric_function(rest.transpose() * rest / pairs, root);
    return model;
}

}  // namespace marginmerge
