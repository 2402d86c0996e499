#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "lab/dataset.h"
#include "lab/method.h"
#include "lab/run_store.h"
#include "marginmerge/merge/model.h"

namespace marginmerge::lab {

/// A fitted model and what its fit said.
struct FittedModel {
    Model model;
    std::string key;        ///< name in the store; part of every run that uses it
    std::string fell_back;  ///< why `fit` kept a fixed representative; empty: it did not
    double seconds = 0;     ///< of the fit, when it was made
};

/// Fits what methods need, once: models are kept in the store.
class Models {
public:
    Models(const RunStore& store, std::size_t threads, Progress progress)
        : store_(store), threads_(threads), progress_(std::move(progress)) {}

    /// The model of a method of kind compress, fitted at `keep` on these datasets together.
    std::shared_ptr<const FittedModel> fit(const Method& method, std::span<const Dataset* const> sources, double keep,
                                           std::uint64_t seed);

private:
    const RunStore& store_;
    std::size_t threads_;
    Progress progress_;
    std::map<std::string, std::shared_ptr<const FittedModel>> made_;
};

/// Whether the method needs anything fitted at all, and whether what it needs depends on the seed.
struct ModelNeeds {
    bool any = false;
    bool seeded = false;
};
ModelNeeds model_needs(const Method& method);

/// The recipe of a compress method before any fit.
Recipe method_recipe(const Method& method);

}  // namespace marginmerge::lab
