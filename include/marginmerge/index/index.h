#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "marginmerge/core/matrix.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/index/filter.h"

namespace marginmerge {

/// How an index stores its vectors; chosen when it is made.
enum class VectorCode : std::uint8_t {
    f32,   ///< as given, 4 bytes a number
    f16,   ///< half precision, 2 bytes a number: the default
    bf16,  ///< only found in files that came so
    int8,  ///< one byte a number and a scale for each vector
    bits,  ///< the sign of each number and a scale for each vector
};
/// "f32", "f16", "bf16", "int8", "bits".
const char* to_string(VectorCode code);
/// Throws Error(invalid_argument) for any other name.
VectorCode parse_vector_code(std::string_view name);

/// One result. Higher scores are better; equal scores come in order of position.
struct Hit {
    std::size_t position = 0;  ///< within the snapshot that was searched
    std::string id;
    float score = 0;
};

/// What a search looks at first. Anything but `none` scores all pages cheaply, then the best
/// `candidates` exactly.
enum class FirstPass : std::uint8_t {
    none,    ///< exact scores for every page
    prefix,  ///< the first vectors of each page; our pages keep theirs in order of importance
    bits,    ///< sign bits of every vector, made in memory at the first such search
};
const char* to_string(FirstPass pass);
FirstPass parse_first_pass(std::string_view name);

struct SearchOptions {
    std::size_t k = 10;       ///< results a query; more than there are pages is fine
    std::size_t threads = 0;  ///< 0: all cores. The results do not depend on it
    Filter filter{};          ///< only pages that pass
    FirstPass first_pass = FirstPass::none;
    std::size_t candidates = 0;  ///< survivors of the first pass; 0: max(8 k, 200)
    std::size_t prefix = 0;      ///< vectors a page in a prefix pass; 0: a quarter of the page's, at least 4
    std::size_t rerank =
        0;              ///< the best max(k, this) pages are scored again with the full vectors, where kept; 0: none
    bool full = false;  ///< score every page with its full vectors (needs Index::has_full)
    /// Below 1: score a page with only its first vectors, this share of the page's original count
    /// (rounded up, at least one). It shows what a smaller index would have answered.
    double keep = 1;
    /// Called now and then from any worker; may throw to cancel the search.
    std::function<void()> check{};
};

/// One query token's part in a page's score.
struct TokenMatch {
    std::int32_t representative = -1;   ///< the stored vector that answered, -1 on a page without vectors
    float score = 0;                    ///< their inner product
    std::vector<std::int32_t> patches;  ///< original vectors of the page that it stands for, ascending
};

/// Why a page scored what it did.
struct Explanation {
    std::size_t position = 0;
    std::string id;
    float score = 0;                 ///< sum of the tokens' scores
    std::vector<TokenMatch> tokens;  ///< one per query vector
};

struct IndexStats {
    std::size_t pages = 0;    ///< live ones
    std::size_t deleted = 0;  ///< tombstones, gone after compact
    std::size_t dim = 0;
    std::uint64_t vectors = 0;         ///< stored vectors of live pages
    std::uint64_t source_vectors = 0;  ///< what live pages had before compression (equal when never compressed)
    std::uint64_t vector_bytes = 0;    ///< bytes of the live pages' stored vectors, scales included
    std::uint64_t bytes = 0;           ///< all files of the index but the full vectors
    std::uint64_t full_bytes = 0;      ///< files with full vectors
    std::size_t segments = 0;
    std::uint64_t generation = 0;  ///< rises by one with every change; 0 for a single file
    VectorCode code = VectorCode::f16;
};

/// An immutable, consistent snapshot of an index: one multi-vector or compressed file, or a folder
/// of segments with a manifest. Vectors are memory-mapped. Positions number the live pages
/// 0..size()-1. Every member may be called from any number of threads at once; a snapshot stays
/// valid and unchanged whatever a writer does meanwhile.
class Index {
public:
    /// Opens the newest state. Throws Error(not_found | corrupt | unsupported | io).
    static std::shared_ptr<const Index> open(const std::filesystem::path& path);
    /// The newest state of the same path: `current` itself when nothing changed, otherwise a new
    /// snapshot that shares every unchanged segment with it. Cheap enough to poll.
    static std::shared_ptr<const Index> reopen(const std::shared_ptr<const Index>& current);
    /// A set in memory as an index, for tests and for tools that hold one already.
    static std::shared_ptr<const Index> wrap(const MultiVectorSet& pages);
    ~Index();

    const std::filesystem::path& path() const;
    std::size_t size() const;
    std::size_t dim() const;
    VectorCode code() const;
    IndexStats stats() const;

    std::string id(std::size_t position) const;
    std::optional<std::size_t> find(std::string_view id) const;
    std::size_t vectors_of(std::size_t position) const;
    /// Stored vectors of a page, decoded.
    Matrix vectors(std::size_t position) const;
    PatchGrid grid(std::size_t position) const;
    /// [vectors_of, 4] left, top, right, bottom of each stored vector's region; may be empty.
    std::span<const float> boxes(std::size_t position) const;
    /// For each original vector the stored one that stands for it, -1 for none; empty when the
    /// pages were never compressed.
    std::span<const std::int32_t> owner(std::size_t position) const;
    std::size_t source_vectors_of(std::size_t position) const;
    /// The page's JSON object as text, "" when it has none.
    std::string_view metadata(std::size_t position) const;

    /// Whether every segment keeps the full vectors.
    bool has_full() const;
    /// A page before compression (has_full only): its vectors, and their regions (may be empty).
    VectorsView full_vectors(std::size_t position) const;
    std::span<const float> full_boxes(std::size_t position) const;

    /// Queries stored with the index to try it out; empty when there are none.
    const MultiVectorSet& example_queries() const;

    /// MaxSim top-k of one query [m,dim]; all cores share its pages.
    std::vector<Hit> search(VectorsView query, const SearchOptions& options = {}) const;
    /// Top-k for every query of a set; cores share pages, each block of which serves all queries.
    std::vector<std::vector<Hit>> search_batch(const MultiVectorSet& queries, const SearchOptions& options = {}) const;
    /// The score of every page, by position, from the stored vectors.
    std::vector<float> score_all(VectorsView query, std::size_t threads = 0) const;
    Explanation explain(VectorsView query, std::size_t position) const;

    struct State;  ///< internal
    explicit Index(std::shared_ptr<const State> state);
    const State& state() const { return *state_; }

private:
    std::shared_ptr<const State> state_;
};

}  // namespace marginmerge
