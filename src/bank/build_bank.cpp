#include "marginmerge/bank/build_bank.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <unordered_set>

#include "bank/kmeans.h"
#include "core/clock.h"
#include "core/fail.h"
#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

// Which tokens of which query take part.
struct Chosen {
    std::size_t query;
    std::size_t token;
};

// `count` of 0..n-1, ascending, by seed.
std::vector<std::size_t> draw(std::size_t n, std::size_t count, std::uint64_t seed) {
    std::vector<std::size_t> pool(n);
    std::iota(pool.begin(), pool.end(), std::size_t{0});
    if (count >= n) return pool;
    Random random(seed);
    for (std::size_t i = 0; i < count; ++i) std::swap(pool[i], pool[i + random.below(n - i)]);
    pool.resize(count);
    std::sort(pool.begin(), pool.end());
    return pool;
}

std::vector<Chosen> choose_tokens(std::span<const std::int64_t> offsets, const std::vector<char>& skip,
                                  const BankOptions& options) {
    std::vector<Chosen> chosen;
    for (std::size_t q = 0; q + 1 < offsets.size(); ++q) {
        if (skip[q]) continue;
        const auto n = static_cast<std::size_t>(offsets[q + 1] - offsets[q]);
        for (const auto token : draw(n, options.tokens_per_query, mix_seed(options.seed, q)))
            chosen.push_back({q, token});
    }
    if (chosen.size() <= options.token_cap) return chosen;
    std::vector<Chosen> capped;
    for (const auto i : draw(chosen.size(), options.token_cap, mix_seed(options.seed, 0xCA9)))
        capped.push_back(chosen[i]);
    return capped;
}

struct Tokens {
    Matrix rows;                 ///< unit
    std::vector<float> weights;  ///< equal sum for every query, 1 in all
    std::size_t queries = 0;
};

// Copies the chosen tokens, leaving out padding (zero rows).
Tokens gather(std::vector<Chosen> chosen, std::size_t dim, const std::function<void(Chosen, float*)>& copy) {
    Tokens t{Matrix(chosen.size(), dim), {}, 0};
    std::size_t kept = 0;
    for (const Chosen c : chosen) {
        float* row = t.rows.row(kept);
        copy(c, row);
        const float norm = std::sqrt(dot(row, row, dim));
        if (!std::isfinite(norm))
            fail(ErrorCode::corrupt, "query {} token {}: expected finite values", c.query, c.token);
        if (norm < 1e-12f) continue;
        for (std::size_t j = 0; j < dim; ++j) row[j] /= norm;
        chosen[kept++] = c;
    }
    if (kept == 0) fail(ErrorCode::invalid_argument, "prototype bank: expected at least one query token, found none");
    if (kept != chosen.size()) t.rows = Matrix(ConstMatrix(t.rows).middle_rows(0, kept));
    t.weights.resize(kept);
    for (std::size_t begin = 0; begin < kept;) {
        std::size_t end = begin;
        while (end < kept && chosen[end].query == chosen[begin].query) ++end;
        std::fill(t.weights.begin() + static_cast<std::ptrdiff_t>(begin),
                  t.weights.begin() + static_cast<std::ptrdiff_t>(end), 1.0f / static_cast<float>(end - begin));
        ++t.queries;
        begin = end;
    }
    for (float& w : t.weights) w /= static_cast<float>(t.queries);
    return t;
}

PrototypeBank cluster(const Tokens& tokens, const BankOptions& o, const Progress& progress, BankReport& report) {
    if (o.prototypes == 0) fail(ErrorCode::invalid_argument, "prototypes: expected at least 1, found 0");
    KMeansOptions k;
    k.clusters = std::min(o.prototypes, tokens.rows.rows());
    k.initialisations = o.initialisations;
    k.iterations = o.iterations;
    k.rounds = o.relocations;
    k.mini_batch_above = o.mini_batch_above;
    k.mini_batch = o.mini_batch;
    k.polish = o.polish;
    k.seed = o.seed;
    k.threads = o.threads;
    k.cluster = o.cluster;
    if (progress)
        k.progress = [&](std::size_t done, std::size_t total) { progress({"prototypes", "passes", done, total, ""}); };
    KMeansResult r = weighted_kmeans(tokens.rows, tokens.weights, k);
    report.tokens = tokens.rows.rows();
    report.queries = tokens.queries;
    report.inertia = r.inertia;
    report.iterations = r.iterations;
    report.mini_batch = r.mini_batch;
    PrototypeBank bank;
    bank.prototypes = std::move(r.means);
    normalise_rows(bank.prototypes);
    std::vector<double> frequency(bank.size(), 0.0);
    for (std::size_t i = 0; i < r.labels.size(); ++i)
        frequency[static_cast<std::size_t>(r.labels[i])] += tokens.weights[i];
    const double sum = std::accumulate(frequency.begin(), frequency.end(), 0.0);
    for (const double f : frequency) bank.frequencies.push_back(static_cast<float>(f / sum));
    return bank;
}

PrototypeBank build(std::span<const std::int64_t> offsets, std::size_t dim, const std::vector<char>& skip,
                    const std::function<void(Chosen, float*)>& copy, const BankOptions& options,
                    const Progress& progress, BankReport* report) {
    const auto started = Clock::now();
    BankReport own;
    BankReport& r = report != nullptr ? *report : own;
    r = {};
    const Tokens tokens = gather(choose_tokens(offsets, skip, options), dim, copy);
    PrototypeBank bank = cluster(tokens, options, progress, r);
    r.excluded = static_cast<std::size_t>(std::count(skip.begin(), skip.end(), 1));
    r.seconds = seconds_since(started);
    return bank;
}

}  // namespace

PrototypeBank build_bank(const MultiVectorSet& queries, const BankOptions& options, const Progress& progress,
                         BankReport* report) {
    const std::unordered_set<std::string> excluded(options.excluded.begin(), options.excluded.end());
    std::vector<char> skip(queries.size(), 0);
    std::vector<std::string> used, left_out;
    for (std::size_t q = 0; q < queries.size(); ++q) {
        std::string id = queries.id(q);
        skip[q] = excluded.contains(id) ? 1 : 0;
        (skip[q] ? left_out : used).push_back(std::move(id));
    }
    PrototypeBank bank = build(
        queries.offsets(), queries.dim(), skip,
        [&](Chosen c, float* row) { to_float(queries.vectors(c.query).middle_rows(c.token, 1), row); }, options,
        progress, report);
    bank.query_ids = std::move(used);
    bank.excluded_ids = std::move(left_out);
    return bank;
}

PrototypeBank build_bank(ConstMatrix tokens, std::span<const std::int64_t> offsets, const BankOptions& options,
                         const Progress& progress, BankReport* report) {
    if (offsets.empty() || offsets.front() != 0 || offsets.back() != static_cast<std::int64_t>(tokens.rows) ||
        !std::is_sorted(offsets.begin(), offsets.end()))
        fail(ErrorCode::invalid_argument, "token offsets: expected 0 to {} ascending", tokens.rows);
    return build(
        offsets, tokens.cols, std::vector<char>(offsets.size() - 1, 0),
        [&](Chosen c, float* row) {
            std::copy_n(tokens.row(static_cast<std::size_t>(offsets[c.query]) + c.token), tokens.cols, row);
        },
        options, progress, report);
}

void refuse_leakage(const PrototypeBank& bank, const MultiVectorSet& evaluation_queries) {
    for (const std::string& id : bank.query_ids)
        if (evaluation_queries.find(id))
            fail(ErrorCode::invalid_argument, "query '{}' is in the evaluation set and in the prototype bank", id);
}

}  // namespace marginmerge
