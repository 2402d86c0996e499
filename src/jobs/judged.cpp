#include "jobs/judged.h"

#include <algorithm>
#include <cmath>

namespace marginmerge {

Relevance relevance_from(const std::map<std::string, int>& grades, const FindDocument& find) {
    Relevance r;
    std::vector<std::pair<std::size_t, int>> found;
    for (const auto& [id, grade] : grades) {
        if (grade <= 0) continue;
        r.all_grades.push_back(grade);
        if (const auto position = find(id)) found.emplace_back(*position, grade);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [position, grade] : found) {
        r.positions.push_back(position);
        r.grades.push_back(grade);
    }
    return r;
}

Relevance best_as_relevant(std::span<const float> full_scores, std::size_t top) {
    Relevance r;
    r.positions = rank_pages(full_scores, top);
    std::sort(r.positions.begin(), r.positions.end());
    r.grades.assign(r.positions.size(), 1);
    r.all_grades = r.grades;
    return r;
}

JudgedScores judge_scores(ConstMatrix full, ConstMatrix scores, std::span<const Relevance> relevance,
                          std::span<const std::size_t> tokens, std::size_t k) {
    JudgedScores out;
    for (std::size_t q = 0; q < relevance.size(); ++q) {
        const auto own = scores.row_span(q);
        out.ndcg.push_back(ndcg(rank_pages(own, k), relevance[q], k));
        const Fidelity f = fidelity(full.row_span(q), own, relevance[q], tokens[q]);
        out.pairs.push_back(static_cast<double>(f.pairs));
        out.flips.push_back(static_cast<double>(f.flips));
        out.reversals.push_back(static_cast<double>(f.reversals));
        double loss = 0;
        for (const auto p : relevance[q].positions) {
            const double before = full(q, p);
            loss += std::fabs(before) > 1e-12 ? 1 - own[p] / before : 0;
        }
        const auto count = relevance[q].positions.size();
        out.loss.push_back(count > 0 ? loss / static_cast<double>(count) : 0);
        out.total.add(f);
    }
    return out;
}

}  // namespace marginmerge
