#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/maxsim.h"
#include "kernels/maxsim_upper.h"

namespace marginmerge {

/// Upper bounds of the scores of many queries, made tighter only where they do not decide yet.
///
/// A first look finds bounds of some tokens' best responses on the page (kernels/maxsim_upper.h). The others are
/// bounded through a token u_s that was looked at: with u = a u_s + e and a >= 0,
///   max_j u.v_j <= a max_j u_s.v_j + |e| max_j |v_j|,
/// and tokens of one query are similar enough for most pages to drop out like that. For the queries that are left,
/// more tokens are looked at, in a few steps. Which ones come first is chosen such that they stand for the rest.
class MiningBounds {
public:
    explicit MiningBounds(std::span<const PreparedQuery* const> queries, std::size_t threads = 1);

    std::size_t queries() const { return queries_.size(); }
    /// Tokens of the first look, of all queries.
    std::size_t first_tokens() const { return first_tokens_; }

    /// upper[q] >= maxsim(query q, page); `found` [first_tokens] is what `tighten` wants to know again. A page without
    /// vectors gives -infinity; where a number is not finite there is no bound: infinity or not-a-number.
    void look(VectorsView page, std::span<float> found, std::span<float> upper) const;

    /// Lowers upper[q] until it is below least[q] or every token was looked at.
    void tighten(VectorsView page, std::span<const float> found, std::span<const float> least,
                 std::span<float> upper) const;

private:
    static constexpr std::size_t steps = 4;
    /// A token that was not looked at through one that was.
    struct Link {
        std::uint32_t through = 0;  ///< in the query's order
        float share = 0;            ///< a
        float rest = 0;             ///< |e|, rounded up
        float norm = 0;             ///< |u|, rounded up
    };
    struct Query {
        std::array<std::size_t, steps> begin{};      ///< of a step's tokens in tokens_
        std::array<std::size_t, steps> end{};        ///< tokens of the query that were looked at after a step
        std::array<std::vector<Link>, steps> links;  ///< the others after that step
        std::size_t first = 0;                       ///< of the query's tokens among those of all queries
        double rounding = 0;                         ///< what adding the responses may lose, for vectors of norm 1
    };
    static Query plan(const PreparedQuery& query, std::vector<std::uint32_t>& order);
    float bound(const Query& query, std::size_t step, std::span<const float> found, double norm) const;

    std::vector<Query> queries_;
    std::size_t first_tokens_ = 0;
    std::size_t all_tokens_ = 0;
    UpperTokens tokens_;  ///< step by step, query by query
};

}  // namespace marginmerge
