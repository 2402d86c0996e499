#pragma once

#include <cstdint>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// The parameters of a synthetic corpus. Every page and query is a function of them and of its
/// number alone.
struct SynthModel {
    std::size_t dim = 128;
    std::size_t vectors = 1000;  ///< mean a page
    std::size_t regions = 30;    ///< of a page
    double background = 0.2;     ///< share of patches that show nothing in particular
    double shared = 0.75;        ///< share of a region's direction that is a topic other pages have too
    double patch_noise = 0.5;    ///< share of a patch's energy that is its own
    double token_noise = 1.0;    ///< norm of a query token's noise, relative to its content
    std::uint64_t seed = 42;
    Matrix topics;  ///< [T,d], unit

    void draw_topics(std::size_t count);
};

/// One page and the directions of its regions.
struct SynthPage {
    Matrix vectors;                    ///< [n,d], unit
    Matrix regions;                    ///< [R,d], unit
    std::vector<std::int32_t> region;  ///< of each patch, -1 for background
    PatchGrid grid;
};

/// Columns and rows of page i; their product is its number of vectors.
PatchGrid synth_grid(const SynthModel& model, std::size_t page);
SynthPage synth_page(const SynthModel& model, std::size_t page);

/// Query number `query` about this page: tokens [m,d], unit.
Matrix synth_query(const SynthModel& model, const SynthPage& page, std::size_t query);

}  // namespace marginmerge
