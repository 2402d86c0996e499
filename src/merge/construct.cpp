#include "merge/construct.h"

#include <algorithm>
#include <cmath>

#include "core/fail.h"
#include "kernels/elementwise.h"
#include "kernels/products.h"
#include "merge/features.h"
#include "merge/network.h"
#include "merge/registry.h"

namespace marginmerge {

namespace {

void check_dimensions(const PageInput& page, const Model& model) {
    const std::size_t d = page.vectors.cols;
    if (!model.bank.empty() && model.bank.prototypes.cols() != d)
        fail(ErrorCode::invalid_argument, "page has {} dimensions, the model's prototypes have {}", d,
             model.bank.prototypes.cols());
    if (!model.probes.empty() && model.probes.tokens.cols() != d)
        fail(ErrorCode::invalid_argument, "page has {} dimensions, the model's probes have {}", d,
             model.probes.tokens.cols());
    if (!model.alignment.change.empty() && model.alignment.change.cols() != d)
        fail(ErrorCode::invalid_argument, "page has {} dimensions, the model's alignment has {}", d,
             model.alignment.change.cols());
}

// Representatives as the judgements want them, see Alignment.
void align_page(const Alignment& alignment, std::size_t page_length, bool unit_norm, PageWorkspace& w, Matrix& r) {
    const auto scale =
        static_cast<float>(std::pow(static_cast<double>(page_length) / alignment.usual_length, alignment.length_power));
    if (!alignment.change.empty()) {
        w.changed.reshape(r.rows(), r.cols());
        product(r, alignment.change, w.changed);
        add_scaled(1, w.changed.data(), r.data(), r.size());
    }
    for (float& x : r.flat()) x *= scale;
    if (unit_norm) normalise_rows(r);
}

// The steps up to the features, in w.clusters.
void build_in_place(const PageInput& page, const Model& model, const Recipe& recipe, std::size_t k, PageWorkspace& w) {
    page_responses(page, model, recipe, w);
    choose_anchors(page, recipe, k, w);
    cluster_page(page, w);
    base_weights(recipe, w);
    compute_features(page, model.uses_grid, w, w.clusters.features);
}

}  // namespace

void page_responses(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w) {
    if (model.bank.empty()) {
        w.responses.omega.clear();
        return;
    }
    w.responses.omega = model.bank.weights();
    compute_responses(page.vectors, model.bank.prototypes, recipe.constants.tau_c, w.responses);
}

void choose_anchors(const PageInput& page, const Recipe& recipe, std::size_t k, PageWorkspace& w) {
    AnchorRequest request;
    request.vectors = page.vectors;
    request.count = k;
    request.responses = w.responses.omega.empty() ? nullptr : &w.responses;
    request.fill = &fill_rule(recipe.fill);
    request.seed = page.seed;
    w.selection.compared = 0;
    anchor_rule(recipe.anchors).select(request, w.anchor_work, w.selection);
    w.clusters.anchors.assign(w.selection.order.begin(), w.selection.order.end());
}

void cluster_page(const PageInput& page, PageWorkspace& w) {
    const AnchorSelection& s = w.selection;
    KnownNearest known;
    // A caller may have put other anchors in place of the selected ones.
    if (s.nearest.size() == page.vectors.rows && std::ranges::equal(s.order, w.clusters.anchors))
        known = {s.compared, s.nearest, s.similarity};
    assign_to_anchors(page.vectors, w.clusters.anchors, known, w.anchor_rows, w.clusters.assign,
                      w.clusters.anchor_cosine);
    group_clusters(page.vectors, w.clusters.assign, w.clusters.anchors.size(), w.lists);
}

void base_weights(const Recipe& recipe, PageWorkspace& w) {
    if (w.responses.omega.empty()) fail(ErrorCode::invalid_argument, "expected a model with prototypes, found none");
    PageClusters& c = w.clusters;
    const std::size_t n = c.assign.size();
    c.relevance.assign(w.responses.relevance.begin(), w.responses.relevance.end());
    c.base_weight.resize(n);
    const auto scale = static_cast<float>(1.0 / recipe.constants.tau_a);
    const auto epsilon = static_cast<float>(recipe.constants.epsilon);
    const auto p = static_cast<float>(recipe.constants.p);
    // Vectors kept at norms above 1 must not overflow; unit vectors stay far below this.
    for (std::size_t i = 0; i < n; ++i) c.base_weight[i] = std::min(c.anchor_cosine[i] * scale, 60.0f);
    exp_of(c.base_weight, c.base_weight);
    for (std::size_t i = 0; i < n; ++i)
        c.base_weight[i] *= p == 0.5f ? std::sqrt(c.relevance[i] + epsilon) : std::pow(c.relevance[i] + epsilon, p);
}

void page_residuals(const Model& model, const Recipe& recipe, PageWorkspace& w) {
    if (!model.network || !model.scaling)
        fail(ErrorCode::invalid_argument, "representative learned: expected a model with a network, found none");
    standardise(w.clusters.features, *model.scaling, w.standardised);
    w.residual.resize(w.standardised.rows());
    network_residual(*model.network, w.standardised, recipe.constants.residual_clip, w.hidden, w.residual);
}

void page_alpha(std::span<const float> residual, PageWorkspace& w) {
    const auto& base = w.clusters.base_weight;
    w.weight.resize(base.size());
    if (residual.empty()) {
        std::copy(base.begin(), base.end(), w.weight.begin());
    } else {
        exp_of(residual, w.weight);
        for (std::size_t i = 0; i < base.size(); ++i) w.weight[i] *= base[i];
    }
    for (std::size_t c = 0; c < w.lists.clusters(); ++c) {
        double sum = 0;
        const std::size_t end = w.lists.first(c) + w.lists.size(c);
        for (std::size_t p = w.lists.first(c); p < end; ++p) sum += w.weight[w.lists.patch(p)];
        const auto scale = static_cast<float>(1.0 / sum);
        for (std::size_t p = w.lists.first(c); p < end; ++p) w.weight[w.lists.patch(p)] *= scale;
    }
}

void build_clusters(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w,
                    PageClusters& out) {
    check_dimensions(page, model);
    if (page.vectors.rows == 0) {
        out = PageClusters{};
        return;
    }
    build_in_place(page, model, recipe, recipe.budget.count(page.vectors.rows), w);
    if (&out != &w.clusters) out = w.clusters;
}

PageClusters build_clusters(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w) {
    PageClusters out;
    build_clusters(page, model, recipe, w, out);
    return out;
}

void compress_page(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w,
                   CompressedPage& out) {
    check_dimensions(page, model);
    const std::size_t n = page.vectors.rows;
    const std::size_t k = recipe.budget.count(n);
    out.representatives.reshape(k, page.vectors.cols);
    out.owner.assign(n, -1);
    if (n == 0) return;
    representative_rule(recipe.representative).build({page, model, recipe, k}, w, out);
    if (recipe.align && !model.alignment.empty())
        align_page(model.alignment, n, recipe.unit_norm, w, out.representatives);
}

CompressedPage compress_page(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w) {
    CompressedPage out;
    compress_page(page, model, recipe, w, out);
    return out;
}

}  // namespace marginmerge
