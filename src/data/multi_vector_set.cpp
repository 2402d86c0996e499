#include "marginmerge/data/multi_vector_set.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/fail.h"

namespace marginmerge {

struct MultiVectorSet::IdIndex {
    std::once_flag once;
    std::unordered_map<std::string, std::size_t> positions;
};

namespace {

const std::int64_t no_documents[1] = {0};

void check_offsets(std::span<const std::int64_t> offsets, std::size_t total, const char* field,
                   const std::string& source) {
    if (offsets.empty()) fail(ErrorCode::corrupt, "{}: {}: expected at least one entry, found none", source, field);
    if (offsets.front() != 0)
        fail(ErrorCode::corrupt, "{}: {}: expected 0 as the first entry, found {}", source, field, offsets.front());
    for (std::size_t i = 1; i < offsets.size(); ++i) {
        if (offsets[i] < offsets[i - 1])
            fail(ErrorCode::corrupt, "{}: {}: expected ascending entries, found {} after {} at {}", source, field,
                 offsets[i], offsets[i - 1], i);
    }
    if (static_cast<std::size_t>(offsets.back()) != total)
        fail(ErrorCode::corrupt, "{}: {}: expected {} as the last entry, found {}", source, field, total,
             offsets.back());
}

void check_ids(const std::vector<std::string>& ids, std::size_t n, const std::string& source) {
    if (ids.empty()) return;
    if (ids.size() != n) fail(ErrorCode::corrupt, "{}: ids: expected {} of them, found {}", source, n, ids.size());
    std::vector<const std::string*> sorted;
    sorted.reserve(n);
    for (const auto& id : ids) sorted.push_back(&id);
    std::sort(sorted.begin(), sorted.end(), [](auto* a, auto* b) { return *a < *b; });
    for (std::size_t i = 1; i < n; ++i) {
        if (*sorted[i] == *sorted[i - 1])
            fail(ErrorCode::corrupt, "{}: ids: expected unique ids, found '{}' twice", source, *sorted[i]);
    }
}

void check_owner(const MultiVectorParts& p, const std::string& source) {
    check_offsets(p.source_offsets, p.owner.size(), "source_offsets", source);
    for (std::size_t i = 0; i + 1 < p.source_offsets.size(); ++i) {
        const std::int64_t kept = p.offsets[i + 1] - p.offsets[i];
        for (std::int64_t j = p.source_offsets[i]; j < p.source_offsets[i + 1]; ++j) {
            const std::int32_t c = p.owner[static_cast<std::size_t>(j)];
            if (c < -1 || c >= kept)
                fail(ErrorCode::corrupt, "{}: owner: expected -1 to {} for document {}, found {}", source, kept - 1, i,
                     c);
        }
    }
}

}  // namespace

MultiVectorSet::MultiVectorSet() {
    MultiVectorParts empty;
    empty.offsets = no_documents;
    parts_ = std::make_shared<const MultiVectorParts>(std::move(empty));
    id_index_ = std::make_shared<IdIndex>();
}

MultiVectorSet::MultiVectorSet(MultiVectorParts p, const std::string& source) {
    check_offsets(p.offsets, p.vectors.rows, "offsets", source);
    const std::size_t n = p.offsets.size() - 1;
    check_ids(p.ids, n, source);
    if (!p.grid.empty() && p.grid.size() != 2 * n)
        fail(ErrorCode::corrupt, "{}: grid: expected {} x 2 entries, found {} in all", source, n, p.grid.size());
    if (!p.boxes.empty() && p.boxes.size() != 4 * p.vectors.rows)
        fail(ErrorCode::corrupt, "{}: boxes: expected {} x 4 entries, found {} in all", source, p.vectors.rows,
             p.boxes.size());
    if (!p.source_offsets.empty()) {
        if (p.source_offsets.size() != n + 1)
            fail(ErrorCode::corrupt, "{}: source_offsets: expected {} entries, found {}", source, n + 1,
                 p.source_offsets.size());
        check_owner(p, source);
    }
    parts_ = std::make_shared<const MultiVectorParts>(std::move(p));
    id_index_ = std::make_shared<IdIndex>();
}

std::size_t MultiVectorSet::max_vectors() const {
    std::size_t most = 0;
    for (std::size_t i = 0; i < size(); ++i) most = std::max(most, vectors_of(i));
    return most;
}

std::string MultiVectorSet::id(std::size_t i) const { return parts_->ids.empty() ? std::to_string(i) : parts_->ids[i]; }

std::optional<std::size_t> MultiVectorSet::find(std::string_view id) const {
    std::call_once(id_index_->once, [&] {
        id_index_->positions.reserve(size());
        for (std::size_t i = 0; i < size(); ++i) id_index_->positions.emplace(this->id(i), i);
    });
    const auto found = id_index_->positions.find(std::string(id));
    if (found == id_index_->positions.end()) return std::nullopt;
    return found->second;
}

PatchGrid MultiVectorSet::grid(std::size_t i) const {
    if (!has_grid()) return {};
    return {parts_->grid[2 * i], parts_->grid[2 * i + 1]};
}

std::span<const float> MultiVectorSet::boxes(std::size_t i) const {
    if (!has_boxes()) return {};
    return parts_->boxes.subspan(4 * static_cast<std::size_t>(parts_->offsets[i]), 4 * vectors_of(i));
}

std::span<const std::int32_t> MultiVectorSet::owner(std::size_t i) const {
    if (!has_owner()) return {};
    const auto first = static_cast<std::size_t>(parts_->source_offsets[i]);
    return parts_->owner.subspan(first, static_cast<std::size_t>(parts_->source_offsets[i + 1]) - first);
}

MultiVectorSet MultiVectorSet::subset(std::span<const std::size_t> positions) const {
    struct Storage {
        std::vector<char> vectors;
        std::vector<std::int64_t> offsets{0}, source_offsets{0};
        std::vector<std::int32_t> grid, owner;
        std::vector<float> boxes;
    };
    auto s = std::make_shared<Storage>();
    MultiVectorParts p;
    for (const std::size_t i : positions) {
        const VectorsView v = vectors(i);
        const auto* bytes = static_cast<const char*>(v.data);
        s->vectors.insert(s->vectors.end(), bytes, bytes + v.bytes());
        s->offsets.push_back(s->offsets.back() + static_cast<std::int64_t>(v.rows));
        p.ids.push_back(id(i));
        if (has_grid()) s->grid.insert(s->grid.end(), {grid(i).columns, grid(i).rows});
        const auto b = boxes(i);
        s->boxes.insert(s->boxes.end(), b.begin(), b.end());
        const auto o = owner(i);
        s->owner.insert(s->owner.end(), o.begin(), o.end());
        s->source_offsets.push_back(s->source_offsets.back() + static_cast<std::int64_t>(o.size()));
    }
    p.vectors = {s->vectors.data(), type(), static_cast<std::size_t>(s->offsets.back()), dim()};
    p.offsets = s->offsets;
    p.grid = s->grid;
    p.boxes = s->boxes;
    if (has_owner()) {
        p.source_offsets = s->source_offsets;
        p.owner = s->owner;
    }
    p.metadata = metadata();
    p.storage = s;
    return MultiVectorSet(std::move(p), "subset");
}

}  // namespace marginmerge
