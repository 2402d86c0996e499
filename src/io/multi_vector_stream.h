#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// Writes a multi-vector file document by document when nobody knows yet how many there will be:
/// vectors go straight to disk behind room for the header, the rest (offsets, ids, grids) is kept
/// until commit(). Until then the file has no header, so nothing can mistake it for a finished one.
class MultiVectorStream {
public:
    MultiVectorStream(const std::filesystem::path& path, std::size_t dim, ScalarType type);

    /// Adds rows of the stream's type and dimension to the document being built; `boxes` is [rows,4]
    /// or empty.
    void append(VectorsView rows, std::span<const float> boxes = {});
    /// Ends the document. Ids are the caller's business: unique, valid UTF-8, without line breaks.
    void end_document(const std::string& id, PatchGrid grid = {});

    std::size_t documents() const { return offsets_.size() - 1; }
    std::uint64_t vectors() const { return rows_; }

    /// Finishes the file with these metadata beside schema, version and writer; returns its size.
    std::uint64_t commit(std::map<std::string, std::string> metadata);

private:
    std::uint64_t commit_in_place(const std::map<std::string, std::string>& metadata);
    std::uint64_t commit_reordered(const std::map<std::string, std::string>& metadata);
    std::vector<float> boxes() const;

    std::filesystem::path path_;
    std::size_t dim_;
    ScalarType type_;
    AtomicFile file_;
    std::uint64_t rows_ = 0;
    std::vector<std::int64_t> offsets_{0};
    std::string ids_;
    std::vector<std::int32_t> grid_;
    bool any_grid_ = false;
    std::vector<float> boxes_;       ///< of the rows from boxes_begin_ on
    std::uint64_t boxes_begin_ = 0;  ///< rows before the first box; those get zeros
};

}  // namespace marginmerge
