#pragma once

#include <cstddef>
#include <string>

#include "jobs/page_memory.h"
#include "marginmerge/merge/recipe.h"
#include "merge/workspace.h"

namespace marginmerge {

/// Compresses pages one after another on one thread; everything it needs is kept from page to page.
class PageWorker {
public:
    /// One stored page of a corpus. `index` is its position there, which seeds its randomness; `source` and `id` name
    /// it in errors. Vectors that are not finite are refused.
    const CompressedPage& compress(VectorsView vectors, PatchGrid grid, std::size_t index, const Model& model,
                                   const Recipe& recipe, const std::string& source, const std::string& id);
    /// Vectors seen so far that are not of unit norm.
    std::size_t odd_norms() const { return odd_norms_; }

private:
    PageWorkspace workspace_;
    CompressedPage page_;
    PageMemory memory_;
    Matrix vectors_;
    std::size_t odd_norms_ = 0;
};

/// What a report says about vectors that are not of unit norm.
std::string odd_norms_note(std::size_t count);

/// Error(invalid_argument) when the model is not for vectors of this dimension; `source` names it.
void check_model_dimension(const Model& model, std::size_t dim, const std::string& source);

}  // namespace marginmerge
