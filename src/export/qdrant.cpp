// Qdrant: one point a page with a multivector, compared by max_sim over dot products.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "export/rest.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

ordered_json qdrant_collection(const ExportPlan& plan) {
    ordered_json vectors = {
        {"size", plan.dim}, {"distance", "Dot"}, {"multivector_config", {{"comparator", "max_sim"}}}};
    // Without links there is no graph to build or search: every point is compared, exactly.
    if (!plan.ann) vectors["hnsw_config"] = {{"m", 0}};
    return {{"vectors", vectors}};
}

class QdrantRest : public RestDialect {
public:
    bool prepare(RestServer& server, const ExportPlan& plan, bool, bool) const override {
        const std::string path = "/collections/" + plan.name;
        const HttpAnswer answer = server.ask({"GET", path, "", ""});
        if (answer.status == 404) {
            server.demand({"PUT", path, "application/json", qdrant_collection(plan).dump()}, "creating the collection");
            return false;
        }
        if (const Verdict verdict = judge_status(answer); verdict.kind != Verdict::Kind::accepted)
            fail(ErrorCode::io, "looking at the collection: the server refused with {}", verdict.why);
        const auto json = nlohmann::json::parse(answer.body, nullptr, false);
        const auto vectors = json.is_object()
                                 ? json.value("/result/config/params/vectors"_json_pointer, nlohmann::json())
                                 : nlohmann::json();
        if (!vectors.is_object() || !vectors.contains("size"))
            refuse_existing(plan, "vectors", "one unnamed multivector", one_line(vectors.dump().substr(0, 200)));
        if (vectors["size"] != plan.dim)
            refuse_existing(plan, "dimensions", std::to_string(plan.dim), vectors["size"].dump());
        if (vectors.value("distance", "") != "Dot" || !vectors.contains("multivector_config") ||
            vectors["multivector_config"].is_null())
            refuse_existing(plan, "vectors", "Dot with multivector_config max_sim",
                            one_line(vectors.dump().substr(0, 200)));
        return true;
    }

    std::string encode(const ExportPlan&, const ExportPage& page) const override {
        std::string text = "{\"id\":\"" + page_uuid(page.id) + "\",\"payload\":{\"id\":" + json_text(page.id) +
                           ",\"position\":" + std::to_string(page.position);
        if (!page.metadata.empty()) text.append(",\"metadata\":").append(page.metadata);
        text += "},\"vector\":";
        append_rows(text, page.vectors);
        return text + "}";
    }

    std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage>,
                                      std::span<const std::string> encoded, const std::string&) const override {
        return {{"PUT", "/collections/" + plan.name + "/points?wait=true", "application/json",
                 "{\"points\":" + json_list(encoded) + "}"}};
    }
};

const QdrantRest qdrant_rest;

class Qdrant : public ExportTarget {
public:
    std::string_view name() const override { return "qdrant"; }
    std::string_view summary() const override { return "Qdrant: multivector points, max_sim over dot products"; }
    bool offers_ann() const override { return true; }
    const RestDialect* rest() const override { return &qdrant_rest; }
    TargetLimits limits() const override { return {.dim = 65536, .page_floats = 1'048'576, .empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return batch_files(qdrant_rest, plan, folder / "data", "points", "json");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Qdrant";
        readme.load = "QDRANT_URL=http://localhost:6333 ./load.sh      # QDRANT_API_KEY=... when there is one\n";
        readme.query = "QDRANT_URL=http://localhost:6333 ./query.sh\n";
        readme.notes =
            "A point's id is a UUID made of the page's id, so loading again replaces points instead of doubling them; "
            "the page's\n"
            "id is `payload.id`, its metadata `payload.metadata` (filter on `metadata.source`). Qdrant takes at most "
            "1,048,576\n"
            "numbers a point, and 32 MB a request unless configured otherwise.\n" +
            std::string(plan.ann ? "The collection has Qdrant's graph index, which is approximate.\n"
                                 : "The collection has no graph index (`hnsw_config.m` is 0): searches are exact "
                                   "scans. `export --ann` leaves\n"
                                   "Qdrant's default index on.\n");
        const std::string curl =
            "#!/usr/bin/env bash\nset -euo pipefail\ncd \"$(dirname \"$0\")\"\n"
            ": \"${QDRANT_URL:=http://localhost:6333}\"\n"
            "call() { curl --fail-with-body -sS -H Expect: -H \"api-key: ${QDRANT_API_KEY:-}\" -H 'Content-Type: "
            "application/json' \"$@\"; echo; }\n";
        const ordered_json query = {
            {"query", "@"}, {"limit", 10}, {"with_payload", true}, {"params", {{"exact", !plan.ann}}}};
        std::string body = query.dump();
        body.replace(body.find("\"@\""), 3, rows_text(plan.query));
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"collection.json", qdrant_collection(plan).dump(2) + "\n"},
                {"query.json", body + "\n"},
                {"load.sh", curl + "call -X PUT \"$QDRANT_URL/collections/" + plan.name +
                                "\" -d @collection.json\nfor file in data/points-*.json; do\n"
                                "    call -X PUT \"$QDRANT_URL/collections/" +
                                plan.name + "/points?wait=true\" --data-binary \"@$file\"\ndone\n"},
                {"query.sh", curl + "call -X POST \"$QDRANT_URL/collections/" + plan.name +
                                 "/points/query\" --data-binary @query.json\n"}};
    }
};

}  // namespace

const ExportTarget& qdrant_target() {
    static const Qdrant target;
    return target;
}

}  // namespace marginmerge
