#pragma once

#include <span>
#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/jobs/presets.h"

namespace marginmerge {

struct CompressPagesOptions {
    RecipeChoice recipe;
    ScalarType type = ScalarType::f32;  ///< of the result
    std::size_t threads = 0;            ///< 0: all cores; the result does not depend on it
    std::vector<std::string> ids;       ///< of the pages; empty: decimal index
    std::vector<PatchGrid> grids;       ///< of the pages; empty: unknown
    Progress progress;
};

struct CompressPagesReport {
    MultiVectorSet pages;  ///< with owners and the recipe
    Recipe recipe;
    std::vector<std::string> notes;
};

/// Compresses pages that lie in memory, each where it is. `model` may be null, for recipes that need none. The vectors
/// are those that `compress` writes for the same pages.
CompressPagesReport compress_pages(std::span<const VectorsView> pages, const Model* model,
                                   const CompressPagesOptions& options = {});

/// The same for a set; its ids and grids are used where the options give none.
CompressPagesReport compress_pages(const MultiVectorSet& pages, const Model* model,
                                   const CompressPagesOptions& options = {});

}  // namespace marginmerge
