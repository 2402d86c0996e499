#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "io/safetensors.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// Schema names that stand in __metadata__.
inline constexpr const char* multi_vector_schema = "marginmerge.multivector";
inline constexpr const char* schema_version = "1";

/// Opens our multi-vector layout, memory-mapped. Files without a schema entry are accepted when
/// the tensors are there; another schema or a newer version is refused.
MultiVectorSet read_multi_vectors(const std::filesystem::path& path);
/// The same from any bytes, for example an HTTP body; the set borrows them.
MultiVectorSet read_multi_vectors(const SafetensorsFile& file);

/// Everything of an open file but its vectors: offsets, ids, grid, boxes and owners, for files that hold the vectors in
/// a form of their own. Nothing is checked yet; the constructor of MultiVectorSet does.
MultiVectorParts read_multi_vector_layout(const SafetensorsFile& file);

/// Writes a whole set, converting vectors to `type`. Metadata of the set is kept and extended.
void write_multi_vectors(const std::filesystem::path& path, const MultiVectorSet& set, ScalarType type,
                         const std::map<std::string, std::string>& extra_metadata = {});

DType to_dtype(ScalarType type);

}  // namespace marginmerge
