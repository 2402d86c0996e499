#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "marginmerge/bank/prototype_bank.h"
#include "marginmerge/core/cluster.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/multi_vector_set.h"

namespace marginmerge {

/// How prototypes are made (supplement, prototype bank); the defaults are the paper's.
struct BankOptions {
    std::size_t prototypes = 128;           ///< M; fewer when there are fewer distinct tokens
    std::size_t tokens_per_query = 32;      ///< at most so many, sampled by seed
    std::size_t token_cap = 1'000'000;      ///< at most so many in all, sampled by seed
    std::size_t initialisations = 5;        ///< k-means++ starts; the best one is kept
    std::size_t iterations = 50;            ///< of each start, at most
    std::size_t relocations = 12;           ///< rounds that move centres of the best start from where they are too many
    std::size_t mini_batch_above = 20'000;  ///< tokens
    std::size_t mini_batch = 8'192;         ///< tokens in a batch
    std::size_t polish = 10;                ///< full passes after mini-batches
    std::uint64_t seed = 42;
    std::size_t threads = 0;            ///< 0: all cores; the result does not depend on it
    Cluster* cluster = nullptr;         ///< processes that share the work; nor on these
    std::vector<std::string> excluded;  ///< ids of queries that must not contribute
};

/// What was clustered, and how well.
struct BankReport {
    std::size_t queries = 0;     ///< that contributed
    std::size_t excluded = 0;    ///< that were offered but kept out
    std::size_t tokens = 0;      ///< clustered
    std::size_t iterations = 0;  ///< of the start that was kept
    double inertia = 0;          ///< mean weighted squared distance to the cluster mean
    bool mini_batch = false;
    double seconds = 0;
};

/// Prototypes of the queries' tokens: every query weighs the same, however long it is. The bank
/// remembers the ids of its queries and of those kept out.
PrototypeBank build_bank(const MultiVectorSet& queries, const BankOptions& options, const Progress& progress = {},
                         BankReport* report = nullptr);

/// The same for a token matrix [N,d] whose query i is rows offsets[i] .. offsets[i+1]. There are no
/// ids, so nothing is excluded.
PrototypeBank build_bank(ConstMatrix tokens, std::span<const std::int64_t> offsets, const BankOptions& options,
                         const Progress& progress = {}, BankReport* report = nullptr);

/// Error(invalid_argument) when one of these evaluation queries helped to build the bank.
void refuse_leakage(const PrototypeBank& bank, const MultiVectorSet& evaluation_queries);

}  // namespace marginmerge
