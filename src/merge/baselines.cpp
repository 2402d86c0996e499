#include "merge/baselines.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/order.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// Calls use(i, similarities of patch i to all) without ever holding more than a block of them.
void for_each_similarity_row(ConstMatrix v, const std::function<void(std::size_t, std::span<float>)>& use) {
    constexpr std::size_t block = 64;
    Matrix similarity;
    for (std::size_t begin = 0; begin < v.rows; begin += block) {
        const std::size_t count = std::min(block, v.rows - begin);
        similarity.reshape(count, v.rows);
        product(v.middle_rows(begin, count), v, similarity);
        for (std::size_t r = 0; r < count; ++r) use(begin + r, similarity.view().row_span(r));
    }
}

float mean_of_others(std::span<const float> row, std::size_t self) {
    const double sum = std::accumulate(row.begin(), row.end(), 0.0) - row[self];
    return row.size() > 1 ? static_cast<float>(sum / static_cast<double>(row.size() - 1)) : 0.0f;
}

}  // namespace

std::vector<std::int32_t> importance_kept(ConstMatrix v, std::size_t k) {
    std::vector<float> importance(v.rows);
    for_each_similarity_row(v, [&](std::size_t i, std::span<float> row) { importance[i] = mean_of_others(row, i); });
    auto kept = largest<float>(importance, k);
    std::sort(kept.begin(), kept.end());
    return kept;
}

std::vector<float> single_vector(ConstMatrix v) {
    Matrix mean(1, v.cols);
    for (std::size_t i = 0; i < v.rows; ++i)
        for (std::size_t j = 0; j < v.cols; ++j) mean(0, j) += v(i, j);
    normalise_rows(mean);
    return {mean.row(0), mean.row(0) + v.cols};
}

Matrix selector_features(ConstMatrix v) {
    constexpr std::size_t neighbours = 8;
    Matrix out(v.rows, 6);
    const auto mean = single_vector(v);
    for_each_similarity_row(v, [&](std::size_t i, std::span<float> row) {
        out(i, 0) = dot(v.row(i), mean.data(), v.cols);
        out(i, 1) = mean_of_others(row, i);
        const float position = v.rows > 1 ? static_cast<float>(i) / static_cast<float>(v.rows - 1) : 0.0f;
        out(i, 4) = position;
        out(i, 5) = 1.0f - position;
        if (row.size() < 2) return;
        std::swap(row[i], row.back());
        const auto others = row.first(row.size() - 1);
        const std::size_t count = std::min(neighbours, others.size());
        std::partial_sort(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count), others.end(),
                          std::greater<>());
        out(i, 2) = others.front();
        out(i, 3) = static_cast<float>(
            std::accumulate(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
            static_cast<double>(count));
    });
    return out;
}

std::vector<float> winner_labels(ConstMatrix v, ConstMatrix query_tokens) {
    std::vector<float> label(v.rows, 0.0f);
    if (v.rows == 0) return label;
    std::vector<std::int32_t> winner(query_tokens.rows);
    std::vector<float> similarity(query_tokens.rows);
    nearest(query_tokens, v, winner, similarity);
    for (const auto w : winner) label[static_cast<std::size_t>(w)] = 1.0f;
    return label;
}

float query_conditioned_score(ConstMatrix query, ConstMatrix v, std::size_t k) {
    Matrix similarity(query.rows, v.rows);
    product(query, v, similarity);
    std::vector<float> best(v.rows, -INFINITY);
    for (std::size_t t = 0; t < query.rows; ++t)
        for (std::size_t i = 0; i < v.rows; ++i) best[i] = std::max(best[i], similarity(t, i));
    const auto kept = largest<float>(best, k);
    double score = 0;
    for (std::size_t t = 0; t < query.rows; ++t) {
        float top = -INFINITY;
        for (const auto i : kept) top = std::max(top, similarity(t, static_cast<std::size_t>(i)));
        score += top;
    }
    return static_cast<float>(score);
}

}  // namespace marginmerge
