#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace marginmerge {

/// How many vectors of a page are kept.
struct Budget {
    enum class Rounding { up, nearest_even };
    double keep = 0.05;                ///< share of the page's vectors, (0, 1]
    std::size_t vectors = 0;           ///< a fixed count instead of a share when positive
    Rounding rounding = Rounding::up;  ///< the paper's merging baseline rounds to nearest
    double scale = 0;                  ///< when positive a page of n vectors keeps scale * n^power instead
    double power = balance_power;

    /// Where pages of different lengths are equally far from the full index; docs/quality.md has the measurement.
    static constexpr double balance_power = 1.0 / 3;

    /// k for a page of n vectors: at least 1, at most n.
    std::size_t count(std::size_t n) const;
    /// The budget that keeps no more vectors in all than this one of the pages between these offsets, but a larger
    /// share of short pages and a smaller one of long pages.
    Budget balanced(std::span<const std::int64_t> offsets) const;
};

/// The paper's constants. Change them only together with a fitted network.
struct MergeConstants {
    double tau_c = 0.05;       ///< coverage temperature
    double tau_a = 0.1;        ///< anchor-similarity temperature of the base weight
    double p = 0.5;            ///< exponent of the prototype relevance
    double epsilon = 1e-8;     ///< added to relevance
    double residual_clip = 5;  ///< H, clip of the network's output
};

/// One complete way to turn a page into representatives. Names are those of the registries
/// (select/registry.h, merge/registry.h) and of the command line.
struct Recipe {
    std::string preset;                      ///< where it came from, for reports
    std::string anchors = "coverage";        ///< coverage | kcenter | random
    std::string fill = "farthest";           ///< farthest | relevance | index
    std::string representative = "learned";  ///< anchor|uniform|response|learned|kmeans|ward|tome|fitted
    Budget budget;
    MergeConstants constants;
    bool unit_norm = false;  ///< for engines that only know cosine
    bool align = false;      ///< apply what the model learned from judgements: alignment and memory
    std::uint64_t seed = 42;
};

}  // namespace marginmerge
