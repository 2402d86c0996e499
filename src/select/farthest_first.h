#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

struct FarthestWorkspace {
    struct Entry {
        float similarity;  ///< to the nearest pick this entry knows of: a lower bound of the true one
        std::int32_t patch;
        std::uint32_t known;  ///< how many picks it knows of
    };
    std::vector<Entry> heap;
    /// The nearest of the picks that were given (not of those added), as a patch number, lowest on a tie, and its
    /// similarity. [n]
    std::vector<std::int32_t> nearest_given;
    std::vector<float> similarity;
    std::vector<std::int32_t> given;  ///< the given picks, ascending
    std::vector<char> picked;
    Matrix picks;  ///< rows of the picks so far, [k,d]
};

/// With these patch i is as far from a pick p as weight_i |v_i - v_p|^2.
struct FarthestWeights {
    std::span<const float> weight;
    std::span<const float> square;  ///< |v_i|^2
};

/// Extends `order` to `count` picks: each time the patch whose nearest pick is least similar, the
/// lower index on a tie. `order` must hold at least one pick.
void extend_farthest(ConstMatrix v, std::size_t count, FarthestWorkspace& workspace, std::vector<std::int32_t>& order);
/// The same by weighted distance; picks may be of any weight.
void extend_farthest(ConstMatrix v, const FarthestWeights& weights, std::size_t count, FarthestWorkspace& workspace,
                     std::vector<std::int32_t>& order);

}  // namespace marginmerge
