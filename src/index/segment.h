#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "index/columns.h"
#include "io/safetensors.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

/// Schema of segments whose vectors are coded; those with plain vectors are multi-vector files.
inline constexpr const char* coded_schema = "marginmerge.coded";

/// One immutable file of pages, memory-mapped: a multi-vector or compressed file, or one with coded
/// vectors (docs/index-format.md). Safe to use from any number of threads.
class Segment {
public:
    /// `full`: a multi-vector file of the same pages before compression, or empty.
    static std::shared_ptr<const Segment> open(const std::filesystem::path& path,
                                               const std::filesystem::path& full = {});
    static std::shared_ptr<const Segment> wrap(const MultiVectorSet& pages);

    std::size_t size() const { return layout_.size(); }
    std::size_t dim() const { return dim_; }
    VectorCode code() const { return code_; }
    bool plain() const { return code_ != VectorCode::int8 && code_ != VectorCode::bits; }

    /// Offsets, ids, grid, boxes and owners. Its vectors exist only when plain().
    const MultiVectorSet& layout() const { return layout_; }
    Int8View int8_codes() const { return int8_; }  ///< of an int8 segment
    BitsView bit_codes() const { return bits_; }   ///< of a bits segment
    Matrix decoded(std::size_t page) const;
    std::size_t vector_bytes(std::size_t page) const;
    std::size_t source_vectors_of(std::size_t page) const {
        return layout_.has_owner() ? layout_.source_vectors_of(page) : layout_.vectors_of(page);
    }

    bool has_metadata() const { return metadata_offsets_.size() > 1; }
    std::string_view metadata(std::size_t page) const;
    /// A metadata field of all pages; made at the first call.
    std::shared_ptr<const Column> column(const std::string& field) const;

    const MultiVectorSet* full() const { return full_ ? &*full_ : nullptr; }

    /// Sign bits of all vectors, for a first pass; made at the first call when not stored so.
    BitsView sign_bits() const;

private:
    Segment() = default;
    void read_codes(const SafetensorsFile& file);
    void read_metadata(const SafetensorsFile& file);

    MultiVectorSet layout_;
    std::size_t dim_ = 0;
    VectorCode code_ = VectorCode::f16;
    Int8View int8_;
    BitsView bits_;
    std::shared_ptr<const void> storage_;  ///< keeps codes and metadata mapped
    std::string_view metadata_text_;
    std::vector<std::uint64_t> metadata_offsets_;
    std::optional<MultiVectorSet> full_;

    mutable std::mutex mutex_;  ///< guards columns_
    mutable std::map<std::string, std::shared_ptr<const Column>> columns_;
    mutable std::once_flag sign_once_;
    mutable AlignedArray<std::uint8_t> sign_codes_;
    mutable AlignedArray<float> sign_scales_;
};

}  // namespace marginmerge
