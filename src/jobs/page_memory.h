#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sha256.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

/// A page's vectors as half precision, so that one stored as F32 and its copy as F16 count as the same. `space` may
/// hold what is returned.
std::span<const std::byte> page_contents(VectorsView page, std::vector<std::uint16_t>& space);

/// What a page is known by in a Memory: the first 63 bits of the SHA-256 of its contents.
std::int64_t page_key(const Sha256::Digest& contents);

/// Looks up what a model remembers of one page after another.
class PageMemory {
public:
    /// The view is good until the next call. Without rows where the recipe does not ask or nothing is known.
    ConstMatrix of(VectorsView page, const Model& model, const Recipe& recipe);

private:
    Matrix rows_;
    std::vector<std::uint16_t> halves_;
};

}  // namespace marginmerge
