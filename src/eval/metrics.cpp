#include "marginmerge/eval/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace marginmerge {

namespace {

float comparable(float score) { return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score; }

double discounted_gain(int grade, std::size_t rank) {
    return (std::exp2(grade) - 1) / std::log2(static_cast<double>(rank) + 2);
}

int grade_of(const Relevance& r, std::size_t position) {
    const auto found = std::lower_bound(r.positions.begin(), r.positions.end(), position);
    if (found == r.positions.end() || *found != position) return 0;
    return r.grades[static_cast<std::size_t>(found - r.positions.begin())];
}

}  // namespace

std::vector<std::size_t> rank_pages(std::span<const float> scores, std::size_t count) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    count = std::min(count, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                      [&](std::size_t a, std::size_t b) {
                          const float x = comparable(scores[a]), y = comparable(scores[b]);
                          return x != y ? x > y : a < b;
                      });
    order.resize(count);
    return order;
}

double ndcg(std::span<const std::size_t> ranking, const Relevance& relevance, std::size_t k) {
    std::vector<int> ideal = relevance.all_grades;
    std::sort(ideal.rbegin(), ideal.rend());
    double best = 0, sum = 0;
    for (std::size_t r = 0; r < std::min(k, ideal.size()); ++r) best += discounted_gain(ideal[r], r);
    for (std::size_t r = 0; r < std::min(k, ranking.size()); ++r)
        sum += discounted_gain(grade_of(relevance, ranking[r]), r);
    return best > 0 ? sum / best : 0;
}

double recall(std::span<const std::size_t> ranking, const Relevance& relevance, std::size_t k) {
    if (relevance.empty()) return 0;
    std::size_t found = 0;
    for (std::size_t r = 0; r < std::min(k, ranking.size()); ++r) found += grade_of(relevance, ranking[r]) > 0;
    return static_cast<double>(found) / static_cast<double>(relevance.all_grades.size());
}

double reciprocal_rank(std::span<const float> scores, const Relevance& relevance) {
    if (relevance.positions.empty()) return 0;
    const auto before = [&](std::size_t a, std::size_t b) {
        const float x = comparable(scores[a]), y = comparable(scores[b]);
        return x != y ? x > y : a < b;
    };
    const std::size_t best = *std::min_element(relevance.positions.begin(), relevance.positions.end(), before);
    std::size_t rank = 1;
    for (std::size_t j = 0; j < scores.size(); ++j) rank += j != best && before(j, best);
    return 1.0 / static_cast<double>(rank);
}

double overlap(std::span<const std::size_t> a, std::span<const std::size_t> b, std::size_t k) {
    k = std::min({k, std::max(a.size(), b.size())});
    if (k == 0) return 1;
    std::vector<std::size_t> x(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(k, a.size())));
    std::vector<std::size_t> y(b.begin(), b.begin() + static_cast<std::ptrdiff_t>(std::min(k, b.size())));
    std::sort(x.begin(), x.end());
    std::sort(y.begin(), y.end());
    std::vector<std::size_t> both;
    std::set_intersection(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
    return static_cast<double>(both.size()) / static_cast<double>(k);
}

void Fidelity::add(const Fidelity& other) {
    pairs += other.pairs;
    flips += other.flips;
    reversals += other.reversals;
    margin_error += other.margin_error;
    score_error += other.score_error;
    for (std::size_t b = 0; b < margin_bins; ++b) {
        by_margin[b].pairs += other.by_margin[b].pairs;
        by_margin[b].flips += other.by_margin[b].flips;
    }
}

Fidelity fidelity(std::span<const float> full, std::span<const float> index, const Relevance& relevance,
                  std::size_t query_tokens) {
    Fidelity f;
    const double tokens = static_cast<double>(std::max<std::size_t>(query_tokens, 1));
    for (const std::size_t p : relevance.positions) {
        for (std::size_t n = 0; n < full.size(); ++n) {
            if (grade_of(relevance, n) > 0) continue;
            ++f.pairs;
            const bool above_full = full[p] > full[n], above_index = index[p] > index[n];
            const bool flipped = above_full != above_index;
            f.flips += flipped;
            f.reversals += above_full && !above_index;
            const double margin = static_cast<double>(full[p]) - static_cast<double>(full[n]);
            const double other = static_cast<double>(index[p]) - static_cast<double>(index[n]);
            std::size_t bin = 0;
            while (bin + 1 < Fidelity::margin_bins && !(std::fabs(margin) / tokens < Fidelity::margin_edges[bin]))
                ++bin;
            ++f.by_margin[bin].pairs;
            f.by_margin[bin].flips += flipped;
            const double margin_error = std::fabs(margin - other);
            const double score_error = std::fabs(static_cast<double>(full[n]) - static_cast<double>(index[n]));
            if (std::isfinite(margin_error)) f.margin_error += margin_error;
            if (std::isfinite(score_error)) f.score_error += score_error;
        }
    }
    return f;
}

}  // namespace marginmerge
