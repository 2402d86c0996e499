#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Columns and rows of a page's patch grid; zero when not known.
struct PatchGrid {
    std::int32_t columns = 0;
    std::int32_t rows = 0;
    bool known() const { return columns > 0 && rows > 0; }
};

/// The parts of a set, as a reader found them or a producer made them. All spans are borrowed
/// from `storage`, which may be a memory map or anything else that keeps them alive.
struct MultiVectorParts {
    VectorsView vectors;                           ///< [N,d], all documents one after another
    std::span<const std::int64_t> offsets;         ///< [n+1], ascending, first 0, last N
    std::vector<std::string> ids;                  ///< n of them; empty: decimal index
    std::span<const std::int32_t> grid;            ///< [n,2] columns, rows; may be empty
    std::span<const float> boxes;                  ///< [N,4] left, top, right, bottom; may be empty
    std::span<const std::int64_t> source_offsets;  ///< [n+1], compressed sets only
    std::span<const std::int32_t> owner;           ///< [source N], compressed sets only
    std::map<std::string, std::string> metadata;   ///< schema, version, provenance
    std::shared_ptr<const void> storage;
};

/// Ragged documents or queries: many vectors each, any dimension, any storage type. Immutable and
/// cheap to copy; copies share the storage. Invariants (offsets ascending and in range, ids unique
/// and as many as documents, owners in range) are checked on construction, so code that holds a
/// set need not check again.
class MultiVectorSet {
public:
    MultiVectorSet();
    /// `source` names the file in error messages. Throws Error(corrupt) when an invariant fails.
    MultiVectorSet(MultiVectorParts parts, const std::string& source);

    std::size_t size() const { return parts_->offsets.size() - 1; }
    std::size_t dim() const { return parts_->vectors.dim; }
    ScalarType type() const { return parts_->vectors.type; }
    std::size_t total_vectors() const { return parts_->vectors.rows; }
    std::size_t vectors_of(std::size_t i) const {
        return static_cast<std::size_t>(parts_->offsets[i + 1] - parts_->offsets[i]);
    }
    std::size_t max_vectors() const;

    VectorsView all_vectors() const { return parts_->vectors; }
    VectorsView vectors(std::size_t i) const {
        return parts_->vectors.middle_rows(static_cast<std::size_t>(parts_->offsets[i]), vectors_of(i));
    }
    std::span<const std::int64_t> offsets() const { return parts_->offsets; }

    std::string id(std::size_t i) const;
    /// The index of an id, or nothing. The look-up table is built on first use (thread-safe).
    std::optional<std::size_t> find(std::string_view id) const;

    bool has_grid() const { return !parts_->grid.empty(); }
    PatchGrid grid(std::size_t i) const;
    bool has_boxes() const { return !parts_->boxes.empty(); }
    /// [vectors_of(i), 4]; empty when the set has no boxes.
    std::span<const float> boxes(std::size_t i) const;

    /// True for a compressed set: then owner(i) maps each original vector of document i to the
    /// representative (0-based within the document) that stands for it, -1 for none.
    bool has_owner() const { return !parts_->source_offsets.empty(); }
    std::span<const std::int32_t> owner(std::size_t i) const;
    std::size_t source_vectors_of(std::size_t i) const { return owner(i).size(); }

    const std::map<std::string, std::string>& metadata() const { return parts_->metadata; }

    /// The documents at these positions, in this order, sharing the ids but owning copied vectors.
    MultiVectorSet subset(std::span<const std::size_t> positions) const;

private:
    struct IdIndex;
    std::shared_ptr<const MultiVectorParts> parts_;
    std::shared_ptr<IdIndex> id_index_;
};

/// Builds a set in memory, document by document. Used by readers, synthetic corpora and tests.
class MultiVectorBuilder {
public:
    explicit MultiVectorBuilder(std::size_t dim) : dim_(dim) {}
    /// Adds one document; `vectors` has dim columns. An empty id means its decimal index.
    /// `boxes` is empty or [n,4]: the place of each vector in page fractions.
    void add(std::string id, ConstMatrix vectors, PatchGrid grid = {}, std::span<const float> boxes = {});
    std::size_t size() const { return ids_.size(); }
    /// Finishes the set as F32; the builder is empty afterwards.
    MultiVectorSet finish();

private:
    std::size_t dim_;
    std::vector<float> values_;
    std::vector<std::int64_t> offsets_{0};
    std::vector<std::string> ids_;
    std::vector<std::int32_t> grid_;
    std::vector<float> boxes_;
    bool any_grid_ = false;
    bool any_boxes_ = false;
};

}  // namespace marginmerge
