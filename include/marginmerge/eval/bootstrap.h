#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace marginmerge {

struct BootstrapOptions {
    std::size_t draws = 2000;
    std::uint32_t seed = 0;
    double low = 2.5;  ///< percentiles of the interval
    double high = 97.5;
    double least = 0.005;  ///< the smallest mean that counts as a difference
};

/// A mean with its interval.
struct Interval {
    double mean = 0;
    double low = 0;
    double high = 0;
    /// The paper's rule for "there is a difference": the interval excludes zero and the mean is not tiny.
    bool supported = false;
};

/// Paired bootstrap of the mean of a - b over queries: whole queries are drawn with replacement with
/// NumPy's legacy generator, so figures equal those of the paper's protocol.
Interval paired_bootstrap(std::span<const double> a, std::span<const double> b, const BootstrapOptions& options = {});

/// The interval of sum(part) / sum(whole) when queries are drawn: for rates pooled over pairs.
Interval ratio_bootstrap(std::span<const double> part, std::span<const double> whole,
                         const BootstrapOptions& options = {});

}  // namespace marginmerge
