#include "learn/mining.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/parallel.h"
#include "core/share.h"
#include "kernels/convert.h"
#include "kernels/maxsim_upper.h"

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

// Adds a chunk's documents to what is known of query q. A document is scored only when its bound reaches the last of
// the best found so far; one that merely equals it may win the tie.
void scan_chunk(const MultiVectorSet& documents, std::span<const std::size_t> chunk, const PreparedQuery& query,
                std::span<const std::size_t> positives, const Matrix& upper, std::size_t q, std::size_t negatives,
                MinedQuery& mined) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
        const auto found = std::find(positives.begin(), positives.end(), chunk[i]);
        if (found == positives.end()) {
            order.push_back(i);
        } else {
            mined.positive_scores[static_cast<std::size_t>(found - positives.begin())] =
                maxsim(query, documents.vectors(chunk[i]));
        }
    }
    // Promising ones first, those without a bound (not-a-number) before all.
    const auto rank = [&](std::size_t i) {
        return std::isnan(upper(i, q)) ? std::numeric_limits<float>::infinity() : upper(i, q);
    };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
    for (const std::size_t i : order) {
        const bool full = mined.top.size() >= negatives;
        if (full && (negatives == 0 || rank(i) < mined.top.back().score)) break;
        const ScoredDocument scored{chunk[i], maxsim(query, documents.vectors(chunk[i]))};
        if (full && !(scored < mined.top.back())) continue;
        if (full) mined.top.pop_back();
        mined.top.insert(std::upper_bound(mined.top.begin(), mined.top.end(), scored), scored);
    }
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
    const UpperBoundBatch coded(queries);
    while (state.next < positions.size()) {
        const std::size_t count = std::min(options.chunk, positions.size() - state.next);
        const auto chunk = positions.subspan(state.next, count);
        Matrix upper(count, queries.size());
        parallel_for(count, options.threads, [&](std::size_t i) {
            upper_bounds(coded, documents.vectors(chunk[i]), upper.view().row_span(i));
        });
        parallel_for(queries.size(), options.threads, [&](std::size_t q) {
            scan_chunk(documents, chunk, *queries[q], positives[q], upper, q, options.negatives, state.queries[q]);
        });
        state.next += count;
        if (options.progress) options.progress({"mine", "documents", state.next, positions.size(), ""});
        if (options.save && state.next < positions.size()) options.save(state);
    }
    return std::move(state.queries);
}

}  // namespace marginmerge
