#include "export/bulk.h"

#include <cmath>

#include "core/fail.h"
#include "export/text.h"

namespace marginmerge {

using nlohmann::ordered_json;

bool BulkRest::prepare(RestServer& server, const ExportPlan& plan, bool, bool) const {
    const HttpAnswer answer = server.ask({"GET", "/" + plan.name + "/_mapping", "", ""});
    if (answer.status == 404) {
        server.demand({"PUT", "/" + plan.name, "application/json", index_json(plan).dump()}, "creating the index");
        return false;
    }
    if (Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted)
        fail(ErrorCode::io, "looking at the index: the server refused with {}", verdict.why);
    // {"INDEX": {"mappings": {"properties": {...}}}}; an alias has the name of the index behind it.
    const auto json = nlohmann::json::parse(answer.body, nullptr, false);
    nlohmann::json vectors;
    if (json.is_object() && !json.empty() && json.front().is_object())
        vectors = json.front().value("/mappings/properties/vectors"_json_pointer, nlohmann::json());
    check_mapping(plan, vectors);
    return true;
}

std::string BulkRest::encode(const ExportPlan&, const ExportPage& page) const {
    std::string text = "{\"index\":{\"_id\":" + json_text(page.id) + "}}\n{\"id\":" + json_text(page.id) +
                       ",\"position\":" + std::to_string(page.position);
    if (!page.metadata.empty()) text.append(",\"metadata\":").append(page.metadata);
    text += ",\"vectors\":";
    append_rows(text, page.vectors);
    return text + "}\n";
}

std::vector<HttpRequest> BulkRest::requests(const ExportPlan& plan, std::span<const ExportPage>,
                                            std::span<const std::string> encoded, const std::string&) const {
    std::string body;
    for (const auto& lines : encoded) body += lines;
    return {{"POST", "/" + plan.name + "/_bulk", "application/x-ndjson", std::move(body)}};
}

// 200 with "errors": true when a document was refused.
Verdict BulkRest::judge(const HttpAnswer& answer) const {
    if (Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted) return verdict;
    const auto json = nlohmann::json::parse(answer.body, nullptr, false);
    if (!json.is_object() || !json.contains("errors"))
        return {Verdict::Kind::refused, "an answer that is not one of the bulk API: " + complaint(answer.body)};
    if (json["errors"] == false) return {};
    Verdict verdict{Verdict::Kind::again, "documents were refused"};
    for (const auto& item : json.value("items", nlohmann::json::array())) {
        if (!item.is_object() || item.empty() || !item.front().is_object()) continue;
        const auto& result = item.front();
        const int status =
            result.contains("status") && result["status"].is_number_integer() ? result["status"].get<int>() : 0;
        if (status < 300 && !result.contains("error")) continue;
        const std::string why = fmt::format("page '{}': status {}: {}", result.value("_id", ""), status,
                                            complaint(result.value("error", nlohmann::json()).dump()));
        if (status != 429 && status != 503) return {Verdict::Kind::refused, why};
        verdict.why = why;
    }
    return verdict;
}

void BulkRest::finish(RestServer& server, const ExportPlan& plan) const {
    server.demand({"POST", "/" + plan.name + "/_refresh", "application/json", ""}, "refreshing the index");
}

namespace bulk {

float score_offset(const ExportPlan& plan) {
    double bound = 0;
    for (std::size_t i = 0; i < plan.query.rows(); ++i) {
        double squares = 0;
        for (const float x : plan.query.view().row_span(i)) squares += static_cast<double>(x) * static_cast<double>(x);
        bound += std::sqrt(squares) * static_cast<double>(plan.longest);
    }
    return static_cast<float>(std::ceil(bound));
}

std::string query_json(const ExportPlan& plan, const std::string& source, const std::string& vectors_name,
                       const ordered_json& params) {
    ordered_json all = params;
    all["offset"] = score_offset(plan);
    all[vectors_name] = "@";
    const ordered_json query = {
        {"size", 10},
        {"_source", {"id", "position"}},
        {"sort", ordered_json::array({"_score", {{"position", "asc"}}})},
        {"query",
         {{"script_score",
           {{"query", {{"match_all", ordered_json::object()}}}, {"script", {{"source", source}, {"params", all}}}}}}}};
    std::string text = query.dump();
    text.replace(text.find("\"@\""), 3, rows_text(plan.query));
    return text + "\n";
}

TextFiles scripts(const ExportPlan& plan, const std::string& variable) {
    const std::string head =
        "#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n"
        ": \"${" +
        variable +
        ":=http://localhost:9200}\"\n"
        "# CURL_OPTIONS: what else the server wants, for example -u user:password or -H 'Authorization: ApiKey ...'\n"
        "call() { eval \"curl --fail-with-body -sS -H Expect: ${CURL_OPTIONS:-} \\\"\\$@\\\"\"; }\n";
    return {
        {"load.sh",
         head + fill("call -X PUT \"${{url}}/{{name}}\" -H 'Content-Type: application/json' -d @index.json; echo\n"
                     "for file in data/bulk-*.ndjson; do\n"
                     "    answer=$(call -X POST \"${{url}}/{{name}}/_bulk?filter_path=errors,items.*.error\" -H "
                     "'Content-Type: application/x-ndjson' --data-binary \"@$file\")\n"
                     "    [[ $answer == *'\"errors\":false'* ]] || { echo \"$file: ${answer:0:500}\" >&2; exit 1; }\n"
                     "done\n"
                     "call -X POST -H 'Content-Length: 0' \"${{url}}/{{name}}/_refresh\"; echo\n",
                     {{"url", variable}, {"name", plan.name}})},
        {"query.sh", head + fill("call -X POST \"${{url}}/{{name}}/_search\" -H 'Content-Type: application/json' "
                                 "--data-binary @query.json; echo\n",
                                 {{"url", variable}, {"name", plan.name}})}};
}

}  // namespace bulk

}  // namespace marginmerge
