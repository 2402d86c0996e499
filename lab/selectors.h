#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/dataset.h"
#include "marginmerge/core/matrix.h"

namespace marginmerge::lab {

/// Keeps some patches of a page as they are. Trained ones saw the training side only.
class Selector {
public:
    virtual ~Selector() = default;
    /// k of the page's patches; `seed` is the page's own. Called from several threads.
    virtual std::vector<std::int32_t> keep(ConstMatrix v, std::size_t k, std::uint64_t seed) const = 0;
};

/// By settings["selector"]:
///   random, kcenter        the anchor rules
///   importance             highest mean similarity to the other patches
///   salience               most distinct: lowest mean similarity to the other patches
///   likelihood             most likely to be a winner: balanced logistic regression on the six patch features
///   likely_kcenter         k-center among the most likely (settings["pool"] times k of them)
///   single_query           logistic regression on embedding and features; winners of one query a page
///   negative_aware         soft gates trained so that the relevant page outranks hard negatives
std::unique_ptr<Selector> make_selector(const nlohmann::json& settings, const Dataset& data, std::uint64_t seed,
                                        std::size_t threads);

/// Pages of the training side with the tokens of the queries they answer, at most `most` of them.
struct TrainingPages {
    std::vector<std::size_t> pages;
    std::vector<std::vector<std::size_t>> queries;  ///< of each page
};
TrainingPages training_pages(const Dataset& data, std::size_t most);

}  // namespace marginmerge::lab
