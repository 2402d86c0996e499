#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/byte_source.h"
#include "io/parquet_format.h"

namespace marginmerge {

/// A leaf of the schema: what one column chunk in every row group holds.
struct ParquetLeaf {
    std::vector<std::string> path;  ///< names from the root's child down
    parquet::Type type = parquet::Type::boolean;
    std::int32_t type_length = 0;  ///< of fixed_bytes
    bool half = false;             ///< fixed_bytes of two that are a float16
    int max_definition = 0;
    int max_repetition = 0;
    std::vector<int> list_definition;  ///< for each repeated node above or at the leaf: definition level of an element
    std::string name() const;          ///< "vectors.list.element"
};

struct ParquetChunk {
    parquet::Codec codec = parquet::Codec::none;
    std::uint64_t begin = 0;  ///< of its first page in the file
    std::uint64_t bytes = 0;
    std::uint64_t values = 0;
};

struct ParquetRowGroup {
    std::uint64_t rows = 0;
    std::vector<ParquetChunk> chunks;  ///< one a leaf
};

/// The footer of a Parquet file, checked against the file's size.
struct ParquetFile {
    ByteSource bytes;
    std::uint64_t rows = 0;
    std::vector<ParquetLeaf> leaves;
    std::vector<ParquetRowGroup> groups;
};

/// Throws Error(corrupt | unsupported).
ParquetFile read_parquet_footer(ByteSource bytes);

}  // namespace marginmerge
