#include <algorithm>

#include "kernels/products.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

Matrix Memory::of(std::int64_t page) const {
    const auto found = std::lower_bound(pages.begin(), pages.end(), page);
    if (found == pages.end() || *found != page) return {};
    const auto at = static_cast<std::size_t>(found - pages.begin());
    const auto first = static_cast<std::size_t>(offsets[at]), end = static_cast<std::size_t>(offsets[at + 1]);
    Matrix rows(end - first, tokens.cols());
    for (std::size_t i = first; i < end; ++i)
        add_scaled(strength, tokens.row(static_cast<std::size_t>(entries[i])), rows.row(i - first), tokens.cols());
    return rows;
}

}  // namespace marginmerge
