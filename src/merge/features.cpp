#include "merge/features.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/page_rows.h"
#include "kernels/products.h"

namespace marginmerge {

namespace {

enum Feature : std::size_t {
    anchor_similarity,
    uniform_similarity,
    response_similarity,
    importance,
    log_size,
    relative_size,
    distance_rank,
    column,
    row,
    is_anchor,
    local_redundancy,
    mean_response,
    max_response,
    response_deviation,
    weighted_coverage
};

// Similarities inside one cluster are computed in blocks of rows, so that a page that is one
// cluster of 10,000 needs 4 MB and not 400.
constexpr std::size_t gram_values = std::size_t{1} << 20;
void redundancy_of_cluster(std::size_t c, PageWorkspace& w, Matrix& out) {
    const ClusterLists& lists = w.lists;
    const std::size_t size = lists.size(c);
    const std::size_t first = lists.first(c);
    if (size == 1) {
        out(lists.patch(first), local_redundancy) = 0.0f;
        return;
    }
    const ConstMatrix members = lists.vectors.view().middle_rows(first, size);
    const std::size_t block = std::clamp<std::size_t>(gram_values / size, 16, size);
    for (std::size_t begin = 0; begin < size; begin += block) {
        const std::size_t rows = std::min(block, size - begin);
        w.gram.reshape(size, rows);
        w.values.resize(rows);
        product(members, members.middle_rows(begin, rows), w.gram);
        neighbour_means(w.gram.data(), size, rows, begin, w.values.data());
        for (std::size_t r = 0; r < rows; ++r) out(lists.patch(first + begin + r), local_redundancy) = w.values[r];
    }
}

// Position by falling anchor similarity, the lower index on a tie.
void rank_cluster(std::size_t c, PageWorkspace& w, Matrix& out) {
    const std::size_t size = w.lists.size(c);
    const auto& cosine = w.clusters.anchor_cosine;
    w.order.assign(w.lists.members.begin() + w.lists.begin[c], w.lists.members.begin() + w.lists.begin[c + 1]);
    std::sort(w.order.begin(), w.order.end(), [&](std::int32_t a, std::int32_t b) {
        const float x = cosine[static_cast<std::size_t>(a)];
        const float y = cosine[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
    });
    const auto span = static_cast<float>(std::max<std::size_t>(size - 1, 1));
    for (std::size_t r = 0; r < size; ++r)
        out(static_cast<std::size_t>(w.order[r]), distance_rank) = static_cast<float>(r) / span;
}

}  // namespace

void compute_features(const PageInput& page, bool use_grid, PageWorkspace& w, Matrix& out) {
    const ConstMatrix v = page.vectors;
    const PageClusters& clusters = w.clusters;
    const ClusterLists& lists = w.lists;
    const std::size_t k = lists.clusters();
    out.reshape(v.rows, feature_count);
    w.uniform_centroids.reshape(k, v.cols);
    w.response_centroids.reshape(k, v.cols);
    cluster_centroids(lists, {}, w.uniform_centroids);
    cluster_centroids(lists, clusters.base_weight, w.response_centroids);

    const bool placed = use_grid && page.grid.known();
    const auto columns = static_cast<std::size_t>(placed ? page.grid.columns : 1);
    const auto rows = static_cast<std::size_t>(placed ? page.grid.rows : 1);
    // Patch by patch in their own order: responses are read once, in the order they lie in memory.
    for (std::size_t i = 0; i < v.rows; ++i) {
        const auto s =
            response_statistics(w.responses.responses.row(i), w.responses.omega.data(), w.responses.omega.size());
        float* x = out.row(i);
        x[mean_response] = s.mean;
        x[max_response] = s.high;
        x[response_deviation] = s.deviation;
    }
    for (std::size_t c = 0; c < k; ++c) {
        const auto size = static_cast<float>(lists.size(c));
        const float log_of_size = std::log1p(size);
        w.values.resize(2 * lists.size(c));
        float* uniform = w.values.data();
        float* response = uniform + lists.size(c);
        dot_rows(w.uniform_centroids.row(c), lists.vectors.row(lists.first(c)), lists.size(c), v.cols, uniform);
        dot_rows(w.response_centroids.row(c), lists.vectors.row(lists.first(c)), lists.size(c), v.cols, response);
        for (std::size_t p = lists.first(c); p < lists.first(c) + lists.size(c); ++p) {
            const std::size_t i = lists.patch(p);
            float* x = out.row(i);
            x[anchor_similarity] = clusters.anchor_cosine[i];
            x[uniform_similarity] = uniform[p - lists.first(c)];
            x[response_similarity] = response[p - lists.first(c)];
            x[importance] = clusters.relevance[i];
            x[log_size] = log_of_size;
            x[relative_size] = size / static_cast<float>(v.rows);
            const bool inside = placed && i < columns * rows;
            const std::size_t at_row = inside ? i / columns : 0;
            x[column] = inside ? (static_cast<float>(i % columns) + 0.5f) / static_cast<float>(columns) : 0.0f;
            x[row] = inside ? (static_cast<float>(at_row) + 0.5f) / static_cast<float>(rows) : 0.0f;
            x[is_anchor] = i == static_cast<std::size_t>(clusters.anchors[c]) ? 1.0f : 0.0f;
            x[weighted_coverage] = clusters.relevance[i];
        }
        rank_cluster(c, w, out);
        redundancy_of_cluster(c, w, out);
    }
}

}  // namespace marginmerge
