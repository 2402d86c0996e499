#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace marginmerge {

/// Positions of the `k` largest values, largest first; on a tie the lower position comes first.
template <class T>
std::vector<std::int32_t> largest(std::span<const T> values, std::size_t k) {
    std::vector<std::int32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        return values[static_cast<std::size_t>(a)] > values[static_cast<std::size_t>(b)];
    });
    order.resize(std::min(k, order.size()));
    return order;
}

}  // namespace marginmerge
