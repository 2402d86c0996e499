#pragma once

#include <span>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge::lab {

/// A linear score of standardised inputs.
struct LinearScore {
    std::vector<double> mean, deviation;  ///< [inputs]
    std::vector<double> weight;           ///< [inputs], of standardised inputs
    double bias = 0;

    double operator()(std::span<const float> x) const;
};

/// Standardisation over rows; a constant input keeps its scale.
LinearScore standardised(ConstMatrix x);

struct LogisticOptions {
    double penalty = 1;       ///< of |weight|^2 / 2; the bias is free
    std::size_t steps = 30;   ///< Newton steps, at most
    double tolerance = 1e-9;  ///< of the largest gradient entry, relative to the number of rows
};

/// Logistic regression with balanced classes: each class weighs half of all rows. x [rows, inputs], labels 0 or 1.
LinearScore fit_logistic(ConstMatrix x, std::span<const float> labels, const LogisticOptions& options = {});

}  // namespace marginmerge::lab
