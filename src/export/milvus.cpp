// Milvus 2.6.4+: an array of structs with one vector each, compared by MAX_SIM_IP.
#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "export/rest.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

constexpr std::size_t most_structs = 4096;

ordered_json milvus_collection(const ExportPlan& plan) {
    const std::string capacity =
        std::to_string(std::min(most_structs, std::bit_ceil(std::max<std::size_t>(16, plan.most_vectors))));
    return {
        {"collectionName", plan.name},
        {"schema",
         {{"autoID", false},
          {"enableDynamicField", false},
          {"fields", ordered_json::array({{{"fieldName", "id"},
                                           {"dataType", "VarChar"},
                                           {"isPrimary", true},
                                           {"elementTypeParams", {{"max_length", "1024"}}}},
                                          {{"fieldName", "position"}, {"dataType", "Int64"}},
                                          {{"fieldName", "metadata"}, {"dataType", "JSON"}}})},
          {"structFields",
           ordered_json::array(
               {{{"fieldName", "patches"},
                 {"typeParams", {{"max_capacity", capacity}}},
                 {"fields", ordered_json::array({{{"fieldName", "vector"},
                                                  {"dataType", "ArrayOfVector"},
                                                  {"elementDataType", "FloatVector"},
                                                  {"elementTypeParams", {{"dim", std::to_string(plan.dim)}}}}})}}})}}},
        {"indexParams", ordered_json::array({{{"fieldName", "patches[vector]"},
                                              {"indexName", "patches_vector"},
                                              {"indexType", "AUTOINDEX"},
                                              {"metricType", "MAX_SIM_IP"}}})}};
}

// The value of the parameter "dim" anywhere in a description.
std::string find_dim(const nlohmann::json& value) {
    if (value.is_object()) {
        if (value.value("key", "") == "dim" && value.contains("value"))
            return value["value"].is_string() ? value["value"].get<std::string>() : value["value"].dump();
        if (value.contains("dim"))
            return value["dim"].is_string() ? value["dim"].get<std::string>() : value["dim"].dump();
    }
    if (value.is_structured())
        for (const auto& part : value)
            if (auto found = find_dim(part); !found.empty()) return found;
    return {};
}

class MilvusRest : public RestDialect {
public:
    bool prepare(RestServer& server, const ExportPlan& plan, bool, bool) const override {
        const std::string named = ordered_json({{"collectionName", plan.name}}).dump();
        const auto has = call(server, "/v2/vectordb/collections/has", named, "looking for the collection");
        if (!has.value("/data/has"_json_pointer, false)) {
            call(server, "/v2/vectordb/collections/create", milvus_collection(plan).dump(), "creating the collection");
            return false;
        }
        const auto described = call(server, "/v2/vectordb/collections/describe", named, "looking at the collection");
        const std::string dim = find_dim(described);
        if (dim != std::to_string(plan.dim))
            refuse_existing(plan, "dimensions", std::to_string(plan.dim), dim.empty() ? "no vectors" : dim);
        return true;
    }

    std::string encode(const ExportPlan&, const ExportPage& page) const override {
        std::string text =
            "{\"id\":" + json_text(page.id) + ",\"position\":" + std::to_string(page.position) + ",\"metadata\":";
        text.append(page.metadata.empty() ? "{}" : page.metadata);
        text += ",\"patches\":[";
        for (std::size_t i = 0; i < page.vectors.rows(); ++i) {
            text += i > 0 ? ",{\"vector\":" : "{\"vector\":";
            append_row(text, page.vectors.view().row_span(i));
            text += '}';
        }
        return text + "]}";
    }

