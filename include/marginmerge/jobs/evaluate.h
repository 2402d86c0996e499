#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "marginmerge/core/cluster.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/judgements.h"
#include "marginmerge/eval/bootstrap.h"
#include "marginmerge/eval/metrics.h"
#include "marginmerge/index/index.h"

namespace marginmerge {

struct EvaluateOptions {
    std::filesystem::path full;                  ///< the documents before compression
    std::vector<std::filesystem::path> indexes;  ///< what is judged; several are compared
    std::filesystem::path queries;
    std::filesystem::path qrels;  ///< empty only with no_labels
    bool no_labels = false;       ///< judge against the full index alone: its first `top` count as relevant
    std::size_t k = 5;            ///< nDCG@k
    std::size_t top = 10;         ///< overlap@top, and what no_labels takes as relevant
    std::size_t threads = 0;
    std::size_t timed_queries = 50;  ///< searched one by one for the time of a search; 0: do not time
    SearchOptions search;            ///< first pass and re-ranking of the timed searches; its k is `top`
    std::filesystem::path runs;      ///< folder for TREC runs over the whole corpus; empty: none
    Progress progress;
    Cluster* cluster = nullptr;  ///< processes that share the queries; only the first reports
};

/// Quality of one query, or the mean over queries.
struct Quality {
    double ndcg = 0;
    double recall_1 = 0, recall_5 = 0, recall_10 = 0;
    double reciprocal_rank = 0;
};

struct QueryFigures {
    std::string query;
    Quality full, index;
    std::size_t pairs = 0, flips = 0;
    double overlap = 0;                   ///< of the first `top`
    std::string first_full, first_index;  ///< ids of the best pages
};

struct IndexFigures {
    std::string name;
    std::string path;
    IndexStats stats;
    std::size_t missing = 0;  ///< pages of the full documents that the index lacks; they count as never found
    Quality quality;
    double retention = 0;         ///< nDCG / nDCG of the full index
    Interval ndcg_difference;     ///< index - full
    Interval ndcg_against_first;  ///< this index - the first one given
    Fidelity fidelity;
    Interval flips;  ///< rate over pairs, queries drawn
    double overlap_1 = 0, overlap_5 = 0, overlap_top = 0;
    double search_ms = 0;      ///< median time of a single search
    double search_recall = 1;  ///< of the timed searches against exact ones, when they have a first pass
    std::vector<QueryFigures> per_query;
};

struct EvaluateReport {
    std::string full_path, queries_path, qrels_path;
    std::size_t queries = 0;          ///< judged
    std::size_t skipped = 0;          ///< queries without a relevant page
    std::size_t unknown_queries = 0;  ///< of the judgements, not in the query file
    std::size_t k = 5, top = 10, threads = 0;
    bool labels = true;
    std::string kernel, version;
    Quality full_quality;
    IndexStats full;
    double full_search_ms = 0;
    std::vector<IndexFigures> indexes;
};

EvaluateReport evaluate_job(const EvaluateOptions& options);

/// What is judged, already open: for callers that hold their vectors in memory.
struct EvaluateInputs {
    struct Named {
        std::string name;  ///< of the figures; a number is added when another has it
        std::shared_ptr<const Index> index;
    };
    std::shared_ptr<const Index> full;
    std::vector<Named> indexes;
    MultiVectorSet queries;
    Judgements judgements;  ///< empty only with no_labels
};

/// The same on open indexes. Of the options' paths only `runs` is used; the others appear in the report.
EvaluateReport evaluate(const EvaluateInputs& inputs, const EvaluateOptions& options);

/// Everything, for programs.
std::string evaluate_json(const EvaluateReport& report);
/// One line for each index and query, for spreadsheets.
std::string evaluate_csv(const EvaluateReport& report);
/// A page with tables and plots that needs nothing but itself.
std::string evaluate_html(const EvaluateReport& report);

}  // namespace marginmerge
