// ClickHouse: Array(Array(Float32)) in blocks of its Native format, MaxSim from array functions.
#include <nlohmann/json.hpp>

#include "core/fail.h"
#include "export/rest.h"
#include "export/text.h"

namespace marginmerge {

namespace {

constexpr const char* columns_sql =
    "    position UInt64,\n"
    "    id String,\n"
    "    metadata String,\n"
    "    vectors Array(Array(Float32))\n";

void put_varint(std::string& out, std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    out += static_cast<char>(value);
}

void put_text(std::string& out, std::string_view text) {
    put_varint(out, text.size());
    out += text;
}

template <class T>
void put(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// One block of the Native format: numbers of columns and rows, then each column with its name and type.
/// An array column is its cumulative lengths followed by its elements.
std::string native_block(std::span<const ExportPage> pages) {
    std::string out;
    std::size_t floats = 0;
    for (const ExportPage& page : pages) floats += page.vectors.size();
    out.reserve(floats * sizeof(float) + pages.size() * 64 + 256);
    put_varint(out, 4);
    put_varint(out, pages.size());
    put_text(out, "position");
    put_text(out, "UInt64");
    for (const ExportPage& page : pages) put(out, static_cast<std::uint64_t>(page.position));
    put_text(out, "id");
    put_text(out, "String");
    for (const ExportPage& page : pages) put_text(out, page.id);
    put_text(out, "metadata");
    put_text(out, "String");
    for (const ExportPage& page : pages) put_text(out, page.metadata);
    put_text(out, "vectors");
    put_text(out, "Array(Array(Float32))");
    std::uint64_t vectors = 0;
    for (const ExportPage& page : pages) put(out, vectors += page.vectors.rows());
    std::uint64_t numbers = 0;
    for (const ExportPage& page : pages)
        for (std::size_t i = 0; i < page.vectors.rows(); ++i) put(out, numbers += page.vectors.cols());
    for (const ExportPage& page : pages)
        out.append(reinterpret_cast<const char*>(page.vectors.data()), page.vectors.size() * sizeof(float));
    return out;
}

// The window makes the server forget nothing it needs to recognise a block that was sent twice.
std::string create_sql(const ExportPlan& plan) {
    return fill(
        "CREATE TABLE IF NOT EXISTS {{name}} (\n{{columns}}) ENGINE = MergeTree ORDER BY position\n"
        "SETTINGS non_replicated_deduplication_window = 1000",
        {{"name", plan.name}, {"columns", columns_sql}});
}

std::string encoded_query(std::string_view sql) {
    std::string out;
    for (const char c : sql) {
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-')
            out += c;
        else
            out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return out;
}

class ClickHouseRest : public RestDialect {
public:
    bool prepare(RestServer& server, const ExportPlan& plan, bool resuming, bool append) const override {
        const bool existed = ask(server, "EXISTS TABLE " + plan.name + " FORMAT TSVRaw") == "1";
        server.demand({"POST", "/", "text/plain", create_sql(plan)}, "creating the table");
        const std::string types =
            ask(server,
                "SELECT arrayStringConcat(groupArray(name || ' ' || type), ', ') FROM (SELECT name, "
                "type FROM system.columns WHERE database = currentDatabase() AND table = " +
                    sql_text(plan.name) + " ORDER BY position) FORMAT TSVRaw");
        const std::string wanted = "position UInt64, id String, metadata String, vectors Array(Array(Float32))";
        if (types != wanted) refuse_existing(plan, "columns", wanted, types);
        const std::string rows = ask(server, "SELECT count() FROM " + plan.name + " FORMAT TSVRaw");
        if (resuming || append || rows == "0") {
            const std::string odd =
                ask(server, "SELECT count() FROM " + plan.name + " WHERE length(vectors[1]) NOT IN (0, " +
                                std::to_string(plan.dim) + ") FORMAT TSVRaw");
            if (odd != "0")
                refuse_existing(plan, "vectors", fmt::format("{} dimensions", plan.dim),
                                odd + " rows of other dimensions");
            return existed;
        }
        fail(ErrorCode::unsupported,
             "table '{}': expected it to be empty, found {} rows; --append adds to them, --name chooses "
             "another",
             plan.name, rows);
    }

    std::string encode(const ExportPlan&, const ExportPage&) const override { return {}; }

    std::vector<HttpRequest> requests(const ExportPlan& plan, std::span<const ExportPage> pages,
                                      std::span<const std::string>, const std::string& token) const override {
        std::string path = "/?query=" + encoded_query("INSERT INTO " + plan.name + " FORMAT Native");
        if (!token.empty()) path += "&insert_deduplication_token=" + encoded_query(token);
        return {{"POST", std::move(path), "application/octet-stream", native_block(pages)}};
    }

private:
    static std::string ask(RestServer& server, const std::string& sql) {
        std::string text = server.demand({"POST", "/", "text/plain", sql}, "looking at the table").body;
        while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
        return text;
    }
};

const ClickHouseRest clickhouse_rest;

class ClickHouse : public ExportTarget {
public:
    std::string_view name() const override { return "clickhouse"; }
    std::string_view summary() const override { return "ClickHouse: Array(Array(Float32)) in Native blocks"; }
    const RestDialect* rest() const override { return &clickhouse_rest; }
    // arrayMax of nothing is 0, not minus infinity: such a page would rank among the others.
    TargetLimits limits() const override { return {.empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return joined_file(clickhouse_rest, plan, folder / "pages.native");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "ClickHouse";
        readme.tried = true;
        readme.load =
            "./load.sh          # clickhouse-client; or, over HTTP: CLICKHOUSE_URL=http://localhost:8123 ./load.sh\n";
        readme.query = "clickhouse-client --queries-file query.sql\n";
        readme.notes =
            "`pages.native` holds blocks of ClickHouse's Native format, which the server copies into its columns "
            "without parsing.\n"
            "MaxSim reads every vector, exactly; add `WHERE` on other columns to look at fewer pages. `metadata` is "
            "text holding\n"
            "a JSON object: `WHERE JSONExtractString(metadata, 'source') = 'a.pdf'`.\n";
        return {
            {"README.md", readme_text(plan, readme)},
            {"expected.tsv", expected_text(plan)},
            {"schema.sql", create_sql(plan) + ";\n"},
            {"load.sh", fill("#!/usr/bin/env bash\n"
                             "# Creates the table and loads pages.native, through clickhouse-client or over HTTP.\n"
                             "set -euo pipefail\ncd \"$(dirname \"$0\")\"\n"
                             "if [[ -n \"${CLICKHOUSE_URL:-}\" ]]; then\n"
                             "    curl --fail-with-body -sS \"$CLICKHOUSE_URL/\" --data-binary @schema.sql\n"
                             "    curl --fail-with-body -sS -H Expect: -X POST -T - "
                             "\"$CLICKHOUSE_URL/?query=INSERT%20INTO%20{{name}}%20FORMAT%20Native\" < pages.native\n"
                             "else\n"
                             "    clickhouse-client --queries-file schema.sql\n"
                             "    clickhouse-client --query \"INSERT INTO {{name}} FORMAT Native\" < pages.native\n"
                             "fi\n",
                             {{"name", plan.name}})},
            {"query.sql", fill("WITH {{query}}::Array(Array(Float32)) AS query\n"
                               "SELECT id, arraySum(q -> arrayMax(v -> dotProduct(q, v), vectors), query) AS score\n"
                               "FROM {{name}}\nORDER BY score DESC, position\nLIMIT 10;\n",
                               {{"name", plan.name}, {"query", rows_text(plan.query)}})}};
    }
};

}  // namespace

const ExportTarget& clickhouse_target() {
    static const ClickHouse target;
    return target;
}

}  // namespace marginmerge
