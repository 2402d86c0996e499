#include "learn/memory.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/parallel.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr double flat_spread = 1e-4;

// The best response to each token of a query on each of its pages: [pages, t].
Matrix responses_by_page(const JudgedQuery& query) {
    Matrix out(query.pages(), query.tokens.rows());
    dot_clusters(query.answers_view(), token_of_answers(query), query.tokens, out.flat());
    return out;
}

struct UsualAnswer {
    double mean = 0, spread = 0;
};

UsualAnswer usual_answer(const Matrix& responses, std::size_t first, std::size_t token) {
    const auto n = static_cast<double>(responses.rows() - first);
    UsualAnswer out;
    double square = 0;
    for (std::size_t p = first; p < responses.rows(); ++p) out.mean += responses(p, token) / n;
    for (std::size_t p = first; p < responses.rows(); ++p) square += std::pow(responses(p, token) - out.mean, 2) / n;
    out.spread = std::sqrt(square) + flat_spread;
    return out;
}

// One thing that was asked of a page: the query and the row of its token.
struct AskedEntry {
    std::int64_t page;
    float unusual;
    std::uint32_t query, token;
};

}  // namespace

AskedQuery asked_of_pages(const JudgedQuery& query, const MemorySettings& settings) {
    AskedQuery out;
    out.tokens = query.tokens;
    normalise_rows(out.tokens);
    if (query.contested >= query.pages()) return out;  // nobody knows what is usual
    const Matrix responses = responses_by_page(query);
    for (std::size_t t = 0; t < query.tokens.rows(); ++t) {
        const UsualAnswer usual = usual_answer(responses, query.contested, t);
        for (std::size_t p = 0; p < query.contested; ++p) {
            if (query.grades[p] <= 0) continue;
            const double z = (responses(p, t) - usual.mean) / usual.spread;
            if (z >= settings.unusual)
                out.asked.push_back({query.keys[p], static_cast<std::uint32_t>(t), static_cast<float>(z)});
        }
    }
    return out;
}

Memory learn_memory(std::span<const AskedQuery* const> queries, const MemorySettings& settings) {
    Memory memory;
    if (queries.empty()) return memory;
    const std::size_t d = queries.front()->tokens.cols();
    std::vector<AskedEntry> entries;
    std::size_t tokens = 0;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        tokens += queries[q]->tokens.rows();
        if (tokens * d > settings.most_numbers) break;
        for (const Asked& a : queries[q]->asked)
            entries.push_back({a.page, a.unusual, static_cast<std::uint32_t>(q), a.token});
    }
    // By page, the most unusual first.
    std::sort(entries.begin(), entries.end(), [](const AskedEntry& a, const AskedEntry& b) {
        return std::tuple(a.page, -a.unusual, a.query, a.token) < std::tuple(b.page, -b.unusual, b.query, b.token);
    });
    const auto token_of = [&](const AskedEntry& e) { return queries[e.query]->tokens.row(e.token); };
    std::vector<AskedEntry> kept;
    for (const AskedEntry& e : entries) {
        if (memory.pages.empty() || memory.pages.back() != e.page) {
            memory.pages.push_back(e.page);
            memory.offsets.push_back(static_cast<std::int64_t>(kept.size()));
        }
        const auto first = static_cast<std::size_t>(memory.offsets.back());
        if (kept.size() - first >= settings.most_of_page) continue;
        const bool known =
            std::any_of(kept.begin() + static_cast<std::ptrdiff_t>(first), kept.end(),
                        [&](const AskedEntry& k) { return dot(token_of(k), token_of(e), d) > settings.same; });
        if (!known) kept.push_back(e);
    }
    memory.offsets.push_back(static_cast<std::int64_t>(kept.size()));
    // Only tokens that are remembered for some page are stored, in the order of their queries.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> used;
    used.reserve(kept.size());
    for (const AskedEntry& e : kept) used.emplace_back(e.query, e.token);
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    memory.tokens = Matrix(used.size(), d);
    for (std::size_t i = 0; i < used.size(); ++i)
        std::copy_n(queries[used[i].first]->tokens.row(used[i].second), d, memory.tokens.row(i));
    for (const AskedEntry& e : kept) {
        const auto at = std::lower_bound(used.begin(), used.end(), std::pair(e.query, e.token));
        memory.entries.push_back(static_cast<std::int32_t>(at - used.begin()));
    }
    memory.strength = 1;
    return memory;
}

std::vector<std::vector<RankingEffect>> judge_memory(std::span<const JudgedQuery* const> queries, const Memory& memory,
                                                     std::span<const double> strengths, double temperature,
                                                     std::size_t threads) {
    std::vector<std::vector<RankingEffect>> effects(queries.size());
    parallel_for(queries.size(), threads, [&](std::size_t q) {
        const JudgedQuery& query = *queries[q];
        const std::size_t t = query.tokens.rows();
        const Matrix responses = responses_by_page(query);
        std::vector<std::vector<double>> scores(strengths.size(), {query.scores.begin(), query.scores.end()});
        std::vector<std::int32_t> winner(t);
        std::vector<float> remembered(t);
        for (std::size_t p = 0; p < query.pages(); ++p) {
            const Matrix rows = memory.of(query.keys[p]);
            if (rows.rows() == 0) continue;
            nearest(query.tokens, rows, winner, remembered);
            for (std::size_t s = 0; s < strengths.size(); ++s) {
                if (strengths[s] == 0) continue;
                for (std::size_t i = 0; i < t; ++i)
                    scores[s][p] += std::max(0.0, strengths[s] * remembered[i] - responses(p, i));
            }
        }
        for (const auto& of_strength : scores) effects[q].push_back(ranking_effect(query, of_strength, temperature));
    });
    return effects;
}

}  // namespace marginmerge
