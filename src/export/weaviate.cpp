// Weaviate: one object a page with a named multi-vector.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "export/rest.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

// Scores of several vectors are sums of dot products in Weaviate; "dot" keeps it from normalising them first.
ordered_json class_json(const ExportPlan& plan) {
    return {{"class", capitalised(plan.name)},
            {"properties",
             ordered_json::array({{{"name", "page_id"}, {"dataType", {"text"}}, {"tokenization", "field"}},
                                  {{"name", "position"}, {"dataType", {"int"}}},
                                  {{"name", "metadata"}, {"dataType", {"text"}}, {"indexSearchable", false}}})},
            {"vectorConfig",
             {{"vectors",
               {{"vectorizer", {{"none", ordered_json::object()}}},
                {"vectorIndexType", "hnsw"},
                {"vectorIndexConfig", {{"distance", "dot"}, {"multivector", {{"enabled", true}}}}}}}}}};
}

class WeaviateRest : public RestDialect {
public:
    bool prepare(RestServer& server, const ExportPlan& plan, bool, bool) const override {
        const HttpAnswer answer = server.ask({"GET", "/v1/schema/" + capitalised(plan.name), "", ""});
        if (answer.status == 404) {
            server.demand({"POST", "/v1/schema", "application/json", class_json(plan).dump()}, "creating the class");
            return false;
        }
        if (Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted)
            fail(ErrorCode::io, "looking at the class: the server refused with {}", verdict.why);
        const auto json = nlohmann::json::parse(answer.body, nullptr, false);
        const auto config = json.is_object()
                                ? json.value("/vectorConfig/vectors/vectorIndexConfig"_json_pointer, nlohmann::json())
                                : nlohmann::json();
        const bool multi = config.is_object() && config.value("/multivector/enabled"_json_pointer, false);
        if (!multi || config.value("distance", "") != "dot")
            refuse_existing(plan, "vectorConfig.vectors", "a multivector with distance dot",
                            one_line(config.dump().substr(0, 200)));
        return true;
    }

    std::string encode(const ExportPlan& plan, const ExportPage& page) const override {
        std::string text = "{\"class\":\"" + capitalised(plan.name) + "\",\"id\":\"" + page_uuid(page.id) +
                           "\",\"properties\":{\"page_id\":" + json_text(page.id) +
                           ",\"position\":" + std::to_string(page.position);
        if (!page.metadata.empty()) text += ",\"metadata\":" + json_text(page.metadata);
        text += "},\"vectors\":{\"vectors\":";
        append_rows(text, page.vectors);
        return text + "}}";
    }

    std::vector<HttpRequest> requests(const ExportPlan&, std::span<const ExportPage>,
                                      std::span<const std::string> encoded, const std::string&) const override {
        return {{"POST", "/v1/batch/objects", "application/json", "{\"objects\":" + json_list(encoded) + "}"}};
    }

    // A batch is answered with 200 and a result for each object.
    Verdict judge(const HttpAnswer& answer) const override {
        if (Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted) return verdict;
        const auto json = nlohmann::json::parse(answer.body, nullptr, false);
        if (!json.is_array())
            return {Verdict::Kind::refused, "an answer that is not Weaviate's: " + complaint(answer.body)};
        for (const auto& object : json) {
            const auto result =
                object.is_object() ? object.value("result", nlohmann::json::object()) : nlohmann::json();
            if (!result.is_object()) continue;
            if (result.value("status", "SUCCESS") != "FAILED" && !result.contains("errors")) continue;
            if (result.contains("errors") && result["errors"].is_null()) continue;
            const std::string id = object.contains("properties") && object["properties"].is_object()
                                       ? object["properties"].value("page_id", "")
                                       : "";
            return {Verdict::Kind::refused,
                    "page '" + id + "': " + complaint(result.value("errors", nlohmann::json()).dump())};
        }
        return {};
    }
};

const WeaviateRest weaviate_rest;

class Weaviate : public ExportTarget {
public:
    std::string_view name() const override { return "weaviate"; }
    std::string_view summary() const override { return "Weaviate 1.29+: objects with a named multi-vector"; }
    const RestDialect* rest() const override { return &weaviate_rest; }
    TargetLimits limits() const override { return {.dim = 65535, .empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return batch_files(weaviate_rest, plan, folder / "data", "objects", "json");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Weaviate";
        readme.load = "WEAVIATE_URL=http://localhost:8080 ./load.sh      # WEAVIATE_API_KEY=... when there is one\n";
        readme.query = "WEAVIATE_URL=http://localhost:8080 ./query.sh\n";
        readme.notes =
            "The class has one multi-vector named `vectors` with distance `dot`; the `distance` of a result is the "
            "negated score.\n"
            "Weaviate's index is approximate. An object's id is a UUID made of the page's id (`page_id`), so loading "
            "again\n"
            "replaces objects. `metadata` is text holding a JSON object.\n";
        const std::string curl =
            "#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n"
            ": \"${WEAVIATE_URL:=http://localhost:8080}\"\n"
            "call() { curl --fail-with-body -sS -H Expect: -H \"Authorization: Bearer ${WEAVIATE_API_KEY:-}\" -H "
            "'Content-Type: "
            "application/json' \"$@\"; echo; }\n";
        const std::string graphql = fill(
            "{ Get { {{class}}(limit: 10, nearVector: { vector: {{query}}, targetVectors: [\"vectors\"] }) "
            "{ page_id position _additional { distance } } } }",
            {{"class", capitalised(plan.name)}, {"query", rows_text(plan.query)}});
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"class.json", class_json(plan).dump(2) + "\n"},
                {"query.json", ordered_json({{"query", graphql}}).dump() + "\n"},
                {"load.sh",
                 curl + "call -X POST \"$WEAVIATE_URL/v1/schema\" -d @class.json\nfor file in data/objects-*.json; do\n"
                        "    call -X POST \"$WEAVIATE_URL/v1/batch/objects\" --data-binary \"@$file\" | "
                        "{ ! grep -o '\"errors\":{[^}]*}' | head -n 3; }\ndone\n"},
                {"query.sh", curl + "call -X POST \"$WEAVIATE_URL/v1/graphql\" --data-binary @query.json\n"}};
    }
};

}  // namespace

const ExportTarget& weaviate_target() {
    static const Weaviate target;
    return target;
}

}  // namespace marginmerge
