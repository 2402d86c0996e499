#include "learn/alignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/parallel.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr int most_halvings = 40;  // of a step, at most

// What is learned: the change, transposed, and the power of the length.
struct Point {
    Matrix change;
    double power = 0;
};

Matrix transpose_of(ConstMatrix m) {
    Matrix out(m.cols, m.rows);
    for (std::size_t i = 0; i < m.rows; ++i)
        for (std::size_t j = 0; j < m.cols; ++j) out(j, i) = m(i, j);
    return out;
}

// Where momentum leads: `to`, and on by a part of the way from `from`.
Point beyond(const Point& from, const Point& to, double part) {
    Point out{to.change, to.power + part * (to.power - from.power)};
    for (std::size_t i = 0; i < out.change.size(); ++i)
        out.change.data()[i] += static_cast<float>(part) * (to.change.data()[i] - from.change.data()[i]);
    return out;
}

// What the change (transposed) adds to each page's score: the sum over tokens of (token change) . answer.
std::vector<double> added_scores(const JudgedQuery& query, const PackedRows& change) {
    std::vector<double> added(query.pages(), 0.0);
    if (change.rows == 0) return added;
    const std::size_t t = query.tokens.rows();
    Matrix moved(t, change.rows);
    product(query.tokens, change, moved);
    std::vector<float> each(query.pages() * t);
    dot_clusters(query.answers_view(), token_of_answers(query), moved, each);
    for (std::size_t i = 0; i < each.size(); ++i) added[i / t] += each[i];
    return added;
}

// Half the variance of what the other pages' scores moved by, in temperatures; what all share changes no ranking.
double movement(const JudgedQuery& query, std::span<const double> scores, double temperature, double weight,
                std::span<double> slope) {
    const auto n = static_cast<double>(query.pages() - query.contested);
    double mean = 0, sum = 0;
    for (std::size_t i = query.contested; i < query.pages(); ++i) mean += (scores[i] - query.scores[i]) / n;
    for (std::size_t i = query.contested; i < query.pages(); ++i) {
        const double moved = (scores[i] - query.scores[i] - mean) / temperature;
        sum += 0.5 * weight * moved * moved / n;
        slope[i] += weight * moved / (n * temperature);
    }
    return sum;
}

// One effect for each share of what an alignment adds to the scores.
std::vector<RankingEffect> judge_query(const JudgedQuery& query, std::span<const double> added, double length_power,
                                       std::span<const double> shares, double temperature) {
    std::vector<RankingEffect> effects;
    for (const double share : shares) {
        std::vector<double> scores(query.pages());
        for (std::size_t i = 0; i < scores.size(); ++i)
            scores[i] = (query.scores[i] + share * added[i]) * std::exp(share * length_power * query.lengths[i]);
        effects.push_back(ranking_effect(query, scores, temperature));
    }
    return effects;
}

class AlignmentObjective {
public:
    AlignmentObjective(std::span<const JudgedQuery* const> queries, const AlignmentSettings& settings)
        : queries_(queries),
          settings_(settings),
          temperature_(settings.temperature * score_spread(queries)),
          tokens_(ConstMatrix()) {
        for (const JudgedQuery* q : queries) {
            first_.push_back(token_count_);
            token_count_ += q->tokens.rows();
        }
        if (!settings.change) return;
        Matrix by_dimension(queries.front()->tokens.cols(), token_count_);
        for (std::size_t q = 0; q < queries.size(); ++q) put_columns(queries[q]->tokens, first_[q], by_dimension);
        tokens_ = PackedRows(by_dimension);
    }

    Point start() const { return {Matrix(tokens_.rows, tokens_.rows), 0}; }

