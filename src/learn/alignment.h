#pragma once

#include <span>
#include <vector>

#include "learn/judged_query.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

struct AlignmentSettings {
    double temperature = 0.6;       ///< of the softmax over pages, x spread of scores
    double ridge = 0.03;            ///< on the change
    double length_freedom = 0.003;  ///< how much weaker it is on the power of the length
    double hold = 3;                ///< what moving the scores of pages drawn at random costs
    std::size_t steps = 10;         ///< few: stopping early is part of the restraint
    bool change = true;             ///< false: only the length counts
    std::size_t threads = 0;
};

/// The alignment under which judged pages rank higher: least mean cross-entropy between gains and
/// softmax(score / temperature) over the contested pages, while the others' scores move little. The vectors that answer
/// are held fixed, so scores are linear in what is learned and the objective is convex. `usual_length` is left at 1.
Alignment learn_alignment(std::span<const JudgedQuery* const> queries, const AlignmentSettings& settings);

/// The same, this share of it.
Alignment share_of(const Alignment& alignment, double share);

/// For each query one effect for each share of the alignment. `temperature` is absolute.
std::vector<std::vector<RankingEffect>> judge_alignment(std::span<const JudgedQuery* const> queries,
                                                        const Alignment& alignment, std::span<const double> shares,
                                                        double temperature, std::size_t threads);

}  // namespace marginmerge
