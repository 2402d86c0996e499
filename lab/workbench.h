#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lab/dataset.h"
#include "lab/method.h"
#include "lab/models.h"
#include "lab/run_store.h"
#include "lab/scoring.h"

namespace marginmerge::lab {

/// Which run of a method.
struct RunSettings {
    double keep = 0.05;
    std::size_t vectors = 0;  ///< a fixed count instead of a share when positive
    std::uint64_t seed = 42;
    VectorCode code = VectorCode::f32;
    std::size_t subsample = 0;  ///< input pages cut to so many vectors
    double train_keep = 0.05;   ///< what models are fitted for
    bool leave_out = false;     ///< fitted on the other datasets of the encoder only
};

/// A run as the tables and the CSV of a study see it.
struct RunRecord {
    std::string dataset, method;
    RunSettings settings;
    std::string key;
    std::shared_ptr<const RunResult> result;
};

/// Datasets, store and models together: studies ask for runs, finished ones come from the store.
class Workbench {
public:
    Workbench(std::vector<std::unique_ptr<Dataset>> datasets, const std::filesystem::path& store, bool any_build,
              std::size_t threads, Progress progress);

    const std::vector<std::unique_ptr<Dataset>>& datasets() const { return datasets_; }
    std::shared_ptr<const RunResult> run(const Dataset& data, const Method& method, const RunSettings& settings);
    /// The model a compress method uses on this dataset; null when it needs none or has nothing to learn from.
    std::shared_ptr<const FittedModel> model(const Dataset& data, const Method& method, const RunSettings& settings);
    /// What run() would hand to run_method, for studies that need scores.
    RunInputs inputs(const Dataset& data, const Method& method, const RunSettings& settings);

    /// Datasets of the same encoder, the dataset itself included.
    std::vector<const Dataset*> group(const Dataset& data) const;
    /// Runs asked for since the last call, each once, in order.
    std::vector<RunRecord> take_records();
    const RunStore& store() const { return store_; }
    std::size_t threads() const { return threads_; }
    const Progress& progress() const { return progress_; }
    std::size_t computed() const { return computed_; }
    std::size_t reused() const { return reused_; }
    void set_study(std::string name) { study_ = std::move(name); }

private:
    std::shared_ptr<const Selector> selector(const Dataset& data, const Method& method, std::uint64_t seed);

    std::vector<std::unique_ptr<Dataset>> datasets_;
    RunStore store_;
    Models models_;
    std::size_t threads_;
    Progress progress_;
    std::string study_;
    std::map<std::string, std::shared_ptr<const RunResult>> runs_;
    std::map<std::string, std::shared_ptr<const Selector>> selectors_;
    std::vector<std::shared_ptr<const FittedModel>> held_;  ///< models that RunInputs borrow
    std::vector<RunRecord> records_;
    std::map<std::string, std::size_t> recorded_;
    std::size_t computed_ = 0, reused_ = 0;
};

}  // namespace marginmerge::lab
