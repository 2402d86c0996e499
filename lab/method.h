#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace marginmerge::lab {

/// One way to answer queries from fewer vectors, as a file in lab/methods or an object in a study describes it.
struct Method {
    std::string id;
    std::string label;        ///< in tables
    std::string kind;         ///< full | single | query_conditioned | structural | select | compress
    bool seeded = false;      ///< results depend on the seed
    bool reference = false;   ///< stands outside the ranking (full index, query-conditioned, diagnostics)
    bool ours = false;        ///< shaded in tables
    std::string remark;       ///< printed below tables
    nlohmann::json settings;  ///< everything else the result depends on

    // kind "compress": a `fit` preset and its changes; a fixed recipe where nothing has to be fitted.
    std::string preset() const { return settings.value("preset", "paper"); }
    std::string text(const char* field) const { return settings.value(field, std::string()); }
};

/// A method by name (lab/methods/NAME.json) or as an object with those fields. Error(invalid_argument) names what
/// is wrong.
Method parse_method(const nlohmann::json& description);
std::vector<Method> parse_methods(const nlohmann::json& list);

}  // namespace marginmerge::lab
