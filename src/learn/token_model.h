#pragma once

#include <cstdint>
#include <span>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Vectors made to look like query tokens that ask for them.
struct ExampleOptions {
    double likeness = 10;  ///< a pair is taken as the example with a chance of exp(likeness x cosine to its answer)
    std::size_t examples = 4096;  ///< pairs looked at: a fixed random choice where there are more
    std::uint64_t seed = 42;
    std::size_t threads = 0;
};

/// Each vector is asked for as some token asks for its answer (rows of `tokens` and `answers` belong together): at the
/// same cosine, and off to the side in the same direction. The sharpness of real tokens stays, which a regression with
/// Gaussian noise rounds off. Directions alone count and are returned. At least one pair.
Matrix ask_by_example(ConstMatrix vectors, ConstMatrix tokens, ConstMatrix answers, const ExampleOptions& options);

/// Rows of `vectors` carried over by the optimal transport map between the Gaussians of `corpus` and `tokens`,
/// A = C_d^-1/2 (C_d^1/2 C_q C_d^1/2)^1/2 C_d^-1/2, unit norm: all that can be said when nobody knows which vector
/// answers which token. `weights` are those of the tokens, sum 1.
Matrix ask_by_transport(ConstMatrix vectors, ConstMatrix corpus, ConstMatrix tokens, std::span<const double> weights);

}  // namespace marginmerge
