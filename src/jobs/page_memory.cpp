#include "jobs/page_memory.h"

#include "kernels/convert.h"
#include "merge/registry.h"

namespace marginmerge {

std::span<const std::byte> page_contents(VectorsView page, std::vector<std::uint16_t>& space) {
    if (page.type == ScalarType::f16) return {static_cast<const std::byte*>(page.data), page.bytes()};
    const Matrix m = to_float(page);
    space.resize(m.size());
    from_float(m.flat(), ScalarType::f16, space.data());
    return std::as_bytes(std::span<const std::uint16_t>(space));
}

std::int64_t page_key(const Sha256::Digest& contents) {
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < sizeof(first); ++i) first = first << 8 | contents[i];
    return static_cast<std::int64_t>(first >> 1);
}

ConstMatrix PageMemory::of(VectorsView page, const Model& model, const Recipe& recipe) {
    if (!recipe.align || model.memory.empty() || page.rows == 0) return {};
    if (!representative_rule(recipe.representative).needs_probes) return {};
    Sha256 sha;
    sha.update(page_contents(page, halves_));
    rows_ = model.memory.of(page_key(sha.finish()));
    return rows_;
}

}  // namespace marginmerge
