#include "learn/probes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "learn/symmetric.h"

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

// Corpus vectors drawn with equal chance for every document, then for every vector of it.
Matrix sample_corpus(const MultiVectorSet& documents, std::span<const std::size_t> positions, std::size_t count,
                     std::uint64_t seed) {
    Matrix sample(count, documents.dim());
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t document = positions[random.below(positions.size())];
        to_float(documents.vectors(document).middle_rows(random.below(documents.vectors_of(document)), 1),
                 sample.row(i));
    }
    return sample;
}

// What a query might say about a page: the unit mean of one to seven of its vectors that lie close together.
Matrix pooled_corpus(const MultiVectorSet& documents, std::span<const std::size_t> positions, std::size_t count,
                     std::uint64_t seed) {
    constexpr std::size_t most = 7;
    const std::size_t d = documents.dim();
    Matrix pooled(count, d);
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) {
        const Matrix v = to_float(documents.vectors(positions[random.below(positions.size())]));
        const float* centre = v.row(random.below(v.rows()));
        const std::size_t members = std::min<std::size_t>(1 + random.below(most), v.rows());
        std::vector<std::pair<float, std::size_t>> near(v.rows());
        for (std::size_t j = 0; j < v.rows(); ++j) near[j] = {-dot(centre, v.row(j), d), j};
        std::partial_sort(near.begin(), near.begin() + static_cast<std::ptrdiff_t>(members), near.end());
        for (std::size_t m = 0; m < members; ++m) {
            for (std::size_t j = 0; j < d; ++j) pooled(i, j) += v(near[m].second, j);
        }
    }
    normalise_rows(pooled);
    return pooled;
}

struct WeightedTokens {
    Matrix tokens;
    std::vector<double> weights;
};

// Joins tokens that are nearly the same, which then weigh what they stand for, and keeps a random sample
// when there are still too many.
WeightedTokens distinct_tokens(ConstMatrix queries, const ProbeOptions& options) {
    const std::size_t n = queries.rows, d = queries.cols;
    const std::vector<double> weight(n, 1.0 / static_cast<double>(n));
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(mix_seed(options.seed, 1));
    std::vector<double> key(n);
    for (double& x : key) x = random.uniform();
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key[a] > key[b]; });
    std::vector<std::size_t> kept;
    std::vector<double> kept_weight;
    const std::size_t looked_at = std::min(n, 4 * options.tokens);
    for (std::size_t i = 0; i < looked_at && kept.size() < options.tokens; ++i) {
        const float* token = queries.row(order[i]);
        bool joined = false;
        for (std::size_t j = 0; j < kept.size() && !joined; ++j) {
            if (dot(token, queries.row(kept[j]), d) > options.same) {
                kept_weight[j] += weight[order[i]];
                joined = true;
            }
        }
        if (!joined) {
            kept.push_back(order[i]);
            kept_weight.push_back(weight[order[i]]);
        }
    }
    WeightedTokens out{Matrix(kept.size(), d), std::move(kept_weight)};
    for (std::size_t i = 0; i < kept.size(); ++i) std::copy_n(queries.row(kept[i]), d, out.tokens.row(i));
    const double sum = std::accumulate(out.weights.begin(), out.weights.end(), 0.0);
    for (double& w : out.weights) w /= sum;
    return out;
}

}  // namespace

ProbeSet make_probes(ConstMatrix queries, const MultiVectorSet& documents, std::span<const std::size_t> positions,
                     const ProbeOptions& options) {
    ProbeSet probes;
    if (positions.empty()) return probes;
    if (queries.rows == 0) {
        probes.tokens = pooled_corpus(documents, positions, options.tokens, mix_seed(options.seed, 2));
        probes.weights.assign(options.tokens, static_cast<float>(1.0 / static_cast<double>(options.tokens)));
        return probes;
    }
    const WeightedTokens own = distinct_tokens(queries, options);
    const std::size_t d = documents.dim(), mapped = options.mapped;
    const Matrix sample =
        sample_corpus(documents, positions, std::max(options.sample, mapped), mix_seed(options.seed, 2));
    const Dense corpus = to_dense(sample), tokens = to_dense(own.tokens);
    const Gaussian from =
        gaussian_of(corpus, Eigen::VectorXd::Constant(corpus.rows(), 1.0 / static_cast<double>(corpus.rows())));
    const Gaussian to = gaussian_of(tokens, Eigen::Map<const Eigen::VectorXd>(own.weights.data(), tokens.rows()));
    const auto root = [](double x) { return std::sqrt(std::max(x, 0.0)); };
    const Dense half = symmetric_function(from.covariance, root);
    const Dense inverse =
        symmetric_function(from.covariance, [](double x) { return 1 / std::sqrt(std::max(x, 1e-12)); });
    const Dense map = inverse * symmetric_function(half * to.covariance * half, root) * inverse;
    const Dense moved =
        ((corpus.topRows(static_cast<Eigen::Index>(mapped)).rowwise() - from.mean) * map).rowwise() + to.mean;
    const Matrix moved_rows = to_matrix(moved);

    std::vector<std::size_t> order(own.tokens.rows() + mapped);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(mix_seed(options.seed, 3));
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    probes.tokens = Matrix(order.size(), d);
    probes.weights.resize(order.size());
    const double share = mapped > 0 ? options.mapped_share : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const bool is_own = order[i] < own.tokens.rows();
        const std::size_t at = is_own ? order[i] : order[i] - own.tokens.rows();
        std::copy_n(is_own ? own.tokens.row(at) : moved_rows.row(at), d, probes.tokens.row(i));
        probes.weights[i] =
            static_cast<float>(is_own ? (1 - share) * own.weights[at] : share / static_cast<double>(mapped));
        if (!is_own) normalise_rows(MutMatrix{probes.tokens.row(i), 1, d});
    }
    return probes;
}

}  // namespace marginmerge
