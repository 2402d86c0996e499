#include "learn/validation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace marginmerge {

namespace {

constexpr std::size_t cut = 5;

std::vector<std::size_t> best_columns(std::span<const float> scores, std::size_t count) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    count = std::min(count, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
        [&](std::size_t a, std::size_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
    order.resize(count);
    return order;
}

double gain(int grade, std::size_t rank) { return (std::exp2(grade) - 1) / std::log2(static_cast<double>(rank) + 2); }

double ndcg(std::span<const float> scores, const RelevantSet& relevant) {
    std::vector<int> grades = relevant.grades;
    std::sort(grades.rbegin(), grades.rend());
    double ideal = 0, sum = 0;
    for (std::size_t r = 0; r < std::min(cut, grades.size()); ++r) ideal += gain(grades[r], r);
    const auto top = best_columns(scores, cut);
    for (std::size_t r = 0; r < top.size(); ++r) {
        const auto at = std::find(relevant.columns.begin(), relevant.columns.end(), top[r]);
        if (at != relevant.columns.end()) {
            sum += gain(relevant.grades[static_cast<std::size_t>(at - relevant.columns.begin())], r);
        }
    }
    return sum / ideal;
}

}  // namespace

ValidationFigures validation_figures(ConstMatrix full, ConstMatrix compressed, std::span<const RelevantSet> relevant) {
    ValidationFigures figures;
    std::size_t changed = 0, pairs = 0;
    double error = 0;
    for (std::size_t q = 0; q < full.rows; ++q) {
        const auto f = full.row_span(q), c = compressed.row_span(q);
        const RelevantSet& set = relevant[q];
        if (!set.columns.empty()) {
            ++figures.queries;
            figures.ndcg += ndcg(c, set);
            figures.full_ndcg += ndcg(f, set);
            std::vector<char> is_relevant(f.size(), 0);
            for (const auto column : set.columns) is_relevant[column] = 1;
            for (const auto p : set.columns) {
                for (std::size_t j = 0; j < f.size(); ++j) {
                    if (is_relevant[j]) continue;
                    changed += (f[p] > f[j]) != (c[p] > c[j]);
                    ++pairs;
                }
            }
        }
        const auto n = static_cast<double>(f.size());
        double mean_f = 0, mean_e = 0, spread = 0, residual = 0;
        for (std::size_t j = 0; j < f.size(); ++j) {
            mean_f += f[j] / n;
            mean_e += (static_cast<double>(c[j]) - f[j]) / n;
        }
        for (std::size_t j = 0; j < f.size(); ++j) {
            spread += std::pow(f[j] - mean_f, 2);
            residual += std::pow(static_cast<double>(c[j]) - f[j] - mean_e, 2);
        }
        error += residual / std::max(spread, 1e-12) / static_cast<double>(full.rows);
    }
    if (figures.queries > 0) {
        figures.ndcg /= static_cast<double>(figures.queries);
        figures.full_ndcg /= static_cast<double>(figures.queries);
    }
    figures.flips = pairs > 0 ? static_cast<double>(changed) / static_cast<double>(pairs) : 0;
    figures.error = std::sqrt(error);
    return figures;
}

ValidationFigures average_figures(std::span<const ValidationFigures> figures) {
    ValidationFigures mean;
    for (const auto& f : figures) mean.queries += f.queries;
    for (const auto& f : figures) {
        const double share = mean.queries > 0 ? static_cast<double>(f.queries) / static_cast<double>(mean.queries) : 0;
        mean.ndcg += share * f.ndcg;
        mean.full_ndcg += share * f.full_ndcg;
        mean.flips += share * f.flips;
        mean.error += share * f.error;
    }
    return mean;
}

std::vector<RelevantSet> top_as_relevant(ConstMatrix full, std::size_t count) {
    std::vector<RelevantSet> sets(full.rows);
    for (std::size_t q = 0; q < full.rows; ++q) {
        sets[q].columns = best_columns(full.row_span(q), count);
        sets[q].grades.assign(sets[q].columns.size(), 1);
    }
    return sets;
}

}  // namespace marginmerge
