#include "merge/clusters.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/products.h"

namespace marginmerge {

void group_clusters(ConstMatrix v, std::span<const std::int32_t> assign, std::size_t k, ClusterLists& out) {
    const std::size_t n = v.rows;
    out.begin.assign(k + 1, 0);
    for (const auto c : assign) ++out.begin[static_cast<std::size_t>(c) + 1];
    for (std::size_t c = 0; c < k; ++c) out.begin[c + 1] += out.begin[c];
    out.members.resize(n);
    out.vectors.reshape(n, v.cols);
    for (std::size_t i = 0; i < n; ++i) {
        // begin[c] serves as the write position and is put back below.
        const auto position = static_cast<std::size_t>(out.begin[static_cast<std::size_t>(assign[i])]++);
        out.members[position] = static_cast<std::int32_t>(i);
        std::copy_n(v.row(i), v.cols, out.vectors.row(position));
    }
    for (std::size_t c = k; c > 0; --c) out.begin[c] = out.begin[c - 1];
    out.begin[0] = 0;
}

void assign_to_anchors(ConstMatrix v, std::span<const std::int32_t> anchors, const KnownNearest& known,
                       AnchorRows& rows, std::vector<std::int32_t>& assign, std::vector<float>& similarity) {
    const std::size_t k = anchors.size();
    const std::size_t rest = k - known.anchors;
    rows.order.resize(rest);
    std::iota(rows.order.begin(), rows.order.end(), static_cast<std::int32_t>(known.anchors));
    std::sort(rows.order.begin(), rows.order.end(), [&](std::int32_t a, std::int32_t b) {
        return anchors[static_cast<std::size_t>(a)] < anchors[static_cast<std::size_t>(b)];
    });
    rows.vectors.reshape(rest, v.cols);
    for (std::size_t r = 0; r < rest; ++r)
        std::copy_n(v.row(static_cast<std::size_t>(anchors[static_cast<std::size_t>(rows.order[r])])), v.cols,
                    rows.vectors.row(r));
    assign.resize(v.rows);
    similarity.resize(v.rows);
    if (rest > 0) nearest(v, rows.vectors, assign, similarity);
    if (known.anchors == 0) {
        for (auto& c : assign) c = rows.order[static_cast<std::size_t>(c)];
    } else {
        rows.number.resize(v.rows);
        for (std::size_t c = 0; c < k; ++c)
            rows.number[static_cast<std::size_t>(anchors[c])] = static_cast<std::int32_t>(c);
        for (std::size_t i = 0; i < v.rows; ++i) {
            std::int32_t patch = known.patch[i];
            if (rest > 0) {
                const auto other = anchors[static_cast<std::size_t>(rows.order[static_cast<std::size_t>(assign[i])])];
                const float s = known.similarity[i];
                if (similarity[i] > s || (similarity[i] == s && other < patch))
                    patch = other;
                else
                    similarity[i] = s;
            } else {
                similarity[i] = known.similarity[i];
            }
            assign[i] = rows.number[static_cast<std::size_t>(patch)];
        }
    }
    for (std::size_t c = 0; c < k; ++c) {
        const auto patch = static_cast<std::size_t>(anchors[c]);
        if (assign[patch] == static_cast<std::int32_t>(c)) continue;
        assign[patch] = static_cast<std::int32_t>(c);  // it lost a tie against a copy of itself
        similarity[patch] = dot(v.row(patch), v.row(patch), v.cols);
    }
}

void cluster_centroids(const ClusterLists& lists, std::span<const float> weight, MutMatrix out) {
    const std::size_t d = out.cols;
    for (std::size_t c = 0; c < lists.clusters(); ++c) {
        float* sum = out.row(c);
        std::fill_n(sum, d, 0.0f);
        for (std::size_t p = lists.first(c); p < lists.first(c) + lists.size(c); ++p) {
            const float w = weight.empty() ? 1.0f : weight[lists.patch(p)];
            add_scaled(w, lists.vectors.row(p), sum, d);
        }
        const float norm = std::sqrt(dot(sum, sum, d));
        if (norm > 1e-12f && std::isfinite(norm)) {
            const float scale = 1.0f / norm;
            for (std::size_t j = 0; j < d; ++j) sum[j] *= scale;
        } else if (lists.size(c) > 0) {
            std::copy_n(lists.vectors.row(lists.first(c)), d, sum);
        }
    }
}

}  // namespace marginmerge
