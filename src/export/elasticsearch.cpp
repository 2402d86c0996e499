// Elasticsearch: a rank_vectors field, scored by maxSimDotProduct.
#include "export/bulk.h"
#include "export/text.h"

namespace marginmerge {

namespace {

using nlohmann::ordered_json;

class ElasticsearchRest : public BulkRest {
public:
    ordered_json index_json(const ExportPlan& plan) const override {
        return {{"mappings",
                 {{"properties",
                   {{"id", {{"type", "keyword"}}},
                    {"position", {{"type", "long"}}},
                    {"metadata", {{"type", "flattened"}}},
                    {"vectors", {{"type", "rank_vectors"}, {"element_type", "float"}, {"dims", plan.dim}}}}}}}};
    }

    void check_mapping(const ExportPlan& plan, const nlohmann::json& vectors) const override {
        if (!vectors.is_object() || vectors.value("type", "") != "rank_vectors")
            refuse_existing(plan, "field vectors", "rank_vectors",
                            vectors.is_null() ? "no such field" : vectors.dump());
        if (vectors.contains("dims") && vectors["dims"] != plan.dim)
            refuse_existing(plan, "dimensions", std::to_string(plan.dim), vectors["dims"].dump());
    }
};

const ElasticsearchRest elasticsearch_rest;

class Elasticsearch : public ExportTarget {
public:
    std::string_view name() const override { return "elasticsearch"; }
    std::string_view summary() const override { return "Elasticsearch 9: rank_vectors, bulk NDJSON, maxSimDotProduct"; }
    const RestDialect* rest() const override { return &elasticsearch_rest; }
    TargetLimits limits() const override { return {.dim = 4096, .id_bytes = 512, .empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return batch_files(elasticsearch_rest, plan, folder / "data", "bulk", "ndjson");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Elasticsearch";
        readme.load = "ELASTICSEARCH_URL=http://localhost:9200 ./load.sh\n";
        readme.query = "ELASTICSEARCH_URL=http://localhost:9200 ./query.sh\n";
        readme.notes =
            "`rank_vectors` needs a licence that includes it; it is meant for scoring again what another query found: "
            "replace\n"
            "`match_all` by that query, or put the script into a `rescore`. Scores must not be negative, so the script "
            "adds an\n"
            "`offset` (" +
            std::to_string(static_cast<long>(bulk::score_offset(plan))) +
            " here: no MaxSim of this query falls below its negative); subtract it to get the score in "
            "`expected.tsv`.\n"
            "`metadata` is a flattened field: filter with `{\"term\": {\"metadata.source\": \"a.pdf\"}}`.\n";
        TextFiles files = bulk::scripts(plan, "ELASTICSEARCH_URL");
        files["README.md"] = readme_text(plan, readme);
        files["expected.tsv"] = expected_text(plan);
        files["index.json"] = elasticsearch_rest.index_json(plan).dump(2) + "\n";
        files["query.json"] = bulk::query_json(plan, "maxSimDotProduct(params.query_vector, 'vectors') + params.offset",
                                               "query_vector", {});
        return files;
    }
};

}  // namespace

const ExportTarget& elasticsearch_target() {
    static const Elasticsearch target;
    return target;
}

}  // namespace marginmerge
