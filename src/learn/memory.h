#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learn/judged_query.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

struct MemorySettings {
    double unusual = 2.5;                              ///< deviations above a token's usual answer
    std::size_t most_of_page = 64;                     ///< tokens remembered for one page, the most unusual ones
    std::size_t most_numbers = std::size_t{16} << 20;  ///< in all tokens: 64 MB
    float same = 0.9999F;                              ///< cosine above which two tokens of a page count as one
};

/// What a judged query asked of a page relevant to it.
struct Asked {
    std::int64_t page = 0;
    std::uint32_t token = 0;  ///< row of its query
    float unusual = 0;        ///< deviations above what pages usually answer it with
};

/// All that is kept of a judged query to remember it by.
struct AskedQuery {
    Matrix tokens;  ///< [t,d] unit norm
    std::vector<Asked> asked;
};

/// What each relevant page answers unusually well; the pages drawn at random say what is usual.
AskedQuery asked_of_pages(const JudgedQuery& query, const MemorySettings& settings);

/// Everything these queries asked, of strength 1. When there is no more room, later queries are left out.
Memory learn_memory(std::span<const AskedQuery* const> queries, const MemorySettings& settings);

/// For each query one effect for each strength of the memory, as if its tokens were further vectors of their pages.
std::vector<std::vector<RankingEffect>> judge_memory(std::span<const JudgedQuery* const> queries, const Memory& memory,
                                                     std::span<const double> strengths, double temperature,
                                                     std::size_t threads);

}  // namespace marginmerge
