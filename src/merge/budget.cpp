#include <algorithm>
#include <cmath>

#include "marginmerge/merge/recipe.h"

namespace marginmerge {

std::size_t Budget::count(std::size_t n) const {
    if (vectors > 0) return std::min(vectors, n);
    const double exact = keep * static_cast<double>(n);
    // 0.07 * 100 is 7.000000000000001: without the tolerance such pages would keep one too many.
    const double k = rounding == Rounding::up ? std::ceil(exact - 1e-9 * std::max(exact, 1.0)) : std::nearbyint(exact);
    return std::min(std::max<std::size_t>(static_cast<std::size_t>(k), 1), n);
}

}  // namespace marginmerge
