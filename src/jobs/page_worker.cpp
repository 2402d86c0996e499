#include "jobs/page_worker.h"

#include <cmath>

#include "core/fail.h"
#include "core/random.h"
#include "kernels/convert.h"
#include "kernels/products.h"
#include "merge/construct.h"

namespace marginmerge {

const CompressedPage& PageWorker::compress(VectorsView v, PatchGrid grid, std::size_t index, const Model& model,
                                           const Recipe& recipe, const std::string& source, const std::string& id) {
    ConstMatrix floats{static_cast<const float*>(v.data), v.rows, v.dim};
    if (v.type != ScalarType::f32) {
        vectors_.reshape(v.rows, v.dim);
        to_float(v, vectors_.data());
        floats = vectors_;
    }
    for (std::size_t r = 0; r < v.rows; ++r) {
        const float square = dot(floats.row(r), floats.row(r), v.dim);
        if (!std::isfinite(square))
            fail(ErrorCode::corrupt, "{}: document '{}' vector {}: expected finite values", source, id, r);
        odd_norms_ += std::abs(square - 1.0f) > 0.02f;
    }
    compress_page({floats, grid, mix_seed(recipe.seed, index), memory_.of(v, model, recipe)}, model, recipe, workspace_,
                  page_);
    return page_;
}

std::string odd_norms_note(std::size_t count) {
    return fmt::format("{} vectors are not of unit norm; 'marginmerge import' normalises them", count);
}

void check_model_dimension(const Model& model, std::size_t dim, const std::string& source) {
    const auto check = [&](std::size_t found, const char* what) {
        if (found != 0 && found != dim)
            fail(ErrorCode::invalid_argument, "{}: expected {} of {} dimensions like the documents, found {}", source,
                 what, dim, found);
    };
    check(model.bank.prototypes.cols(), "prototypes");
    check(model.probes.tokens.cols(), "probes");
    check(model.alignment.change.cols(), "an alignment");
}

}  // namespace marginmerge
