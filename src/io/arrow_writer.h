#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "io/table_row.h"

namespace marginmerge {

/// Writes pages as an Arrow IPC stream: columns `position` int64, `id` utf8, `metadata` utf8 (null when a page
/// has none) and `vectors` list<fixed_size_list<float>[d]>, in record batches of bounded size. It is what
/// LanceDB, pyarrow, Polars and DataFusion take in without a conversion.
class ArrowWriter {
public:
    ArrowWriter(const std::filesystem::path& path, std::size_t dim);
    void add(const TableRow& row);
    /// Ends the stream and gives the file its name; returns its size.
    std::uint64_t commit();

private:
    void message(const std::string& metadata, const std::vector<std::string_view>& body);
    void end_batch();

    AtomicFile file_;
    std::size_t dim_;
    std::uint64_t written_ = 0;
    std::int64_t rows_ = 0;  ///< of the batch being filled
    std::int64_t nulls_ = 0;
    std::string positions_, ids_, metadata_, validity_, values_;
    std::vector<std::int32_t> id_ends_{0}, metadata_ends_{0}, vector_ends_{0};
};

}  // namespace marginmerge
