// OpenSearch: vectors in an object field that is stored but not parsed, scored by lateInteractionScore.
#include "export/bulk.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

class OpenSearchRest : public BulkRest {
public:
    ordered_json index_json(const ExportPlan&) const override {
        return {{"mappings",
                 {{"properties",
                   {{"id", {{"type", "keyword"}}},
                    {"position", {{"type", "long"}}},
                    {"metadata", {{"type", "flat_object"}}},
                    {"vectors", {{"type", "object"}, {"enabled", false}}}}}}}};
    }

    // The field holds anything; that the dimension fits shows only when a query is scored.
    void check_mapping(const ExportPlan& plan, const nlohmann::json& vectors) const override {
        const std::string type = vectors.is_object() ? vectors.value("type", "object") : "";
        if (type != "object" && type != "float")
            refuse_existing(plan, "field vectors", "an object field with enabled: false",
                            vectors.is_null() ? "no such field" : vectors.dump());
    }
};

const OpenSearchRest opensearch_rest;

class OpenSearch : public ExportTarget {
public:
    std::string_view name() const override { return "opensearch"; }
    std::string_view summary() const override { return "OpenSearch 3.3+: an object field and lateInteractionScore"; }
    const RestDialect* rest() const override { return &opensearch_rest; }
    TargetLimits limits() const override { return {.id_bytes = 512, .empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return batch_files(opensearch_rest, plan, folder / "data", "bulk", "ndjson");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "OpenSearch";
        readme.load = "OPENSEARCH_URL=http://localhost:9200 ./load.sh\n";
        readme.query = "OPENSEARCH_URL=http://localhost:9200 ./query.sh\n";
        readme.notes =
            "`lateInteractionScore` reads the vectors from each document's source: let another query choose candidates "
            "(replace\n"
            "`match_all`) when there are many pages. Scores must not be negative, so the script adds an `offset` (" +
            std::to_string(static_cast<long>(bulk::score_offset(plan))) +
            " here);\nnewer versions transform the score as well, which keeps the order. `metadata` is a flat_object: "
            "filter with\n"
            "`{\"term\": {\"metadata.source\": \"a.pdf\"}}`.\n";
        TextFiles files = bulk::scripts(plan, "OPENSEARCH_URL");
        files["README.md"] = readme_text(plan, readme);
        files["expected.tsv"] = expected_text(plan);
        files["index.json"] = opensearch_rest.index_json(plan).dump(2) + "\n";
        files["query.json"] = bulk::query_json(
            plan,
            "lateInteractionScore(params.query_vectors, 'vectors', params._source, params.space_type) + params.offset",
            "query_vectors", {{"space_type", "innerproduct"}});
        return files;
    }
};

}  // namespace

const ExportTarget& opensearch_target() {
    static const OpenSearch target;
    return target;
}

}  // namespace marginmerge
