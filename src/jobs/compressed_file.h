#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Everything about a compressed file that is known before its vectors are.
struct CompressedLayout {
    std::size_t dim = 0;
    ScalarType type = ScalarType::f16;
    std::vector<std::int64_t> offsets{0};         ///< [n+1] of representatives
    std::vector<std::int64_t> source_offsets{0};  ///< [n+1] of original vectors
    std::string ids;                              ///< newline-joined
    std::vector<std::int32_t> grid;               ///< [n,2] or empty
    std::map<std::string, std::string> metadata;  ///< schema, version and writer are added

    std::size_t pages() const { return offsets.size() - 1; }
    void add_id(const std::string& id) { ids += (pages() > 1 ? "\n" : "") + id; }
};

/// Writes a compressed multi-vector file piece by piece.
class CompressedWriter {
public:
    CompressedWriter(const std::filesystem::path& path, const CompressedLayout& layout);
    /// Representatives from page `first` on, as stored bytes, and the owners of their patches.
    void write_pages(std::size_t first, std::span<const std::byte> vectors, std::span<const std::byte> owners);
    void commit() { writer_.commit(); }

private:
    const CompressedLayout& layout_;
    SafetensorsWriter writer_;
};

}  // namespace marginmerge
