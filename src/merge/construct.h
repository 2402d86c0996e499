#pragma once

#include "marginmerge/merge/recipe.h"
#include "merge/page.h"
#include "merge/workspace.h"

namespace marginmerge {

// The construction of one page, step by step. Each step reads and writes the workspace.

/// Responses to the model's prototypes, if it has any: w.responses.
void page_responses(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w);

/// Anchors by the recipe's rules: w.selection and w.clusters.anchors. Needs page_responses when
/// the rules do.
void choose_anchors(const PageInput& page, const Recipe& recipe, std::size_t k, PageWorkspace& w);

/// Nearest anchors and member lists: w.clusters.assign, .anchor_cosine, w.lists.
void cluster_page(const PageInput& page, PageWorkspace& w);

/// w.clusters.relevance and .base_weight = exp(cos/tau_a) (s+epsilon)^p.
void base_weights(const Recipe& recipe, PageWorkspace& w);

/// Residuals of the network into w.residual from w.clusters.features; the model must have one.
void page_residuals(const Model& model, const Recipe& recipe, PageWorkspace& w);

/// alpha_i into w.weight: base weight times exp(residual) when residuals are given, normalised in
/// each cluster.
void page_alpha(std::span<const float> residual, PageWorkspace& w);

/// Everything the weighting network sees of a page. The model must have prototypes.
void build_clusters(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w,
                    PageClusters& out);
PageClusters build_clusters(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w);

/// The whole construction by the recipe's representative rule (merge/registry.h). A page without
/// vectors gives none.
void compress_page(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w,
                   CompressedPage& out);
CompressedPage compress_page(const PageInput& page, const Model& model, const Recipe& recipe, PageWorkspace& w);

}  // namespace marginmerge
