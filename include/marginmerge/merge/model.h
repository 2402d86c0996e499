#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "marginmerge/bank/prototype_bank.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/merge/recipe.h"

namespace marginmerge {

struct PackedRows;

inline constexpr std::size_t feature_count = 15;
inline constexpr std::size_t hidden_1 = 32;
inline constexpr std::size_t hidden_2 = 16;

/// Mean and standard deviation of the fifteen features over the training side.
struct FeatureScaling {
    std::array<float, feature_count> mean{};
    std::array<float, feature_count> deviation{};
};

/// The 15-32-16-1 residual network g_theta in one flat buffer of 1,057 parameters, in the order
/// w1 [32,15], b1 [32], w2 [16,32], b2 [16], w3 [1,16], b3 [1].
struct Network {
    static constexpr std::size_t w1 = 0;
    static constexpr std::size_t b1 = w1 + hidden_1 * feature_count;
    static constexpr std::size_t w2 = b1 + hidden_1;
    static constexpr std::size_t b2 = w2 + hidden_2 * hidden_1;
    static constexpr std::size_t w3 = b2 + hidden_2;
    static constexpr std::size_t b3 = w3 + hidden_2;
    static constexpr std::size_t parameter_count = b3 + 1;
    std::array<float, parameter_count> parameters{};
};

/// Query tokens against which pages are fitted directly (`fitted`), with their weights.
struct ProbeSet {
    Matrix tokens;               ///< [P,d]
    std::vector<float> weights;  ///< [P], sum 1
    bool empty() const { return tokens.rows() == 0; }
};

/// What `fitted` learns once for all pages, beside the probes. Matrices may be empty: then the part they
/// stand for is left out (identity, zero).
struct FittedParts {
    Matrix metric;                                    ///< [d,d] H^(g/2): pages are clustered as metric * v
    Matrix prior;                                     ///< [d,d] W: corrections are penalised by |W^-1 (r - start)|^2
    Matrix prior_inverse;                             ///< [d,d]
    Matrix images;                                    ///< [P,d] probes as the solver sees them, W' u
    std::shared_ptr<const PackedRows> packed_images;  ///< the same for the kernels; empty: packed page by page
    Matrix start_map;            ///< [2d+3,d] B: what a start is corrected by before the page is fitted
    std::vector<float> offsets;  ///< [P] what pages miss of a probe's best response on average
    std::vector<float> usual;    ///< [P] a probe's best response on a page, mean over pages
    std::vector<float> spread;   ///< [P] and its deviation
};

/// What judgements say about all pages alike: a representative r of a page of n vectors is kept as
/// (n / usual_length)^length_power (r + change r).
struct Alignment {
    Matrix change;           ///< [d,d], empty: none
    float length_power = 0;  ///< 0: the length does not count
    float usual_length = 1;
    bool empty() const { return change.empty() && length_power == 0; }
};

/// What judged queries asked of pages that are relevant to them: the tokens which such a page answers unusually well.
/// `fitted` answers as if they were further vectors of that page, `strength` long. A page is known by its contents.
struct Memory {
    Matrix tokens;                      ///< [T,d]
    std::vector<std::int64_t> pages;    ///< [m] ascending, see page_key in jobs/page_memory.h
    std::vector<std::int64_t> offsets;  ///< [m+1] into entries
    std::vector<std::int32_t> entries;  ///< rows of tokens
    float strength = 0;
    bool empty() const { return pages.empty() || strength == 0; }
    /// Tokens of a page at their length; without rows where nothing is known of it.
    Matrix of(std::int64_t page) const;
};

/// Everything `fit` learns and `compress` needs. Parts may be empty: fixed representatives need
/// no network, Ward pooling needs nothing at all.
struct Model {
    PrototypeBank bank;
    std::optional<FeatureScaling> scaling;
    std::optional<Network> network;
    ProbeSet probes;
    FittedParts fitted;
    Alignment alignment;
    Memory memory;
    Recipe recipe;           ///< what it was fitted for; flags override it
    std::string settings;    ///< JSON: recipe-specific fitted settings (ridge, steps, ...), may be empty
    std::string provenance;  ///< JSON: seeds, hashes, data, training curve
    bool uses_grid = false;  ///< the two coordinate features were filled in training
};

}  // namespace marginmerge
