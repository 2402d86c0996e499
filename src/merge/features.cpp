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
constexpr std::size_t neighbours = 5;

// The mean of the up to five largest values of a row, leaving out position `self`.
float top_mean(const float* values, std::size_t count, std::size_t self) {
    float top[neighbours];
    std::fill_n(top, neighbours, -3.0e38f);
    const auto offer = [&](float x) {
        if (!(x > top[neighbours - 1])) return;
        std::size_t at = neighbours - 1;
        for (; at > 0 && top[at - 1] < x; --at) top[at] = top[at - 1];
        top[at] = x;
    };
    const auto scan = [&](std::size_t begin, std::size_t end) {
        std::size_t j = begin;
        // Few values enter the list, so eight are looked at together first.
        for (; j + 8 <= end; j += 8) {
            float high[4];
            for (std::size_t l = 0; l < 4; ++l) high[l] = std::max(values[j + l], values[j + l + 4]);
            if (std::max(std::max(high[0], high[1]), std::max(high[2], high[3])) > top[neighbours - 1])
                for (std::size_t l = 0; l < 8; ++l) offer(values[j + l]);
        }
        for (; j < end; ++j) offer(values[j]);
    };
    scan(0, self);
    scan(self + 1, count);
    const std::size_t used = std::min(neighbours, count - 1);
    if (used == 0) return 0.0f;
    return std::accumulate(top, top + used, 0.0f) / static_cast<float>(used);
}

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
        w.gram.reshape(rows, size);
        product(members.middle_rows(begin, rows), members, w.gram);
        for (std::size_t r = 0; r < rows; ++r)
            out(lists.patch(first + begin + r), local_redundancy) = top_mean(w.gram.row(r), size, begin + r);
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
    for (std::size_t c = 0; c < k; ++c) {
        const auto size = static_cast<float>(lists.size(c));
        for (std::size_t p = lists.first(c); p < lists.first(c) + lists.size(c); ++p) {
            const std::size_t i = lists.patch(p);
            const float* vector = lists.vectors.row(p);
            float* x = out.row(i);
            x[anchor_similarity] = clusters.anchor_cosine[i];
            x[uniform_similarity] = dot(vector, w.uniform_centroids.row(c), v.cols);
            x[response_similarity] = dot(vector, w.response_centroids.row(c), v.cols);
            x[importance] = clusters.relevance[i];
            x[log_size] = std::log1p(size);
            x[relative_size] = size / static_cast<float>(v.rows);
            const bool inside = placed && i < columns * rows;
            x[column] = inside ? (static_cast<float>(i % columns) + 0.5f) / static_cast<float>(columns) : 0.0f;
            x[row] = inside ? (static_cast<float>(i / columns) + 0.5f) / static_cast<float>(rows) : 0.0f;
            x[is_anchor] = i == static_cast<std::size_t>(clusters.anchors[c]) ? 1.0f : 0.0f;
            const auto s =
                response_statistics(w.responses.responses.row(i), w.responses.omega.data(), w.responses.omega.size());
            x[mean_response] = s.mean;
            x[max_response] = s.high;
            x[response_deviation] = s.deviation;
            x[weighted_coverage] = clusters.relevance[i];
        }
        rank_cluster(c, w, out);
        redundancy_of_cluster(c, w, out);
    }
}

}  // namespace marginmerge
