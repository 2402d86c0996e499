// Spherical k-means of one page, started from the recipe's anchors; representatives in pick order.
#include "merge/kmeans.h"

#include <algorithm>
#include <cmath>

#include "kernels/products.h"
#include "merge/construct.h"

namespace marginmerge {

namespace {

constexpr std::size_t rounds = 8;

// Sums of the members of each centre, and how many there are.
void sum_members(ConstMatrix v, std::span<const std::int32_t> assign, std::size_t k, PageWorkspace& w) {
    w.other.reshape(k, v.cols);
    std::fill_n(w.other.data(), w.other.size(), 0.0f);
    w.values.assign(v.rows, 1.0f);
    add_to_clusters(v, assign, w.values, w.other);
    w.sizes.assign(k, 0.0f);
    for (const auto c : assign) w.sizes[static_cast<std::size_t>(c)] += 1.0f;
}

}  // namespace

void page_kmeans(const RepresentativeRequest& request, PageWorkspace& w, Matrix& centres, std::vector<float>& mean_norm,
                 std::vector<std::int32_t>& owner) {
    const ConstMatrix v = request.page.vectors;
    const std::size_t k = request.k;
    const std::size_t d = v.cols;
    if (anchor_rule(request.recipe.anchors).needs_prototypes)
        page_responses(request.page, request.model, request.recipe, w);
    else
        w.responses.omega.clear();
    choose_anchors(request.page, request.recipe, k, w);
    centres.reshape(k, d);
    for (std::size_t c = 0; c < k; ++c)
        std::copy_n(v.row(static_cast<std::size_t>(w.clusters.anchors[c])), d, centres.row(c));
    owner.resize(v.rows);
    mean_norm.assign(k, 1.0f);
    w.clusters.anchor_cosine.resize(v.rows);
    for (std::size_t round = 0; round < rounds; ++round) {
        w.labels.assign(owner.begin(), owner.end());
        nearest(v, centres, owner, w.clusters.anchor_cosine);
        if (round > 0 && std::equal(owner.begin(), owner.end(), w.labels.begin())) break;
        sum_members(v, owner, k, w);
        for (std::size_t c = 0; c < k; ++c) {
            const float* sum = w.other.row(c);
            const float norm = std::sqrt(dot(sum, sum, d));
            // A centre without members, or whose members cancel, stays where it was.
            if (w.sizes[c] < 1 || norm < 1e-6f * w.sizes[c]) continue;
            mean_norm[c] = norm / w.sizes[c];
            for (std::size_t j = 0; j < d; ++j) centres(c, j) = sum[j] / norm;
        }
    }
}

void represent_kmeans(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    page_kmeans(request, w, out.representatives, w.weight, out.owner);
    if (request.recipe.unit_norm) return;
    // A unit centroid answers less than the best of a diffuse cluster's members; |mean|^-1/2 gives
    // back part of that. It is at least 1 and capped for clusters that nearly cancel.
    for (std::size_t c = 0; c < request.k; ++c) {
        const float scale = 1.0f / std::sqrt(std::max(w.weight[c], 0.1f));
        for (float& x : out.representatives.view().row_span(c)) x *= scale;
    }
}

}  // namespace marginmerge
