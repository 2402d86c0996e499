#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "jobs/trial.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/eval/bootstrap.h"
#include "marginmerge/eval/metrics.h"
#include "marginmerge/index/index.h"

namespace marginmerge::lab {

/// One candidate index: a share of the vectors in a storage code.
struct AdvicePoint {
    double keep = 1;
    VectorCode code = VectorCode::f16;
    double vectors_per_page = 0, bytes_per_page = 0;
    Interval retention;  ///< nDCG over that of the full index; `low` is the one-sided bound that decides
    double flips = 0;
    bool tested = false;  ///< everything larger with the same code had passed
    bool passes = false;  ///< tested, and the bound reaches the target
};

struct Advice {
    std::vector<AdvicePoint> points;  ///< codes in the order asked, within a code from much to little
    std::optional<std::size_t> best;  ///< the smallest that passes
    double target = 0, confidence = 0;
    double full_ndcg = 0, full_bytes = 0;  ///< of the documents as F16, a page
    std::size_t queries = 0, documents = 0;
    bool labels = true;
    std::string method;  ///< how pages were compressed
    std::vector<std::string> notes;
};

/// Judged queries and candidates, whatever made them.
struct AdviceInputs {
    Matrix full;  ///< scores of the full index [queries, pages]
    std::vector<Relevance> relevance;
    std::vector<std::size_t> tokens;
    std::size_t k = 5;
    double target = 0.98, confidence = 0.95;
    std::vector<double> keeps;  ///< from large to small
    std::vector<VectorCode> codes;
    std::size_t pages = 0, dim = 0;
    double mean_vectors = 0;  ///< of a full page
    /// Scores of every query at one share, one result for each code.
    std::function<std::vector<TrialScores>(double keep)> scores;
};

/// Codes are tested from the largest share down and each stops at its first failure, at a level of (1 - confidence) /
/// codes: so the chance that anything recommended misses the target is at most 1 - confidence, however many
/// candidates there are.
Advice find_smallest(const AdviceInputs& inputs);

struct AdviseOptions {
    std::filesystem::path documents, queries, qrels;  ///< qrels empty: the full index's best `top` count as relevant
    std::filesystem::path model;                      ///< fitted elsewhere, on other queries; empty: fitted here
    std::string preset = "auto";  ///< a `fit` preset; auto: default with 40 queries or more, else fixed
    double target = 0.98, confidence = 0.95;
    std::vector<double> keeps = {1, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01};
    std::vector<std::string> codes = {"f32", "f16", "int8", "bits"};
    std::size_t k = 5, top = 10;
    std::size_t sample = 20000;    ///< most documents looked at: the relevant ones and a random sample of others
    std::filesystem::path output;  ///< folder for advice.json, advice.csv and frontier.svg; empty: none
    std::uint64_t seed = 42;
    std::size_t threads = 0;
    Progress progress;
};

/// The smallest index whose quality on these queries stays within the target, with confidence. Models are fitted in two
/// halves: every query is judged by a model that has not seen it.
Advice advise(const AdviseOptions& options);

std::string advice_json(const Advice& advice);
std::string advice_csv(const Advice& advice);
/// Retention against bytes a page, a line for each code.
std::string frontier_panel(const Advice& advice, const std::string& title);

}  // namespace marginmerge::lab
