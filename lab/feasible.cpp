#include "lab/feasible.h"

#include <algorithm>

namespace marginmerge::lab {

std::string why_not(const Dataset& data, const Method& method) {
    if (method.kind != "select") return {};
    const std::string selector = method.text("selector");
    const bool learned = selector == "likelihood" || selector == "likely_kcenter" || selector == "single_query" ||
                         selector == "negative_aware";
    const bool taught = std::any_of(data.train_relevant.begin(), data.train_relevant.end(),
                                    [](const auto& pages) { return !pages.empty(); });
    return learned && !taught ? "no training queries with relevant documents" : "";
}

}  // namespace marginmerge::lab
