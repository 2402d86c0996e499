#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"
#include "io/table_row.h"

namespace marginmerge {

/// Writes pages as a Parquet file that any reader of the format takes: columns `position` INT64, `id` and
/// `metadata` STRING, `vectors` LIST of LIST of FLOAT; plain values, uncompressed, in row groups of
/// bounded size. Vectors hardly compress, and plain ones are read at the speed of the disk.
class ParquetWriter {
public:
    ParquetWriter(const std::filesystem::path& path, std::size_t dim);
    void add(const TableRow& row);
    /// Writes the footer and gives the file its name; returns its size.
    std::uint64_t commit();

private:
    /// What is kept of a column chunk for the footer.
    struct Chunk {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;   ///< page headers included
        std::uint64_t values = 0;  ///< leaf entries, empty lists and nulls included
    };
    struct RowGroup {
        Chunk columns[4];
        std::uint64_t rows = 0;
        std::uint64_t offset = 0;
    };
    /// A data page of the vectors column that is being filled.
    struct VectorPage {
        std::string repetition, definition, values;
        std::uint64_t entries = 0;
        std::uint64_t rows = 0;
    };

    void end_vector_page();
    void end_row_group();
    void write_page(Chunk& chunk, std::string_view body, std::uint64_t values);
    void append(std::string_view bytes);
    std::string footer() const;

    AtomicFile file_;
    std::size_t dim_;
    std::uint64_t written_ = 0;
    std::uint64_t rows_ = 0;
    std::vector<RowGroup> groups_;
    RowGroup group_;  ///< the one being filled
    std::string positions_, ids_, metadata_, metadata_levels_;
    VectorPage page_;
    std::vector<std::pair<std::string, std::uint64_t>> pages_;  ///< finished vector pages and their entries
    std::uint64_t group_bytes_ = 0;
};

}  // namespace marginmerge
