#pragma once

#include <string>
#include <vector>

#include "core/sha256.h"
#include "kernels/maxsim.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/jobs/fit.h"

namespace marginmerge {

/// Relevant documents of a query by position, with grades above zero.
struct QueryLabels {
    std::vector<std::size_t> documents;
    std::vector<int> grades;
};

/// One dataset, read, divided and checked.
struct FitCorpus {
    std::string name;
    DataRole role = DataRole::train;
    MultiVectorSet documents;
    MultiVectorSet queries;
    bool pseudo = false;                          ///< the queries were drawn from the documents
    std::vector<QueryLabels> labels;              ///< one per query; empty: unjudged
    std::vector<std::size_t> training_documents;  ///< positions, ascending
    std::vector<std::size_t> held_out_documents;
    std::vector<std::size_t> train_queries;  ///< positions, ascending
    std::vector<std::size_t> validation_queries;
    std::size_t missing_judgements = 0;
    std::vector<Sha256::Digest> page_hashes;   ///< of every document
    std::vector<Sha256::Digest> query_hashes;  ///< of every query, as it is stored

    /// Those of training and of validation, ascending.
    std::vector<std::size_t> own_queries() const;
};

/// Reads every source, divides it and checks that nothing is on two sides. Error(invalid_argument)
/// lists what overlaps.
std::vector<FitCorpus> load_fit_data(const FitOptions& options);

/// SHA-256 of each document's vectors as half precision, so that a page stored as F32 and its copy as
/// F16 count as the same.
std::vector<Sha256::Digest> hash_pages(const MultiVectorSet& documents, std::size_t threads,
                                       Cluster* cluster = nullptr);

/// Pseudo-queries: each takes up to `tokens` vectors of one document, slightly disturbed, so that they
/// lie where queries about that document would.
MultiVectorSet draw_pseudo_queries(const MultiVectorSet& documents, std::span<const std::size_t> positions,
                                   std::size_t count, std::size_t tokens, std::uint64_t seed);

/// The vector of a page that answers each token, into `answers` [tokens,d]. Returns the page's score.
float find_answers(ConstMatrix tokens, ConstMatrix page, MutMatrix answers);

}  // namespace marginmerge
