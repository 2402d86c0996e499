#pragma once

#include <cstdint>
#include <span>

#include "learn/symmetric.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Makes corpus vectors look like query tokens: u = unit(mean + (v - origin) map + noise z), z standard normal.
struct TokenModel {
    Eigen::RowVectorXd origin;  ///< [d]
    Eigen::RowVectorXd mean;    ///< [d]
    Dense map;                  ///< [d,d]
    Dense noise;                ///< [d,d], empty: none

    /// Rows of `vectors` carried over, unit norm. The noise is drawn by `seed`.
    Matrix carry(ConstMatrix vectors, std::uint64_t seed) const;
};

/// The optimal transport map between two Gaussians, A = C_d^-1/2 (C_d^1/2 C_q C_d^1/2)^1/2 C_d^-1/2: all that can be
/// said when nobody knows which vector answers which token. `weights` are those of the tokens, sum 1.
TokenModel transport_model(ConstMatrix vectors, ConstMatrix tokens, std::span<const double> weights);

/// Ridge regression of a token on the vector that answers it in a page ranked high for its query (rows of
/// `answers` and `tokens` belong together). What the regression leaves unexplained becomes noise.
TokenModel answer_model(ConstMatrix answers, ConstMatrix tokens);

}  // namespace marginmerge
