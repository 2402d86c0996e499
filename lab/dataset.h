#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "jobs/trial.h"
#include "marginmerge/core/progress.h"
#include "marginmerge/data/judgements.h"
#include "marginmerge/eval/metrics.h"
#include "marginmerge/jobs/fit.h"

namespace marginmerge::lab {

/// Where a dataset comes from and what it is for. In a dataset file (docs/lab.md) or a folder's dataset.json.
struct DatasetSource {
    std::string name;
    std::filesystem::path documents;       ///< multi-vector file
    std::filesystem::path cache;           ///< or a folder with ps.pt, qs.pt, meta.json
    nlohmann::json synthetic;              ///< or what `synth` is to make (null: nothing)
    std::filesystem::path queries, qrels;  ///< divided by the paper's protocol
    std::filesystem::path train_queries, train_qrels, test_queries, test_qrels;  ///< or divided already
    std::filesystem::path structural;  ///< scores of patches for SAP: a multi-vector file of dimension 1
    std::string encoder;               ///< datasets of one encoder are fitted together; empty: alone
    std::string content;               ///< natural | scene | dense | "" unknown
    DataRole role = DataRole::train;   ///< bank: judged without training on it; zero_shot: not even in the bank
};

/// "FOLDER[:role]", a dataset file, or a cache folder.
DatasetSource dataset_source(const std::string& argument);
/// From a dataset file's object; paths are relative to `base`.
DatasetSource dataset_source(const nlohmann::json& description, const std::filesystem::path& base);

struct DatasetLimits {
    std::size_t documents = 0;      ///< 0: all; relevant documents of the kept queries are always kept
    std::size_t train_queries = 0;  ///< 0: all
    std::size_t test_queries = 0;   ///< 0: all
};

/// A dataset ready for trials: documents, the two sides of its queries, and what the full index says.
struct Dataset {
    DatasetSource source;
    std::string fingerprint;  ///< of documents, queries and judgements
    std::string split;        ///< "given", "documents", "queries": how the sides were divided
    bool labels = true;       ///< false: the full index's best ten count as relevant
    double hold_out = 0;      ///< what `fit` must be told for the same division of documents
    FitSource training;       ///< the training side for `fit`

    MultiVectorSet documents;
    MultiVectorSet train, test;                            ///< queries
    std::vector<std::vector<std::size_t>> train_relevant;  ///< documents of each training query
    std::vector<Relevance> relevance;                      ///< of each test query
    std::unique_ptr<CodedQueries> queries;                 ///< the test side, for every code
    Matrix full_scores;                                    ///< [test queries, documents]
    std::vector<double> full_ndcg;                         ///< @5
    double redundancy = 0;                                 ///< mean n / effective rank
    const std::string& name() const { return source.name; }
    double mean_vectors() const {
        return static_cast<double>(documents.total_vectors()) / static_cast<double>(documents.size());
    }
};

/// Reads, limits, divides and scores. Files that have to be made go to work/NAME.
std::unique_ptr<Dataset> load_dataset(const DatasetSource& source, const DatasetLimits& limits,
                                      const std::filesystem::path& work, std::size_t threads,
                                      const Progress& progress = {});

}  // namespace marginmerge::lab