    std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage>,
                                      std::span<const std::string> encoded, const std::string&) const override {
        return {{"POST", "/v2/vectordb/entities/upsert", "application/json",
                 "{\"collectionName\":\"" + plan.name + "\",\"data\":" + json_list(encoded) + "}"}};
    }

    // Milvus answers with 200 and a code; 0 is success, 8 asks to slow down.
    Verdict judge(const HttpAnswer& answer) const override {
        if (Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted) return verdict;
        const auto json = nlohmann::json::parse(answer.body, nullptr, false);
        const auto code = json.is_object() && json.contains("code") ? json["code"] : nlohmann::json();
        if (code == 0) return {};
        return {code == 8 ? Verdict::Kind::again : Verdict::Kind::refused,
                fmt::format("code {}: {}", code.dump(), complaint(answer.body))};
    }

    void finish(RestServer& server, const ExportPlan& plan) const override {
        call(server, "/v2/vectordb/collections/load", ordered_json({{"collectionName", plan.name}}).dump(),
             "loading the collection");
    }

private:
    nlohmann::json call(RestServer& server, const std::string& path, const std::string& body, const char* what) const {
        const HttpAnswer answer = server.demand({"POST", path, "application/json", body}, what);
        if (const Verdict verdict = judge(answer); verdict.kind != Verdict::Kind::accepted)
            fail(ErrorCode::io, "{}: the server refused with {}", what, verdict.why);
        return nlohmann::json::parse(answer.body, nullptr, false);
    }
};

const MilvusRest milvus_rest;

class Milvus : public ExportTarget {
public:
    std::string_view name() const override { return "milvus"; }
    std::string_view summary() const override { return "Milvus 2.6.4+: an array of structs, MAX_SIM_IP"; }
    const RestDialect* rest() const override { return &milvus_rest; }
    TargetLimits limits() const override {
        return {.dim = 32768, .page_vectors = most_structs, .id_bytes = 1024, .empty_pages = false};
    }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return batch_files(milvus_rest, plan, folder / "data", "entities", "json");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Milvus";
        readme.load = "MILVUS_URL=http://localhost:19530 ./load.sh      # MILVUS_TOKEN=user:password or a key\n";
        readme.query = "MILVUS_URL=http://localhost:19530 ./query.sh\n";
        readme.notes =
            "A page is an entity whose field `patches` is an array of structs with one vector each; `patches[vector]` "
            "has an index\n"
            "with the metric MAX_SIM_IP, which is approximate. At most 4,096 vectors a page. Loading again replaces "
            "entities with\n"
            "the same `id`. `metadata` is a JSON field: filter with `metadata[\"source\"] == \"a.pdf\"`.\n";
        const std::string curl =
            "#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n"
            ": \"${MILVUS_URL:=http://localhost:19530}\"\n"
            "# Milvus answers with status 200 and a code; anything but 0 is a failure.\n"
            "call() {\n"
            "    local answer\n"
            "    answer=$(curl --fail-with-body -sS -H Expect: -X POST -H \"Authorization: Bearer ${MILVUS_TOKEN:-}\" "
            "-H "
            "'Content-Type: "
            "application/json' \"$MILVUS_URL/v2/vectordb/$1\" --data-binary \"@$2\")\n"
            "    echo \"$answer\"\n"
            "    [[ $answer == *'\"code\":0'* ]]\n"
            "}\n";
        ordered_json query = {{"collectionName", plan.name},
                              {"data", ordered_json::array({"@"})},
                              {"annsField", "patches[vector]"},
                              {"limit", 10},
                              {"outputFields", {"id", "position"}}};
        std::string body = query.dump();
        body.replace(body.find("\"@\""), 3, rows_text(plan.query));
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"collection.json", milvus_collection(plan).dump(2) + "\n"},
                {"load.json", ordered_json({{"collectionName", plan.name}}).dump() + "\n"},
                {"query.json", body + "\n"},
                {"load.sh", curl + "call collections/create collection.json\nfor file in data/entities-*.json; do\n"
                                   "    call entities/upsert \"$file\"\ndone\ncall collections/load load.json\n"},
                {"query.sh", curl + "call entities/search query.json\n"}};
    }
};

}  // namespace

const ExportTarget& milvus_target() {
    static const Milvus target;
    return target;
}

}  // namespace marginmerge
