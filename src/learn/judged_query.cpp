#include "learn/judged_query.h"

#include <algorithm>
#include <cmath>

#include "marginmerge/eval/metrics.h"

namespace marginmerge {

namespace {

constexpr int highest_grade = 20;  // 2^grade must stay a number

double gain_of(int grade) { return std::exp2(std::min(grade, highest_grade)) - 1; }

}  // namespace

std::vector<std::int32_t> token_of_answers(const JudgedQuery& query) {
    const std::size_t t = query.tokens.rows();
    std::vector<std::int32_t> token(query.pages() * t);
    for (std::size_t i = 0; i < token.size(); ++i) token[i] = static_cast<std::int32_t>(i % t);
    return token;
}

double score_spread(std::span<const JudgedQuery* const> queries) {
    double sum = 0;
    for (const JudgedQuery* q : queries) {
        const auto n = static_cast<double>(q->pages() - q->contested);
        double mean = 0, square = 0;
        for (std::size_t i = q->contested; i < q->pages(); ++i) mean += q->scores[i] / n;
        for (std::size_t i = q->contested; i < q->pages(); ++i) square += std::pow(q->scores[i] - mean, 2) / n;
        sum += std::sqrt(square) / static_cast<double>(queries.size());
    }
    return std::max(sum, 1e-6);
}

double listwise(const JudgedQuery& query, std::span<const double> scores, double temperature, std::span<double> slope) {
    const std::size_t n = query.contested;
    const double top = *std::max_element(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(n));
    double gains = 0, sum = 0, aimed = 0;
    for (std::size_t i = 0; i < n; ++i) gains += gain_of(query.grades[i]);
    std::vector<double> chance(n);
    for (std::size_t i = 0; i < n; ++i) {
        const double x = (scores[i] - top) / temperature;
        chance[i] = std::exp(x);
        sum += chance[i];
        aimed += gain_of(query.grades[i]) / gains * x;
    }
    if (slope.empty()) return std::log(sum) - aimed;
    for (std::size_t i = 0; i < n; ++i) slope[i] += (chance[i] / sum - gain_of(query.grades[i]) / gains) / temperature;
    return std::log(sum) - aimed;
}

RankingEffect ranking_effect(const JudgedQuery& query, std::span<const double> scores, double temperature) {
    Relevance relevance;
    for (std::size_t i = 0; i < query.contested; ++i) {
        if (query.grades[i] <= 0) continue;
        relevance.positions.push_back(i);
        relevance.grades.push_back(query.grades[i]);
    }
    relevance.all_grades = relevance.grades;
    RankingEffect effect;
    const std::vector<float> ranked(scores.begin(), scores.begin() + static_cast<std::ptrdiff_t>(query.contested));
    effect.loss = listwise(query, scores, temperature, {});
    effect.ndcg = ndcg(rank_pages(ranked, 5), relevance, 5);
    for (const std::size_t p : relevance.positions) {
        for (std::size_t i = query.contested; i < query.pages(); ++i) {
            effect.flips += (query.scores[p] > query.scores[i]) != (scores[p] > scores[i]);
            ++effect.pairs;
        }
    }
    return effect;
}

}  // namespace marginmerge
