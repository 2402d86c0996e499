#include "learn/mining_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/parallel.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

constexpr double shares[] = {0.4, 0.55, 0.75, 1.0};  // of a query's tokens, looked at after each step
constexpr double usual_response = 0.35;              // what a token finds on a page that is not about it
constexpr std::size_t longest_ordered = 128;         // choosing takes tokens^3

double product_of(const float* a, const float* b, std::size_t d) {
    double sum = 0;
    for (std::size_t j = 0; j < d; ++j) sum += static_cast<double>(a[j]) * b[j];
    return sum;
}

// What is known of a token through another one, on a usual page: [token, through].
struct Expected {
    std::vector<double> values;
    std::size_t n;
    explicit Expected(ConstMatrix u) : values(u.rows * u.rows), n(u.rows) {
        std::vector<double> square(n);
        for (std::size_t t = 0; t < n; ++t) square[t] = dot(u.row(t), u.row(t), u.cols);
        for (std::size_t t = 0; t < n; ++t) {
            for (std::size_t s = 0; s < n; ++s) {
                const double share = std::max(0.0, dot(u.row(t), u.row(s), u.cols) / square[s]);
                const double rest = std::sqrt(std::max(0.0, square[t] - share * share * square[s]));
                values[t * n + s] = t == s ? usual_response * std::sqrt(square[t])
                                           : share * usual_response * std::sqrt(square[s]) + rest;
            }
        }
    }
    double operator()(std::size_t t, std::size_t s) const { return values[t * n + s]; }
};

// Each next token is the one that lowers the expected bound most.
std::vector<std::uint32_t> choose_order(const Expected& expected, ConstMatrix u, std::size_t ordered) {
    std::vector<std::uint32_t> order(u.rows);
    std::iota(order.begin(), order.end(), 0U);
    if (u.rows > longest_ordered) return order;
    std::vector<double> known(u.rows);
    for (std::size_t t = 0; t < u.rows; ++t) known[t] = std::sqrt(dot(u.row(t), u.row(t), u.cols));
    for (std::size_t k = 0; k < std::min(ordered, u.rows); ++k) {
        std::size_t best = k;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t c = k; c < u.rows; ++c) {
            double sum = 0;
            for (std::size_t t = 0; t < u.rows; ++t) sum += std::min(known[t], expected(t, order[c]));
            if (sum < least) least = sum, best = c;
        }
        std::swap(order[k], order[best]);
        for (std::size_t t = 0; t < u.rows; ++t) known[t] = std::min(known[t], expected(t, order[k]));
    }
    return order;
}

}  // namespace

MiningBounds::Query MiningBounds::plan(const PreparedQuery& prepared, std::vector<std::uint32_t>& order) {
    static_assert(std::size(shares) == steps);
    const ConstMatrix u = prepared.rows();
    const std::size_t n = prepared.tokens(), d = u.cols;
    Query query;
    for (std::size_t s = 0; s < steps; ++s)
        query.end[s] = std::min(n, static_cast<std::size_t>(std::ceil(shares[s] * static_cast<double>(n))));
    const Expected expected(u);
    order = choose_order(expected, u, query.end[steps - 2]);
    // Doubles lose less than this; sums of 2^20 numbers would have to be longer.
    constexpr double upwards = 1 + 1e-6;
    for (std::size_t t = 0; t < n; ++t) query.rounding += std::sqrt(product_of(u.row(t), u.row(t), d)) * upwards;
    // One addition a token in the score, and a few operations on floats in `bound`.
    query.rounding *= static_cast<double>(n + 16) * 0x1p-23;
    for (std::size_t s = 0; s + 1 < steps; ++s) {
        for (std::size_t k = query.end[s]; k < n; ++k) {
            const float* token = u.row(order[k]);
            Link link;
            for (std::uint32_t other = 1; other < query.end[s]; ++other) {
                if (expected(order[k], order[other]) < expected(order[k], order[link.through])) link.through = other;
            }
            const float* through = u.row(order[link.through]);
            const double square = product_of(through, through, d);
            const double share = square > 0 ? product_of(token, through, d) / square : 0.0;
            link.share = std::isfinite(share) ? static_cast<float>(std::max(0.0, share)) : 0.0f;
            double rest = 0;
            for (std::size_t j = 0; j < d; ++j) {
                const double e = token[j] - static_cast<double>(link.share) * through[j];
                rest += e * e;
            }
            link.rest = static_cast<float>(std::sqrt(rest) * upwards);
            link.norm = static_cast<float>(std::sqrt(product_of(token, token, d)) * upwards);
            query.links[s].push_back(link);
        }
    }
    return query;
}

