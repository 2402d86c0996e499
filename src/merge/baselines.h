#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/recipe.h"

namespace marginmerge {

// Rivals of the paper that are not representative rules: they keep patches by salience, look at the
// query, or keep a single vector.

/// Importance pruning: the patches with the highest mean similarity to the others, ascending.
std::vector<std::int32_t> importance_kept(ConstMatrix v, std::size_t k);

/// The unit mean of a page or query (DSE-style single vector) [d].
std::vector<float> single_vector(ConstMatrix v);

/// What the learned patch selector sees, [n,6]: similarity to the unit mean, mean and maximal
/// similarity to the other patches, mean of the (up to) 8 highest, position i/(n-1), 1 - position.
Matrix selector_features(ConstMatrix v);

/// 1 for every patch that is the best answer to some query token, 0 for the others [n].
std::vector<float> winner_labels(ConstMatrix v, ConstMatrix query_tokens);

/// HPC-style upper reference: MaxSim over the k patches that answer any token of this very query
/// best.
float query_conditioned_score(ConstMatrix query, ConstMatrix v, std::size_t k);

}  // namespace marginmerge
