#include "learn/mining.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/parallel.h"
#include "core/share.h"
#include "kernels/convert.h"
#include "learn/mining_bounds.h"

namespace marginmerge {

Matrix score_documents(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                       std::span<const PreparedQuery* const> queries, std::size_t threads, Cluster* cluster) {
    Matrix scores(queries.size(), positions.size());
    const PreparedBatch batch = batch_of(queries);
    struct Worker {
        Matrix vectors;
        std::vector<float> scores;
    };
    std::vector<Worker> workers(resolve_threads(threads));
    const auto body = [&](std::size_t i, std::size_t worker) {
        const VectorsView stored = documents.vectors(positions[i]);
        Worker& w = workers[worker];
        w.vectors.reshape(stored.rows, stored.dim);
        to_float(stored, w.vectors.data());
        w.scores.resize(queries.size());
        maxsim_batch(batch, w.vectors, w.scores);
        for (std::size_t q = 0; q < queries.size(); ++q) scores(q, i) = w.scores[q];
    };
    const auto put = [&](std::size_t i, ByteWriter& out) {
        for (std::size_t q = 0; q < queries.size(); ++q) out.put(scores(q, i));
    };
    const auto take = [&](std::size_t i, ByteReader& in) {
        for (std::size_t q = 0; q < queries.size(); ++q) scores(q, i) = in.take<float>();
    };
    share_for(cluster, positions.size(), threads, body, put, take);
    return scores;
}

namespace {

// What several processes found in their parts, put together: the order of documents is total, so the best of all are
// the best of the best.
std::vector<MinedQuery> merge_parts(const std::vector<MinedQuery>& mine, std::size_t negatives, Cluster& cluster) {
    ByteWriter out;
    for (const MinedQuery& m : mine) {
        out.put(m.top.size());
        out.put(std::span<const ScoredDocument>(m.top));
        out.put(std::span<const float>(m.positive_scores));
    }
    const auto all = cluster.gather(out.bytes());
    std::vector<MinedQuery> merged(mine.size());
    for (std::size_t q = 0; q < mine.size(); ++q)
        merged[q].positive_scores.assign(mine[q].positive_scores.size(), -std::numeric_limits<float>::infinity());
    for (const auto& part : all) {
        ByteReader in(part);
        for (MinedQuery& m : merged) {
            const std::size_t before = m.top.size();
            m.top.resize(before + in.take<std::size_t>());
            in.take(std::span(m.top).subspan(before));
            for (float& score : m.positive_scores) score = std::max(score, in.take<float>());
        }
    }
    for (MinedQuery& m : merged) {
        std::sort(m.top.begin(), m.top.end());
        m.top.resize(std::min(negatives, m.top.size()));
    }
    return merged;
}

// One query on its way through a chunk of documents.
class QueryScan {
public:
    QueryScan(const MultiVectorSet& documents, std::span<const std::size_t> chunk, const PreparedQuery& query,
              std::span<const std::size_t> positives, std::size_t negatives, MinedQuery& mined)
        : documents_(&documents), chunk_(chunk), query_(&query), negatives_(negatives), mined_(&mined) {
        settled_.assign(chunk.size(), 0);
        for (std::size_t p = 0; p < positives.size(); ++p) {
            const auto at = std::lower_bound(chunk.begin(), chunk.end(), positives[p]);
            if (at == chunk.end() || *at != positives[p]) continue;
            settled_[static_cast<std::size_t>(at - chunk.begin())] = 1;
            mined.positive_scores[p] = score(positives[p]);
        }
    }

    /// Below this a document cannot be among the best.
    float least() const {
        if (negatives_ == 0) return std::numeric_limits<float>::infinity();
        return full() ? mined_->top.back().score : -std::numeric_limits<float>::infinity();
    }

