#include "core/fail.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

void MultiVectorBuilder::add(std::string id, ConstMatrix vectors, PatchGrid grid, std::span<const float> boxes) {
    if (vectors.rows > 0 && vectors.cols != dim_)
        fail(ErrorCode::invalid_argument, "document '{}': expected {} dimensions, found {}", id, dim_, vectors.cols);
    if (!boxes.empty() && boxes.size() != 4 * vectors.rows)
        fail(ErrorCode::invalid_argument, "document '{}': boxes: expected {} x 4 numbers, found {} in all", id,
             vectors.rows, boxes.size());
    values_.insert(values_.end(), vectors.data, vectors.data + vectors.size());
    offsets_.push_back(offsets_.back() + static_cast<std::int64_t>(vectors.rows));
    ids_.push_back(id.empty() ? std::to_string(ids_.size()) : std::move(id));
    grid_.insert(grid_.end(), {grid.columns, grid.rows});
    any_grid_ = any_grid_ || grid.known();
    any_boxes_ = any_boxes_ || !boxes.empty();
    if (any_boxes_) {  // documents without boxes get zeros, which mean "nowhere"
        boxes_.resize(4 * (static_cast<std::size_t>(offsets_.back()) - vectors.rows), 0.0F);
        boxes_.insert(boxes_.end(), boxes.begin(), boxes.end());
        boxes_.resize(4 * static_cast<std::size_t>(offsets_.back()), 0.0F);
    }
}

MultiVectorSet MultiVectorBuilder::finish() {
    struct Storage {
        std::vector<float> values;
        std::vector<std::int64_t> offsets;
        std::vector<std::int32_t> grid;
        std::vector<float> boxes;
    };
    auto s = std::make_shared<Storage>();
    s->values.swap(values_);
    s->offsets.swap(offsets_);
    if (any_grid_) s->grid.swap(grid_);
    if (any_boxes_) s->boxes.swap(boxes_);
    MultiVectorParts p;
    p.vectors = {s->values.data(), ScalarType::f32, static_cast<std::size_t>(s->offsets.back()), dim_};
    p.offsets = s->offsets;
    p.grid = s->grid;
    p.boxes = s->boxes;
    p.ids.swap(ids_);
    p.storage = s;
    offsets_.assign(1, 0);
    grid_.clear();
    boxes_.clear();
    any_grid_ = any_boxes_ = false;
    return MultiVectorSet(std::move(p), "builder");
}

}  // namespace marginmerge
