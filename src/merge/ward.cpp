// Ward hierarchical pooling: agglomerative clustering that at each step joins the two clusters whose
// union grows the squared error least, cut at k clusters; each is represented by its unit mean.
#include <algorithm>
#include <numeric>

#include "merge/clusters.h"
#include "merge/importance_order.h"
#include "merge/registry.h"
#include "merge/ward_tree.h"

namespace marginmerge {

namespace {

std::int32_t root_of(std::vector<std::int32_t>& parent, std::int32_t i) {
    while (parent[static_cast<std::size_t>(i)] != i) {
        auto& up = parent[static_cast<std::size_t>(i)];
        up = parent[static_cast<std::size_t>(up)];
        i = up;
    }
    return i;
}

}  // namespace

void represent_ward(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    const ConstMatrix v = request.page.vectors;
    const std::size_t n = v.rows;
    std::vector<WardMerge> merges = ward_tree(v, w);
    // A chain's merges come in no particular order; the tree is cut by height.
    std::stable_sort(merges.begin(), merges.end(),
                     [](const WardMerge& x, const WardMerge& y) { return x.height < y.height; });
    w.links.resize(n);
    std::iota(w.links.begin(), w.links.end(), 0);
    for (std::size_t m = 0; m + request.k < n; ++m) {
        const auto a = root_of(w.links, merges[m].a);
        const auto b = root_of(w.links, merges[m].b);
        w.links[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
    }
    w.labels.assign(n, -1);
    std::int32_t found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        auto& label = w.labels[static_cast<std::size_t>(root_of(w.links, static_cast<std::int32_t>(i)))];
        if (label < 0) label = found++;
        out.owner[i] = label;
    }
    group_clusters(v, out.owner, request.k, w.lists);
    cluster_centroids(w.lists, {}, out.representatives);
    importance_order(w, out);
}

}  // namespace marginmerge
