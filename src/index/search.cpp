// MaxSim top-k over the live pages of a snapshot.
#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "core/parallel.h"
#include "index/filter_node.h"
#include "index/scorer.h"
#include "index/state.h"
#include "index/top_k.h"
#include "kernels/convert.h"

namespace marginmerge {

namespace {

// Vectors a task scores: enough to hide the cost of a task, few enough that a block of F16 vectors
// stays in the second-level cache while several queries pass over it.
constexpr std::size_t vectors_per_run = 1024;
// Queries that share one pass over the index.
constexpr std::size_t queries_per_pass = 64;

/// Consecutive live pages of one segment that pass the filter.
struct Run {
    const Part* part = nullptr;
    std::size_t local = 0;     ///< first page within the segment
    std::size_t position = 0;  ///< its position in the snapshot
    std::size_t count = 0;
};

std::vector<char> passing(const Part& part, const Filter& filter) {
    std::vector<std::string> fields;
    filter_fields(*filter.root(), fields);
    std::map<std::string, std::shared_ptr<const Column>> columns;
    for (const auto& field : fields) columns[field] = part.segment->column(field);
    std::vector<char> mask(part.count);
    for (std::size_t i = 0; i < part.count; ++i) {
        const std::size_t local = part.local(part.first + i);
        mask[i] = evaluate_filter(*filter.root(), [&](const std::string& field) { return columns[field]->of(local); });
    }
    return mask;
}

std::vector<Run> make_runs(const Index::State& state, const Filter& filter, ScoreMode::Kind kind) {
    std::vector<Run> runs;
    for (const Part& part : state.parts) {
        const std::vector<char> mask = filter.empty() ? std::vector<char>() : passing(part, filter);
        const MultiVectorSet* full = part.segment->full();
        const MultiVectorSet& layout =
            kind == ScoreMode::Kind::full && full != nullptr ? *full : part.segment->layout();
        Run run;
        std::size_t vectors = 0;
        for (std::size_t i = 0; i < part.count; ++i) {
            if (!mask.empty() && mask[i] == 0) continue;
            const std::size_t position = part.first + i;
            const std::size_t local = part.local(position);
            const bool follows =
                run.count > 0 && local == run.local + run.count && position == run.position + run.count;
            if (!follows || vectors >= vectors_per_run) {
                if (run.count > 0) runs.push_back(run);
                run = {&part, local, position, 0};
                vectors = 0;
            }
            ++run.count;
            vectors += layout.vectors_of(local);
        }
        if (run.count > 0) runs.push_back(run);
    }
    return runs;
}

/// The best k pages for each scorer, over runs.
std::vector<std::vector<ScoredPage>> scan(std::span<const Scorer> scorers, std::span<const Run> runs, std::size_t k,
                                          const SearchOptions& options) {
    const std::size_t workers = resolve_threads(options.threads);
    std::vector<std::vector<TopK>> best(workers, std::vector<TopK>(scorers.size(), TopK(k)));
    std::vector<std::vector<float>> buffers(workers);
    parallel_for_workers(runs.size(), options.threads, [&](std::size_t r, std::size_t worker) {
        if (options.check) options.check();
        const Run& run = runs[r];
        auto& scores = buffers[worker];
        scores.resize(std::max(scores.size(), run.count));
        for (std::size_t q = 0; q < scorers.size(); ++q) {
            scorers[q].score(*run.part->segment, run.local, std::span(scores).first(run.count));
            for (std::size_t i = 0; i < run.count; ++i) best[worker][q].offer(scores[i], run.position + i);
        }
    });
    std::vector<std::vector<ScoredPage>> results(scorers.size());
    for (std::size_t q = 0; q < scorers.size(); ++q) {
        for (std::size_t w = 1; w < workers; ++w) best[0][q].merge(best[w][q]);
        results[q] = best[0][q].take();
    }
    return results;
}

/// New scores for a few pages of one query, best k first.
std::vector<ScoredPage> rescore(const Index::State& state, const Scorer& scorer, std::span<const ScoredPage> pages,
                                std::size_t k, const SearchOptions& options) {
    std::vector<float> scores(pages.size());
    constexpr std::size_t block = 16;
    parallel_for((pages.size() + block - 1) / block, options.threads, [&](std::size_t b) {
        if (options.check) options.check();
        for (std::size_t i = b * block; i < std::min(pages.size(), (b + 1) * block); ++i) {
            const PageRef page = state.at(pages[i].position);
            scorer.score(page.segment(), page.local, std::span(scores).subspan(i, 1));
        }
    });
    TopK best(k);
    for (std::size_t i = 0; i < pages.size(); ++i) best.offer(scores[i], pages[i].position);
    return best.take();
}

/// What the passes of a search do, in order.
struct Plan {
    ScoreMode first;  ///< over all pages
    std::size_t first_k = 0;
    std::optional<ScoreMode> second;  ///< over the survivors of the first
    std::size_t second_k = 0;
    bool rerank = false;  ///< full vectors for the survivors so far
};

Plan make_plan(const Index& index, const SearchOptions& o) {
    if (!(o.keep > 0 && o.keep <= 1))
        fail(ErrorCode::invalid_argument, "keep: expected more than 0 and at most 1, found {}", o.keep);
    if ((o.full || o.rerank > 0) && index.size() > 0 && !index.has_full())
        fail(ErrorCode::invalid_argument,
             "{}: full vectors are not kept in this index; add pages with --keep-full to have them",
             index.path().string());
    Plan plan;
    ScoreMode exact;
    if (o.full)
        exact.kind = ScoreMode::Kind::full;
    else if (o.keep < 1)
        exact = {ScoreMode::Kind::share, 0, o.keep};
    plan.rerank = o.rerank > 0 && !o.full;
    const std::size_t exact_k = plan.rerank ? std::max(o.k, o.rerank) : o.k;
    if (o.first_pass == FirstPass::none) {
        plan.first = exact;
        plan.first_k = exact_k;
        return plan;
    }
    plan.first.kind = o.first_pass == FirstPass::bits ? ScoreMode::Kind::bits : ScoreMode::Kind::prefix;
    plan.first.prefix = o.prefix;
    plan.first_k = std::max(exact_k, o.candidates > 0 ? o.candidates : std::max<std::size_t>(8 * exact_k, 200));
    plan.second = exact;
    plan.second_k = exact_k;
    return plan;
}

void check_dim(const Index& index, std::size_t dim) {
    if (index.size() > 0 && dim != index.dim())
        fail(ErrorCode::invalid_argument, "query: expected {} dimensions as in the index, found {}", index.dim(), dim);
}

std::vector<std::vector<Hit>> run_plan(const Index& index, std::span<const VectorsView> queries,
                                       const SearchOptions& o) {
    const Index::State& state = index.state();
    for (const VectorsView& q : queries) check_dim(index, q.dim);
    const Plan plan = make_plan(index, o);
    const std::vector<Run> runs = make_runs(state, o.filter, plan.first.kind);
    const std::size_t first_k = std::min(plan.first_k, index.size());
    std::vector<std::vector<Hit>> results;
    for (std::size_t begin = 0; begin < queries.size(); begin += queries_per_pass) {
        const auto chunk = queries.subspan(begin, std::min(queries_per_pass, queries.size() - begin));
        std::vector<Scorer> scorers;
        for (const VectorsView& q : chunk) scorers.emplace_back(q, state.code, plan.first);
        auto ranked = scan(scorers, runs, first_k, o);
        for (std::size_t q = 0; q < chunk.size(); ++q) {
            auto& pages = ranked[q];
            if (plan.second)
                pages = rescore(state, Scorer(chunk[q], state.code, *plan.second), pages, plan.second_k, o);
            if (plan.rerank) {
                ScoreMode full;
                full.kind = ScoreMode::Kind::full;
                pages = rescore(state, Scorer(chunk[q], state.code, full), pages, o.k, o);
            }
            auto& hits = results.emplace_back();
            for (const ScoredPage& p : pages) hits.push_back({p.position, index.id(p.position), p.score});
        }
    }
    return results;
}

}  // namespace

std::vector<Hit> Index::search(VectorsView query, const SearchOptions& options) const {
    return std::move(run_plan(*this, {&query, 1}, options).front());
}

std::vector<std::vector<Hit>> Index::search_batch(const MultiVectorSet& queries, const SearchOptions& options) const {
    std::vector<VectorsView> views;
    for (std::size_t i = 0; i < queries.size(); ++i) views.push_back(queries.vectors(i));
    return run_plan(*this, views, options);
}

std::vector<float> Index::score_all(VectorsView query, std::size_t threads) const {
    check_dim(*this, query.dim);
    const Scorer scorer(query, state_->code, {});
    const std::vector<Run> runs = make_runs(*state_, {}, ScoreMode::Kind::stored);
    std::vector<float> scores(size());
    parallel_for(runs.size(), threads, [&](std::size_t r) {
        scorer.score(*runs[r].part->segment, runs[r].local, std::span(scores).subspan(runs[r].position, runs[r].count));
    });
    return scores;
}

Explanation Index::explain(VectorsView query, std::size_t position) const {
    check_dim(*this, query.dim);
    const PageRef page = state_->at(position);
    const Matrix vectors = page.segment().decoded(page.local);
    const PreparedQuery prepared(query);
    std::vector<float> best(query.rows);
    std::vector<std::int32_t> winner(query.rows, -1);
    maxsim_winners(prepared, vectors.view(), best, winner);
    Explanation e;
    e.position = position;
    e.id = id(position);
    const auto owners = owner(position);
    const bool compressed = page.segment().layout().has_owner();
    for (std::size_t t = 0; t < query.rows; ++t) {
        TokenMatch match{winner[t], best[t], {}};
        if (!compressed && winner[t] >= 0) match.patches.push_back(winner[t]);
        for (std::size_t i = 0; i < owners.size(); ++i)
            if (owners[i] == winner[t] && winner[t] >= 0) match.patches.push_back(static_cast<std::int32_t>(i));
        e.score += match.score;
        e.tokens.push_back(std::move(match));
    }
    return e;
}

}  // namespace marginmerge
