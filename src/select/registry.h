#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "select/farthest_first.h"
#include "select/page_responses.h"

namespace marginmerge {

struct FillRule;

/// What an anchor rule may look at.
struct AnchorRequest {
    ConstMatrix vectors;                       ///< V [n,d]
    std::size_t count = 1;                     ///< k, at most n
    const PageResponses* responses = nullptr;  ///< null when the model has no prototypes
    const FillRule* fill = nullptr;            ///< for rules that run out of reasons before k
    std::uint64_t seed = 42;                   ///< of this page
    std::optional<std::size_t> start;          ///< first pick of kcenter instead of a seeded one
};

/// The picks and what is remembered of how they came about. Reused from page to page.
struct AnchorSelection {
    std::vector<std::int32_t> order;  ///< [k] patches in pick order
    std::vector<double> gains;        ///< coverage only: gain of each pick, 0 for filled ones
    std::size_t reasoned = 0;         ///< picks made by the rule itself; the rest came from the fill

    /// What a rule has found out in passing, so that nobody computes it again: the nearest of the first `compared`
    /// picks for every patch, as a patch number, lowest on a tie, and its similarity. 0: nothing.
    std::size_t compared = 0;
    std::vector<std::int32_t> nearest;
    std::vector<float> similarity;
};

struct AnchorWorkspace {
    struct Candidate {
        double gain;
        std::int32_t patch;
        std::int32_t fresh;  ///< the number of picks the gain was computed for
    };
    std::vector<Candidate> heap;
    std::vector<double> omega;
    std::vector<float> covered;
    std::vector<std::int32_t> pool;
    std::vector<float> distance;
    std::vector<char> picked;
    FarthestWorkspace farthest;
};

/// One way to choose anchors. Adding one is one file with a `select` function and a line in
/// registry.cpp.
struct AnchorRule {
    std::string_view name;
    std::string_view summary;
    bool needs_prototypes;
    bool uses_fill;
    void (*select)(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
};

/// One way to choose the anchors left over when a rule has no more reason to prefer any patch:
/// extends selection.order to request.count.
struct FillRule {
    std::string_view name;
    std::string_view summary;
    bool needs_prototypes;
    void (*extend)(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
};

std::span<const AnchorRule> anchor_rules();
std::span<const FillRule> fill_rules();
/// Error(invalid_argument) lists the names there are.
const AnchorRule& anchor_rule(std::string_view name);
const FillRule& fill_rule(std::string_view name);

// The rules themselves, each in the file of its name.
void select_coverage(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void select_kcenter(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void select_random(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void select_plusplus(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void fill_farthest(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void fill_relevance(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);
void fill_index(const AnchorRequest&, AnchorWorkspace&, AnchorSelection&);

}  // namespace marginmerge
