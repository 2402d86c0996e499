#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "marginmerge/core/cluster.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/judgements.h"
#include "marginmerge/data/multi_vector_set.h"
#include "marginmerge/merge/recipe.h"

namespace marginmerge {

/// What a dataset is for.
enum class DataRole {
    train,      ///< its queries feed the bank, mining and training
    bank,       ///< its queries feed the prototype bank and the probes only
    zero_shot,  ///< judged later: nothing of it may be in any other dataset
};

/// One dataset. Only `documents` is needed; without queries, pseudo-queries are drawn.
struct FitSource {
    std::string name;
    std::filesystem::path documents;
    std::filesystem::path queries;
    std::filesystem::path qrels;
    DataRole role = DataRole::train;
    // In place of the files, for callers that hold their vectors in memory.
    std::optional<MultiVectorSet> document_set, query_set;
    std::optional<Judgements> judgements;
};

/// The files of a folder: docs.safetensors, train_queries.safetensors or queries.safetensors,
/// train_qrels.tsv or qrels.tsv. "DIR:role" sets the role (train, bank, zero-shot).
FitSource source_from_folder(const std::string& folder_and_role);

struct FitOptions {
    std::vector<FitSource> sources;
    std::filesystem::path output;                              ///< the model file
    std::string preset = "default";                            ///< see fit_presets()
    std::optional<std::string> anchors, fill, representative;  ///< override the preset's
    std::optional<double> keep;  ///< share of vectors the model is fitted for (default 0.05)
    std::optional<std::size_t> epochs;
    std::optional<double> learning_rate;
    std::size_t prototypes = 128;                ///< M
    std::size_t probes = 0;                      ///< most probes `fitted` keeps; 0: the preset's
    std::uint64_t seed = 42;                     ///< of training; the splits have seeds of their own
    std::size_t threads = 0;                     ///< 0: all cores
    bool no_labels = false;                      ///< ignore judgements: the full index is the teacher
    std::optional<double> sharpen;               ///< how far `fitted` lifts unusually strong answers; 0: not at all
    std::optional<double> align;                 ///< most pairs (share) whose order judgements may change; 0: none
    bool remember = true;                        ///< pages may remember what judged queries asked of them
    bool unit_norm = false;                      ///< fit for engines that only know cosine
    bool compare = true;                         ///< hold the result against the fixed representatives and fall back
    double hold_out = 0;                         ///< share of documents set aside for evaluation (the paper: 0.3)
    double validation = 0.1;                     ///< share of training queries kept for validation
    std::filesystem::path exclude_queries;       ///< evaluation queries: a multi-vector file or a list of ids
    std::filesystem::path evaluation_documents;  ///< multi-vector file that must share nothing with training
    std::filesystem::path cache;  ///< keeps mined negatives between runs; empty: beside the output, removed at the end
    Cluster* cluster = nullptr;   ///< processes that share scans of the documents and the k-means of the bank
    double checkpoint_seconds = 2;  ///< least time between two checkpoints
    Progress progress;
};

/// One way of compressing, judged on validation queries.
struct FitCandidate {
    std::string name;
    double ndcg = 0;
    double flips = 0;
    double error = 0;  ///< score error a query's documents do not share, relative to their spread
    bool chosen = false;
};

/// What something learned from judgements does to the full index, in cross-validation over the judged queries.
struct FitLabelGain {
    std::size_t queries = 0;  ///< judged ones it was learned from; 0: it was not tried
    double full_ndcg = 0;     ///< nDCG@5 of the full index on them
    double ndcg = 0;          ///< with what was learned
    double error = 0;         ///< standard error of the difference
    double flips = 0;         ///< pairs (relevant, drawn at random) that change their order
    double strength = 0;      ///< how long what is remembered counts; which share of the alignment
    double length_power = 0;  ///< of an alignment
    std::size_t pages = 0;    ///< of a memory: those it knows something of
    bool kept = false;        ///< whether it is in the model: its gain was large enough
};

struct FitReport {
    Recipe recipe;  ///< what the model recommends
    std::size_t documents = 0, vectors = 0;
    std::size_t train_queries = 0, validation_queries = 0, pseudo_queries = 0;
    std::size_t unjudged_queries = 0;    ///< taught by the full index alone
    std::size_t missing_judgements = 0;  ///< judged documents that are not in the files
    std::size_t epochs = 0, best_epoch = 0;
    bool resumed = false;
    double full_ndcg = 0;  ///< of the full index on the validation queries
    std::vector<FitCandidate> candidates;
    FitLabelGain memory;     ///< pages remember what they were asked
    FitLabelGain alignment;  ///< all pages are changed alike
    std::string fell_back;   ///< empty, or why a fixed representative was kept
    std::string settings;    ///< JSON
    std::string provenance;  ///< JSON, as in the model file
    double seconds_loading = 0, seconds_bank = 0, seconds_mining = 0, seconds_clusters = 0, seconds_training = 0,
           seconds_total = 0;
};

/// Fits a model and writes it. Throws Error; an interrupted run continues when called again.
FitReport fit(const FitOptions& options);

/// Name and one-line description of every preset.
std::vector<std::pair<std::string, std::string>> fit_presets();

}  // namespace marginmerge
