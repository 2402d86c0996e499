#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/vector_source.h"

namespace marginmerge {

/// Turns raw rows of any float type, at any alignment, into a view: in place where possible,
/// through a buffer of its own otherwise (F64 becomes F32).
class RowBuffer {
public:
    VectorsView view(std::span<const std::byte> raw, DType type, std::size_t rows, std::size_t dim);

private:
    std::vector<float> values_;
};

/// Names and shapes that go with an array: all optional.
struct ArrayLabels {
    std::vector<std::string> ids;      ///< one a document
    std::vector<std::int64_t> bounds;  ///< 2-D: offsets [n+1] or lengths [n]; 3-D: lengths [n]
    std::vector<std::int64_t> grid;    ///< [n,2] columns, rows
    std::string stem;                  ///< the id of a single document
};

/// The rows of documents within a 2-D array of `rows` rows: accepts offsets (n+1 ascending entries
/// from 0 to rows) or lengths (n entries that sum to rows); returns offsets.
std::vector<std::int64_t> document_offsets(std::span<const std::int64_t> bounds, std::uint64_t rows,
                                           const std::string& source);

/// Errors for documents past the limits of vector_source.h.
void check_document(std::uint64_t rows, std::uint64_t dim, DType type, const std::string& source,
                    const std::string& what);

/// The documents of one big array, 2-D [N,d] with bounds (without: one document) or 3-D [n,T,d]
/// padded with zero rows. `reader` stands at the first element.
std::unique_ptr<VectorSource> array_documents(std::unique_ptr<ByteStream> reader, ArrayInfo array, ArrayLabels labels,
                                              const std::string& source, const std::string& kind);

}  // namespace marginmerge
