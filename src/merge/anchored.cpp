// Fixed representatives of anchor clusters: the anchor, the plain mean, the response-weighted mean;
// and the learned one. All are unit vectors, in pick order.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/products.h"
#include "merge/construct.h"
#include "merge/features.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

// Prototypes are only asked when somebody uses the answers.
void anchors_and_clusters(const RepresentativeRequest& request, bool with_responses, PageWorkspace& w,
                          CompressedPage& out) {
    if (with_responses || anchor_rule(request.recipe.anchors).needs_prototypes)
        page_responses(request.page, request.model, request.recipe, w);
    else
        w.responses.omega.clear();
    choose_anchors(request.page, request.recipe, request.k, w);
    cluster_page(request.page, w);
    out.owner.assign(w.clusters.assign.begin(), w.clusters.assign.end());
}

// A model may have learned gamma in r = m |m|^-gamma, m the weighted mean of a cluster; the paper's is 1.
// The representatives come in as units m / |m|.
void free_norms(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    if (request.model.settings.find("norm_power") == std::string::npos) return;
    const auto settings = nlohmann::json::parse(request.model.settings, nullptr, false);
    if (!settings.is_object()) return;
    const auto learned = settings.find("learned");
    if (learned == settings.end() || !learned->is_object()) return;
    const double gamma = learned->value("norm_power", 1.0);
    const std::size_t d = request.page.vectors.cols;
    std::vector<double> norm(request.k, 0.0);
    for (std::size_t i = 0; i < w.clusters.assign.size(); ++i) {
        const auto c = static_cast<std::size_t>(w.clusters.assign[i]);
        norm[c] += w.weight[i] * dot(out.representatives.row(c), request.page.vectors.row(i), d);
    }
    for (std::size_t c = 0; c < request.k; ++c) {
        const auto scale = static_cast<float>(std::pow(std::max(norm[c], 1e-2), 1 - gamma));
        for (float& x : out.representatives.view().row_span(c)) x *= scale;
    }
}

}  // namespace

void represent_anchor(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    anchors_and_clusters(request, false, w, out);
    const ConstMatrix v = request.page.vectors;
    for (std::size_t c = 0; c < request.k; ++c)
        std::copy_n(v.row(static_cast<std::size_t>(w.clusters.anchors[c])), v.cols, out.representatives.row(c));
}

void represent_uniform(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    anchors_and_clusters(request, false, w, out);
    cluster_centroids(w.lists, {}, out.representatives);
}

void represent_response(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    anchors_and_clusters(request, true, w, out);
    base_weights(request.recipe, w);
    page_alpha({}, w);
    cluster_centroids(w.lists, w.weight, out.representatives);
}

void represent_learned(const RepresentativeRequest& request, PageWorkspace& w, CompressedPage& out) {
    anchors_and_clusters(request, true, w, out);
    base_weights(request.recipe, w);
    compute_features(request.page, request.model.uses_grid, w, w.clusters.features);
    page_residuals(request.model, request.recipe, w);
    page_alpha(w.residual, w);
    cluster_centroids(w.lists, w.weight, out.representatives);
    if (!request.recipe.unit_norm) free_norms(request, w, out);
}

}  // namespace marginmerge
