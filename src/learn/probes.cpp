#include "learn/probes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "learn/token_model.h"

namespace marginmerge {

namespace {

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

ProbeSet make_probes(const QueryTokens& queries, const MultiVectorSet& documents,
                     std::span<const std::size_t> positions, const ProbeOptions& options) {
    ProbeSet probes;
    if (positions.empty()) return probes;
    const std::size_t d = documents.dim();
    if (queries.tokens.rows() == 0) {
        const std::size_t count = options.tokens + options.mapped;
        probes.tokens = pooled_corpus(documents, positions, count, mix_seed(options.seed, 2));
        probes.weights.assign(count, static_cast<float>(1.0 / static_cast<double>(count)));
        return probes;
    }
    const WeightedTokens own = distinct_tokens(queries.tokens, options);
    const std::size_t mapped = options.mapped;
    const Matrix sample =
        sample_corpus(documents, positions, std::max(options.sample, mapped), mix_seed(options.seed, 2));
    const ConstMatrix carried = sample.view().middle_rows(0, mapped);
    const ExampleOptions examples{.seed = mix_seed(options.seed, 4), .threads = options.threads};
    const Matrix moved = queries.answers.rows() >= options.least_answers
                             ? ask_by_example(carried, queries.answered, queries.answers, examples)
                             : ask_by_transport(carried, sample, own.tokens, own.weights);

    std::vector<std::size_t> order(own.tokens.rows() + mapped);
    std::iota(order.begin(), order.end(), std::size_t{0});
    Random random(mix_seed(options.seed, 3));
    random.shuffle(std::span(order));
    probes.tokens = Matrix(order.size(), d);
    probes.weights.resize(order.size());
    const double share = mapped > 0 ? options.mapped_share : 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const bool is_own = order[i] < own.tokens.rows();
        const std::size_t at = is_own ? order[i] : order[i] - own.tokens.rows();
        std::copy_n(is_own ? own.tokens.row(at) : moved.row(at), d, probes.tokens.row(i));
        probes.weights[i] =
            static_cast<float>(is_own ? (1 - share) * own.weights[at] : share / static_cast<double>(mapped));
    }
    return probes;
}

}  // namespace marginmerge
