#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "io/parquet_file.h"

namespace marginmerge {

/// One data page of a column chunk with its levels decoded. Value bytes are still encoded.
struct ParquetPage {
    std::size_t entries = 0;               ///< values, nulls and empty lists
    std::vector<std::uint8_t> repetition;  ///< one an entry; empty when the column does not repeat
    std::vector<std::uint8_t> definition;  ///< one an entry; empty when nothing can be missing
    std::size_t values = 0;                ///< entries that have a value
    parquet::Encoding encoding = parquet::Encoding::plain;
    std::span<const std::byte> data;  ///< encoded values
};

/// The pages of one column chunk, front to back. The dictionary, when there is one, is handed out first.
class ParquetPages {
public:
    ParquetPages(const ParquetFile& file, std::size_t leaf, std::size_t group);
    /// False at the end of the chunk.
    bool next(ParquetPage& page);
    /// Plain-encoded values of the dictionary page; empty until one was met.
    std::span<const std::byte> dictionary() const { return dictionary_; }
    std::size_t dictionary_size() const { return dictionary_size_; }

private:
    [[noreturn]] void bad(const char* what, std::uint64_t expected, std::uint64_t found) const;
    std::span<const std::byte> unpack(std::span<const std::byte> packed, std::uint64_t size);
    void read_v1(ParquetPage& page, std::span<const std::byte> body);
    void levels(std::span<const std::byte> data, int most, std::size_t entries, std::vector<std::uint8_t>& out) const;
    void count(ParquetPage& page) const;

    const ParquetFile& file_;
    const ParquetLeaf& leaf_;
    ParquetChunk chunk_;
    std::uint64_t position_ = 0;  ///< within the chunk
    std::uint64_t seen_ = 0;      ///< entries so far
    std::vector<std::byte> unpacked_, dictionary_;
    std::size_t dictionary_size_ = 0;
};

/// Decodes the hybrid of runs and packed bits: `count` numbers of `width` bits (at most 32). Error(corrupt) when the
/// bytes end early.
void decode_hybrid(std::span<const std::byte> data, int width, std::size_t count, std::vector<std::uint32_t>& out,
                   const std::string& source);

/// Decodes DELTA_BINARY_PACKED: `count` integers from the front of `data`, which is moved behind them.
void decode_delta(std::span<const std::byte>& data, std::size_t count, std::vector<std::int64_t>& out,
                  const std::string& source);

}  // namespace marginmerge
