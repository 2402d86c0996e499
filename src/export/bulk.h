#pragma once

#include <nlohmann/json.hpp>

#include "export/rest.h"

namespace marginmerge {

/// What Elasticsearch and OpenSearch share: an index with mappings, the bulk API, and a script that scores.
class BulkRest : public RestDialect {
public:
    bool prepare(RestServer& server, const ExportPlan& plan, bool resuming, bool append) const override;
    std::string encode(const ExportPlan& plan, const ExportPage& page) const override;
    std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage> pages,
                                      std::span<const std::string> encoded, const std::string& token) const override;
    Verdict judge(const HttpAnswer& answer) const override;
    void finish(RestServer& server, const ExportPlan& plan) const override;

protected:
    virtual nlohmann::ordered_json index_json(const ExportPlan& plan) const = 0;
    /// Refuses the mapping of field `vectors` when it does not fit.
    virtual void check_mapping(const ExportPlan& plan, const nlohmann::json& vectors) const = 0;
};

namespace bulk {

/// Scores must not be negative there: this much, which no MaxSim falls below, is added to each.
float score_offset(const ExportPlan& plan);
/// A script_score query; `source` is the script, `params` an object without the query's vectors and the offset.
std::string query_json(const ExportPlan& plan, const std::string& source, const std::string& vectors_name,
                       const nlohmann::ordered_json& params);
/// load.sh and query.sh, with VARIABLE holding the server's URL.
TextFiles scripts(const ExportPlan& plan, const std::string& variable);

}  // namespace bulk

}  // namespace marginmerge
