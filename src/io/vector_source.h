#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/array_reader.h"
#include "io/byte_source.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// One document as a foreign file holds it, before zero rows are dropped or anything is normalised.
struct SourceDocument {
    std::string id;                ///< empty when the source does not name it
    VectorsView vectors;           ///< valid until the next call of next()
    PatchGrid grid;                ///< zero when unknown
    std::span<const float> boxes;  ///< [rows,4] or empty
};

/// Documents one after another, in their order, whatever the file looks like. Holds one document
/// in memory at a time, so a source may be larger than the machine.
class VectorSource {
public:
    virtual ~VectorSource() = default;
    /// False at the end.
    virtual bool next(SourceDocument& document) = 0;
    /// How many documents there are; 0 when only reading to the end can tell.
    virtual std::size_t size() const { return 0; }
    /// What was recognised, for reports: "npz, one array a document".
    virtual std::string form() const = 0;
};

/// What the file itself does not say.
struct SourceOptions {
    std::filesystem::path offsets;  ///< .npy with the offsets or lengths of a 2-D array's documents
    bool queries = false;           ///< of a cache folder read qs.pt instead of ps.pt
};

/// Dimensions of the vectors we handle.
inline constexpr std::uint64_t min_dimension = 16;
inline constexpr std::uint64_t max_dimension = 4096;

/// No document may have more rows, and none more bytes; a 2-D array with more surely lacks its offsets.
inline constexpr std::uint64_t max_document_rows = 1'000'000;
inline constexpr std::uint64_t max_document_bytes = 1ULL << 30;

/// Opens any source we read, told apart by content. Throws Error(unsupported) for anything else.
std::unique_ptr<VectorSource> open_source(const std::filesystem::path& path, const SourceOptions& options = {});

// One function per kind of content; they work on bytes, so that fuzzers reach them. `stem` is the
// id of a document that has no other name.
std::unique_ptr<VectorSource> open_safetensors_source(ByteSource bytes, const std::string& stem);
std::unique_ptr<VectorSource> open_npy_source(ByteSource bytes, const std::string& stem,
                                              const std::vector<std::int64_t>& boundaries);
std::unique_ptr<VectorSource> open_zip_source(ByteSource bytes, const std::string& stem,
                                              const std::vector<std::int64_t>& boundaries);
std::unique_ptr<VectorSource> open_json_lines_source(ByteSource bytes);
std::unique_ptr<VectorSource> open_parquet_source(ByteSource bytes);
std::unique_ptr<VectorSource> open_arrow_source(ByteSource bytes);
/// An Arrow IPC stream or file, by its first bytes.
bool looks_like_arrow(std::string_view text);

/// The same choice by content for bytes in memory.
std::unique_ptr<VectorSource> open_source(ByteSource bytes, const std::string& stem,
                                          const std::vector<std::int64_t>& boundaries = {});

}  // namespace marginmerge
