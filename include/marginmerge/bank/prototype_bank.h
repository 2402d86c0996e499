#pragma once

#include <string>
#include <vector>

#include "marginmerge/core/matrix.h"

namespace marginmerge {

/// Typical directions of the training queries' tokens, and how often each occurs.
struct PrototypeBank {
    Matrix prototypes;                      ///< Z [M,d], unit rows
    std::vector<float> frequencies;         ///< f_t [M], weighted, sum 1
    std::vector<std::string> query_ids;     ///< the queries it was built from (may be only hashes in a file)
    std::vector<std::string> excluded_ids;  ///< queries that were offered and kept out

    std::size_t size() const { return prototypes.rows(); }
    bool empty() const { return prototypes.rows() == 0; }
    /// omega_t = sqrt(f_t + 1e-8) / sum (supplement, prototype bank).
    std::vector<float> weights() const;
};

}  // namespace marginmerge
