#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/maxsim.h"
#include "kernels/maxsim_bits.h"
#include "kernels/maxsim_int8.h"
#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/index/index.h"
#include "marginmerge/merge/model.h"

namespace marginmerge {

// What an index would answer, without writing one: pages are made, coded and scored one after
// another, so a trial of a large corpus needs the memory of its scores only.

/// Queries laid out for the kernels of some storage codes.
class CodedQueries {
public:
    CodedQueries(const MultiVectorSet& queries, std::span<const VectorCode> codes);
    std::size_t size() const { return tokens_.size(); }
    std::span<const std::size_t> tokens() const { return tokens_; }
    std::span<const PreparedQuery> plain() const { return plain_; }

    /// Bytes that a page of these vectors takes with a code, scales included.
    static std::size_t page_bytes(VectorCode code, std::size_t rows, std::size_t dim);
    /// scores[q] = MaxSim of query q against the page stored with `code`.
    void score(ConstMatrix page, VectorCode code, std::span<float> scores) const;

private:
    std::vector<std::size_t> tokens_;
    std::vector<PreparedQuery> plain_;
    std::vector<PreparedInt8Query> int8_;
    std::vector<PreparedBitsQuery> bits_;
};

/// Puts the vectors that stand for page `page` into `out`. Called from several threads; no two calls
/// have the same `worker` at once.
using MakePage = std::function<void(std::size_t page, std::size_t worker, Matrix& out)>;

struct TrialScores {
    Matrix scores;              ///< [queries, pages]
    std::uint64_t vectors = 0;  ///< kept in all
    std::uint64_t bytes = 0;    ///< of stored vectors and scales
};

/// One result for each code; a page is made once for all of them.
std::vector<TrialScores> score_made_pages(std::size_t pages, const MakePage& make, const CodedQueries& queries,
                                          std::span<const VectorCode> codes, std::size_t threads);

/// The maker that compresses by a recipe; the arguments must outlive it. Seeds follow the recipe's.
MakePage recipe_pages(const MultiVectorSet& documents, const Model& model, const Recipe& recipe, std::size_t threads);

/// The maker that keeps every vector.
MakePage whole_pages(const MultiVectorSet& documents);

}  // namespace marginmerge
