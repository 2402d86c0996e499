#include <algorithm>
#include <cmath>
#include <map>

#include "marginmerge/merge/recipe.h"

namespace marginmerge {

std::size_t Budget::count(std::size_t n) const {
    if (vectors > 0) return std::min(vectors, n);
    const double exact = keep * static_cast<double>(n);
    // 0.07 * 100 is 7.000000000000001: without the tolerance such pages would keep one too many.
    const double k = scale > 0                  ? std::nearbyint(scale * std::pow(static_cast<double>(n), power))
                     : rounding == Rounding::up ? std::ceil(exact - 1e-9 * std::max(exact, 1.0))
                                                : std::nearbyint(exact);
    // Compared as numbers: a scale from a file may give more than any integer holds.
    return std::min(n, k < static_cast<double>(n) ? std::max<std::size_t>(static_cast<std::size_t>(k), 1) : n);
}

Budget Budget::balanced(std::span<const std::int64_t> offsets) const {
    std::map<std::size_t, std::size_t> pages;  // by length
    for (std::size_t i = 1; i < offsets.size(); ++i) ++pages[static_cast<std::size_t>(offsets[i] - offsets[i - 1])];
    const auto total = [&](const Budget& budget) {
        std::size_t sum = 0;
        for (const auto& [n, count] : pages) sum += count * budget.count(n);
        return sum;
    };
    const std::size_t most = total(*this);
    const std::size_t longest = pages.empty() ? 0 : pages.rbegin()->first;
    // The largest scale that keeps the total, from one vector a page to all of them: halved until numbers are no finer.
    double low = 0x1p-30, high = static_cast<double>(longest) + 1;
    Budget shared = *this;
    for (int step = 0; step < 100; ++step) {
        shared.scale = (low + high) / 2;
        (total(shared) <= most ? low : high) = shared.scale;
    }
    shared.scale = low;
    return shared;
}

}  // namespace marginmerge