    // The value, and the gradient where one is asked for. Sums run over queries in their order on any number of
    // threads.
    double operator()(const Point& at, Point* gradient) const {
        const std::size_t d = tokens_.rows;
        Matrix pulled(gradient != nullptr ? d : 0, token_count_);  // by each token: sum of slope x answer
        std::vector<double> losses(queries_.size()), powers(queries_.size());
        const PackedRows change(at.change);
        parallel_for(queries_.size(), settings_.threads, [&](std::size_t q) {
            const JudgedQuery& query = *queries_[q];
            std::vector<double> scores = added_scores(query, change), slope(query.pages(), 0.0);
            for (std::size_t i = 0; i < scores.size(); ++i)
                scores[i] += query.scores[i] * (1 + at.power * query.lengths[i]);
            losses[q] = listwise(query, scores, temperature_, slope) +
                        movement(query, scores, temperature_, settings_.hold, slope);
            if (gradient == nullptr) return;
            for (std::size_t i = 0; i < slope.size(); ++i) powers[q] += slope[i] * query.scores[i] * query.lengths[i];
            if (d > 0) put_columns(pull(query, slope), first_[q], pulled);
        });
        const auto count = static_cast<double>(queries_.size());
        const double length_ridge = settings_.ridge / settings_.length_freedom;
        double square = 0;
        for (const float x : at.change.flat()) square += static_cast<double>(x) * x;
        const double value = std::accumulate(losses.begin(), losses.end(), 0.0) / count +
                             0.5 * (settings_.ridge * square + length_ridge * at.power * at.power);
        if (gradient == nullptr) return value;
        gradient->power = std::accumulate(powers.begin(), powers.end(), 0.0) / count + length_ridge * at.power;
        gradient->change.reshape(d, d);
        constexpr std::size_t block = 32;
        parallel_for((d + block - 1) / block, settings_.threads, [&](std::size_t b) {
            const std::size_t first = b * block, rows = std::min(block, d - first);
            const MutMatrix out = gradient->change.view().middle_rows(first, rows);
            product(pulled.view().middle_rows(first, rows), tokens_, out);
            for (std::size_t i = 0; i < out.size(); ++i)
                out.data[i] =
                    static_cast<float>(out.data[i] / count + settings_.ridge * at.change.data()[first * d + i]);
        });
        return value;
    }

    // A step against the gradient; the power of the length moves in a scale of its own.
    Point step(const Point& at, const Point& gradient, double length) const {
        Point out{at.change, at.power - length * settings_.length_freedom * gradient.power};
        for (std::size_t i = 0; i < out.change.size(); ++i)
            out.change.data()[i] -= static_cast<float>(length) * gradient.change.data()[i];
        return out;
    }

    double square(const Point& gradient) const {
        double sum = settings_.length_freedom * gradient.power * gradient.power;
        for (const float x : gradient.change.flat()) sum += static_cast<double>(x) * x;
        return sum;
    }

private:
    static void put_columns(const Matrix& rows, std::size_t first, Matrix& out) {
        for (std::size_t i = 0; i < rows.rows(); ++i)
            for (std::size_t j = 0; j < rows.cols(); ++j) out(j, first + i) = rows(i, j);
    }

    static Matrix pull(const JudgedQuery& query, std::span<const double> slope) {
        const std::size_t t = query.tokens.rows();
        std::vector<float> weight(slope.size() * t);
        for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(slope[i / t]);
        Matrix sums(t, query.tokens.cols());
        add_to_clusters(query.answers_view(), token_of_answers(query), weight, sums);
        return sums;
    }

    std::span<const JudgedQuery* const> queries_;
    AlignmentSettings settings_;
    double temperature_;
    std::size_t token_count_ = 0;
    std::vector<std::size_t> first_;  // token of each query among those of all
    PackedRows tokens_;               // [d, tokens], empty when only the length counts
};

}  // namespace

// Accelerated gradient steps; their length is halved until the objective falls as far as it must.
Alignment learn_alignment(std::span<const JudgedQuery* const> queries, const AlignmentSettings& settings) {
    const AlignmentObjective objective(queries, settings);
    Point at = objective.start(), ahead = at, gradient;
    double inertia = 1, length = 1 / settings.ridge;
    for (std::size_t s = 0; s < settings.steps; ++s) {
        const double value = objective(ahead, &gradient), square = objective.square(gradient);
        Point next = objective.step(ahead, gradient, length);
        for (int h = 0; h < most_halvings && !(objective(next, nullptr) <= value - 0.5 * length * square); ++h) {
            length /= 2;
            next = objective.step(ahead, gradient, length);
        }
        const double more = (1 + std::sqrt(1 + 4 * inertia * inertia)) / 2;
        ahead = beyond(at, next, (inertia - 1) / more);
        at = std::move(next);
        inertia = more;
    }
    Alignment out;
    out.change = transpose_of(at.change);
    out.length_power = static_cast<float>(at.power);
    return out;
}

Alignment share_of(const Alignment& alignment, double share) {
    Alignment out = alignment;
    for (float& x : out.change.flat()) x *= static_cast<float>(share);
    out.length_power *= static_cast<float>(share);
    return out;
}

std::vector<std::vector<RankingEffect>> judge_alignment(std::span<const JudgedQuery* const> queries,
                                                        const Alignment& alignment, std::span<const double> shares,
                                                        double temperature, std::size_t threads) {
    const PackedRows change(transpose_of(alignment.change));
    std::vector<std::vector<RankingEffect>> effects(queries.size());
    parallel_for(queries.size(), threads, [&](std::size_t q) {
        effects[q] =
            judge_query(*queries[q], added_scores(*queries[q], change), alignment.length_power, shares, temperature);
    });
    return effects;
}

}  // namespace marginmerge
