#include "core/fail.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

void MultiVectorBuilder::add(std::string id, ConstMatrix vectors, PatchGrid grid) {
    if (vectors.rows > 0 && vectors.cols != dim_)
        fail(ErrorCode::invalid_argument, "document '{}': expected {} dimensions, found {}", id, dim_, vectors.cols);
    values_.insert(values_.end(), vectors.data, vectors.data + vectors.size());
    offsets_.push_back(offsets_.back() + static_cast<std::int64_t>(vectors.rows));
    ids_.push_back(id.empty() ? std::to_string(ids_.size()) : std::move(id));
    grid_.insert(grid_.end(), {grid.columns, grid.rows});
    any_grid_ = any_grid_ || grid.known();
}

MultiVectorSet MultiVectorBuilder::finish() {
    struct Storage {
        std::vector<float> values;
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t> grid;
    };
    auto s = std::make_shared<Storage>();
    s->values.swap(values_);
    s->offsets.swap(offsets_);
    if (any_grid_) s->grid.swap(grid_);
    MultiVectorParts p;
    p.vectors = {s->values.data(), ScalarType::f32, static_cast<std::size_t>(s->offsets.back()), dim_};
    p.offsets = s->offsets;
    p.grid = s->grid;
    p.ids.swap(ids_);
    p.storage = s;
    offsets_.assign(1, 0);
    grid_.clear();
    any_grid_ = false;
    return MultiVectorSet(std::move(p), "builder");
}

}  // namespace marginmerge
