#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/dataset.h"
#include "lab/method.h"
#include "lab/selectors.h"
#include "marginmerge/index/index.h"
#include "marginmerge/merge/model.h"

namespace marginmerge::lab {

/// One method on one dataset at one budget and seed. Everything but `seconds` is the same in every run.
struct RunResult {
    std::vector<double> ndcg, pairs, flips, reversals, loss;  ///< by test query, as in JudgedScores
    std::vector<double> full;                                 ///< nDCG@5 of the full index on the same queries
    double vectors = 0;                                       ///< kept, a page
    double bytes = 0;                                         ///< a page, with the code of the run
    double margin_error = 0;
    std::map<std::string, double> extra;  ///< "winner_coverage" of selections, "subset" of SAP
    std::string skipped;                  ///< why there is no result; empty: there is one
    double seconds = 0;                   ///< making and scoring all pages; never in a CSV

    nlohmann::json to_json() const;
    static RunResult from_json(const nlohmann::json& json);
};

/// What a run needs besides the method.
struct RunInputs {
    const Dataset& data;
    const Model* model = nullptr;        ///< for compress methods that need one
    const Selector* selector = nullptr;  ///< for select methods
    Recipe recipe{};                     ///< for compress methods; budget and seed are set
    Budget budget{};
    VectorCode code = VectorCode::f32;
    std::uint64_t seed = 42;
    std::size_t threads = 0;
    std::size_t subsample = 0;  ///< pages are first cut to at most so many random vectors; 0: not
};

RunResult run_method(const Method& method, const RunInputs& inputs);

/// The scores alone, [test queries, documents], for studies that look closer.
Matrix method_scores(const Method& method, const RunInputs& inputs);

}  // namespace marginmerge::lab