MiningBounds::MiningBounds(std::span<const PreparedQuery* const> queries, std::size_t threads)
    : queries_(queries.size()), tokens_(ConstMatrix()) {
    std::size_t d = 0;
    std::vector<std::vector<std::uint32_t>> orders(queries.size());
    parallel_for(queries.size(), threads, [&](std::size_t q) { queries_[q] = plan(*queries[q], orders[q]); });
    for (std::size_t q = 0; q < queries.size(); ++q) {
        queries_[q].first = all_tokens_;
        all_tokens_ += queries[q]->tokens();
        if (queries[q]->tokens() > 0) d = queries[q]->dim();
    }
    Matrix tokens(all_tokens_, d);
    std::size_t at = 0;
    for (std::size_t s = 0; s < steps; ++s) {
        for (std::size_t q = 0; q < queries.size(); ++q) {
            Query& query = queries_[q];
            query.begin[s] = at;
            for (std::size_t k = s == 0 ? 0 : query.end[s - 1]; k < query.end[s]; ++k)
                std::copy_n(queries[q]->rows().row(orders[q][k]), d, tokens.row(at++));
        }
        if (s == 0) first_tokens_ = at;
    }
    tokens_ = UpperTokens(tokens);
}

// found: what the query's tokens that were looked at find, in its order.
float MiningBounds::bound(const Query& query, std::size_t step, std::span<const float> found, double norm) const {
    double looked_at = query.rounding * norm, others = 0;
    for (std::size_t k = 0; k < query.end[step]; ++k) looked_at += found[k];
    // The bound by norms comes first: it stands where the other one is not a number.
    const auto longest = static_cast<float>(norm);
    for (const Link& link : query.links[step])
        others += std::min(link.norm * longest, link.share * found[link.through] + link.rest * longest);
    return static_cast<float>(looked_at + others);
}

void MiningBounds::look(VectorsView page, std::span<float> found, std::span<float> upper) const {
    const UpperPage coded(page);
    const TokenRange first{0, first_tokens_};
    token_bounds(tokens_, coded, {&first, 1}, found);
    for (std::size_t q = 0; q < queries_.size(); ++q) {
        constexpr float infinity = std::numeric_limits<float>::infinity();
        const Query& query = queries_[q];
        upper[q] = page.rows == 0  ? -infinity
                   : !coded.finite ? infinity
                                   : bound(query, 0, found.subspan(query.begin[0], query.end[0]), coded.norm);
    }
}

void MiningBounds::tighten(VectorsView page, std::span<const float> found, std::span<const float> least,
                           std::span<float> upper) const {
    std::vector<std::size_t> open;
    for (std::size_t q = 0; q < queries_.size(); ++q) {
        if (!(upper[q] < least[q])) open.push_back(q);
    }
    if (open.empty() || page.rows == 0) return;
    const UpperPage coded(page);
    if (!coded.finite) return;
    std::vector<float> known(all_tokens_), fresh;
    for (const std::size_t q : open)
        std::copy_n(found.data() + queries_[q].begin[0], queries_[q].end[0], known.data() + queries_[q].first);
    std::vector<TokenRange> ranges;
    for (std::size_t s = 1; s < steps && !open.empty(); ++s) {
        ranges.clear();
        std::size_t count = 0;
        for (const std::size_t q : open) {
            const std::size_t more = queries_[q].end[s] - queries_[q].end[s - 1];
            ranges.push_back({queries_[q].begin[s], queries_[q].begin[s] + more});
            count += more;
        }
        fresh.resize(count);
        token_bounds(tokens_, coded, ranges, fresh);
        const float* from = fresh.data();
        std::vector<std::size_t> still_open;
        for (const std::size_t q : open) {
            const Query& query = queries_[q];
            const std::size_t more = query.end[s] - query.end[s - 1];
            float* of_query = known.data() + query.first;
            std::copy_n(from, more, of_query + query.end[s - 1]);
            from += more;
            upper[q] = std::min(upper[q], bound(query, s, {of_query, query.end[s]}, coded.norm));
            if (!(upper[q] < least[q])) still_open.push_back(q);
        }
        open = std::move(still_open);
    }
}

}  // namespace marginmerge
