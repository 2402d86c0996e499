#pragma once

#include <span>
#include <string_view>

#include "marginmerge/merge/recipe.h"
#include "merge/page.h"
#include "merge/workspace.h"

namespace marginmerge {

/// One page to be represented by k vectors; k is at least 1 and at most its vectors.
struct RepresentativeRequest {
    const PageInput& page;
    const Model& model;
    const Recipe& recipe;
    std::size_t k;
};

/// One way to make representatives. `build` fills out.representatives (already [k,d]) and out.owner
/// (already n times -1). Adding one is one file with a build function and a line in registry.cpp.
struct RepresentativeRule {
    std::string_view name;
    std::string_view summary;
    bool uses_anchors;  ///< the recipe's anchor rule decides or seeds the clusters
    bool needs_prototypes;
    bool needs_network;
    bool needs_probes;          ///< then it heeds what is remembered of a page as well
    Budget::Rounding rounding;  ///< how the method rounds k
    void (*build)(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
};

std::span<const RepresentativeRule> representative_rules();
/// Error(invalid_argument) lists the names there are.
const RepresentativeRule& representative_rule(std::string_view name);

/// Error(invalid_argument) that says what the model lacks for this recipe; checks the names too.
void check_recipe(const Recipe& recipe, const Model& model);

// The rules, each in the file of its name.
void represent_anchor(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_uniform(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_response(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_learned(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_fitted(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_kmeans(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_ward(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);
void represent_tome(const RepresentativeRequest&, PageWorkspace&, CompressedPage&);

}  // namespace marginmerge
