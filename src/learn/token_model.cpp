#include "learn/token_model.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/parallel.h"
#include "core/random.h"
#include "kernels/products.h"
#include "learn/symmetric.h"
#include "select/draw.h"

namespace marginmerge {

namespace {

constexpr double shrinkage = 1e-3;  // of the mean eigenvalue, added to every covariance

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

// Numbers of `count` pairs out of `all`, in a fixed random order.
std::vector<std::size_t> choose_pairs(std::size_t all, std::size_t count, std::uint64_t seed) {
    std::vector<std::size_t> order(all);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(seed);
    random.shuffle(std::span(order));
    order.resize(std::min(all, count));
    return order;
}

// The chosen rows, unit norm.
Matrix unit_rows(ConstMatrix rows, std::span<const std::size_t> chosen) {
    Matrix out(chosen.size(), rows.cols);
    for (std::size_t i = 0; i < chosen.size(); ++i) std::copy_n(rows.row(chosen[i]), rows.cols, out.row(i));
    normalise_rows(out);
    return out;
}

// v becomes c v + sqrt(1 - c^2) e: c the cosine of token and answer, e the token's part beside the answer, turned
// beside v.
void ask_as(const float* token, const float* answer, std::size_t d, float* v) {
    const float cosine = std::clamp(dot(token, answer, d), -1.0F, 1.0F);
    std::vector<float> beside(d);
    for (std::size_t j = 0; j < d; ++j) beside[j] = token[j] - cosine * answer[j];
    const float along = dot(beside.data(), v, d);
    for (std::size_t j = 0; j < d; ++j) beside[j] -= along * v[j];
    const float length = std::sqrt(dot(beside.data(), beside.data(), d));
    const float aside = length > 1e-6F ? std::sqrt(1 - cosine * cosine) / length : 0;
    for (std::size_t j = 0; j < d; ++j) v[j] = cosine * v[j] + aside * beside[j];
}

}  // namespace

Matrix ask_by_example(ConstMatrix vectors, ConstMatrix tokens, ConstMatrix answers, const ExampleOptions& options) {
    constexpr std::size_t block = 64;
    const std::size_t d = vectors.cols;
    const auto pairs = choose_pairs(answers.rows, options.examples, mix_seed(options.seed, 0));
    const Matrix asking = unit_rows(tokens, pairs), answering = unit_rows(answers, pairs);
    Matrix asked(vectors.rows, d);
    std::copy_n(vectors.data, asked.size(), asked.data());
    normalise_rows(asked);
    const auto likeness = static_cast<float>(options.likeness);
    parallel_for((vectors.rows + block - 1) / block, options.threads, [&](std::size_t b) {
        const std::size_t first = b * block, count = std::min(block, vectors.rows - first);
        Matrix chance(count, pairs.size());
        product(asked.view().middle_rows(first, count), answering, chance);
        for (float& x : chance.flat()) x = std::exp(likeness * x);
        for (std::size_t i = 0; i < count; ++i) {
            Random random(mix_seed(options.seed, 1 + first + i));
            const std::size_t pair = draw_in_proportion(chance.view().row_span(i), random);
            ask_as(asking.row(pair), answering.row(pair), d, asked.row(first + i));
        }
    });
    normalise_rows(asked);
    return asked;
}

Matrix ask_by_transport(ConstMatrix vectors, ConstMatrix corpus, ConstMatrix tokens, std::span<const double> weights) {
    const Dense all = to_dense(corpus), queries = to_dense(tokens);
    const Gaussian from =
        gaussian_of(all, Eigen::VectorXd::Constant(all.rows(), 1.0 / static_cast<double>(all.rows())));
    const Gaussian to = gaussian_of(queries, Eigen::Map<const Eigen::VectorXd>(weights.data(), queries.rows()));
    const Dense half = symmetric_function(from.covariance, root);
    const Dense inverse =
        symmetric_function(from.covariance, [](double x) { return 1 / std::sqrt(std::max(x, 1e-12)); });
    const Dense map = inverse * symmetric_function(half * to.covariance * half, root) * inverse;
    Matrix out = to_matrix(Dense(((to_dense(vectors).rowwise() - from.mean) * map).rowwise() + to.mean));
    normalise_rows(out);
    return out;
}

}  // namespace marginmerge