    /// Looks at the `count` most promising documents that are not settled yet, column q of their bounds. One is scored
    /// only when its bound reaches the last of the best found so far; one that merely equals it may win the tie.
    void settle(const Matrix& upper, std::size_t q, std::size_t count) {
        if (negatives_ == 0) return;
        // Those without a bound (not-a-number) come before all.
        const auto rank = [&](std::size_t i) {
            return std::isnan(upper(i, q)) ? std::numeric_limits<float>::infinity() : upper(i, q);
        };
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < chunk_.size(); ++i) {
            if (!settled_[i] && !(rank(i) < least())) order.push_back(i);
        }
        const auto middle = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
        std::partial_sort(order.begin(), middle, order.end(),
                          [&](std::size_t a, std::size_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
        for (auto at = order.begin(); at != middle && !(rank(*at) < least()); ++at) {
            settled_[*at] = 1;
            const ScoredDocument scored{chunk_[*at], score(chunk_[*at])};
            auto& top = mined_->top;
            if (full() && !(scored < top.back())) continue;
            if (full()) top.pop_back();
            top.insert(std::upper_bound(top.begin(), top.end(), scored), scored);
        }
    }

private:
    float score(std::size_t document) const { return maxsim(*query_, documents_->vectors(document)); }
    bool full() const { return mined_->top.size() >= negatives_; }

    const MultiVectorSet* documents_;
    std::span<const std::size_t> chunk_;
    const PreparedQuery* query_;
    std::size_t negatives_;
    MinedQuery* mined_;
    std::vector<char> settled_;  ///< scored, or relevant
};

// Adds a chunk's documents to what is known of the queries. After a first look at every document a few are scored;
// from then on it is known what a document has to reach, and bounds become tighter only where they do.
void scan_chunk(const MultiVectorSet& documents, std::span<const std::size_t> chunk, const MiningBounds& bounds,
                std::span<const PreparedQuery* const> queries, std::span<const std::vector<std::size_t>> positives,
                const MiningOptions& options, std::span<MinedQuery> mined) {
    constexpr std::size_t more = 6;  // scored beyond those that are wanted, as bounds are not quite the order of scores
    Matrix upper(chunk.size(), queries.size()), found(chunk.size(), bounds.first_tokens());
    parallel_for(chunk.size(), options.threads, [&](std::size_t i) {
        bounds.look(documents.vectors(chunk[i]), found.view().row_span(i), upper.view().row_span(i));
    });
    std::vector<std::optional<QueryScan>> scans(queries.size());
    std::vector<float> least(queries.size());
    parallel_for(queries.size(), options.threads, [&](std::size_t q) {
        scans[q].emplace(documents, chunk, *queries[q], positives[q], options.negatives, mined[q]);
        scans[q]->settle(upper, q, options.negatives + more);
        least[q] = scans[q]->least();
    });
    parallel_for(chunk.size(), options.threads, [&](std::size_t i) {
        bounds.tighten(documents.vectors(chunk[i]), found.view().row_span(i), least, upper.view().row_span(i));
    });
    parallel_for(queries.size(), options.threads, [&](std::size_t q) { scans[q]->settle(upper, q, chunk.size()); });
}

}  // namespace

std::vector<MinedQuery> mine_hard_negatives(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                                            std::span<const PreparedQuery* const> queries,
                                            std::span<const std::vector<std::size_t>> positives,
                                            const MiningOptions& options, MiningState state) {
    if (options.cluster != nullptr) {
        const Slice part = slice_of(positions.size(), options.cluster);
        MiningOptions own = options;
        own.cluster = nullptr;
        const auto mine = mine_hard_negatives(documents, positions.subspan(part.begin, part.end - part.begin), queries,
                                              positives, own, std::move(state));
        return merge_parts(mine, options.negatives, *options.cluster);
    }
    if (state.queries.size() != queries.size() || state.next > positions.size()) {
        state.next = 0;
        state.queries.assign(queries.size(), {});
        for (std::size_t q = 0; q < queries.size(); ++q) {
            state.queries[q].positive_scores.assign(positives[q].size(), -std::numeric_limits<float>::infinity());
        }
    }
    const MiningBounds bounds(queries, options.threads);
    constexpr std::size_t most_found = std::size_t{1} << 24;  // numbers that first looks leave: 64 MB
    const std::size_t most = std::max<std::size_t>(1, most_found / std::max<std::size_t>(1, bounds.first_tokens()));
    while (state.next < positions.size()) {
        const std::size_t count = std::min({options.chunk, most, positions.size() - state.next});
        scan_chunk(documents, positions.subspan(state.next, count), bounds, queries, positives, options, state.queries);
        state.next += count;
        if (options.progress) options.progress({"mine", "documents", state.next, positions.size(), ""});
        if (options.save && state.next < positions.size()) options.save(state);
    }
    return std::move(state.queries);
}

}  // namespace marginmerge
