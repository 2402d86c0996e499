// Parquet, asked with DuckDB: lists of lists of floats, MaxSim as one SQL expression.
#include "export/table_writers.h"
#include "export/text.h"
#include "io/parquet_writer.h"

namespace marginmerge {

namespace {

class Parquet : public ExportTarget {
public:
    std::string_view name() const override { return "parquet"; }
    std::string_view summary() const override { return "one Parquet file with list<list<float>>, asked with DuckDB"; }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return std::make_unique<TablePageWriter<ParquetWriter>>(folder / "pages.parquet", plan.dim);
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "Parquet and DuckDB";
        readme.tried = true;
        readme.load = "duckdb " + plan.name + ".duckdb < load.sql     # or ask the file itself, without loading it\n";
        readme.query = "duckdb " + plan.name + ".duckdb < query.sql\n";
        readme.notes =
            "`pages.parquet` has the columns `position` (int64), `id` (string), `metadata` (string holding a JSON "
            "object, null\n"
            "when a page has none) and `vectors` (list of list of float). pyarrow, Polars, pandas, Spark and Hugging "
            "Face\n"
            "datasets read it as it is. `max_sim` also works on the file: replace the table by "
            "`read_parquet('pages.parquet')`.\n"
            "Metadata are reached with DuckDB's JSON functions, for example `WHERE metadata->>'source' = 'a.pdf'`.\n";
        const std::string macro =
            "-- MaxSim: for every query vector its best inner product with a vector of the page, summed.\n"
            "CREATE OR REPLACE MACRO max_sim(query, vectors) AS\n"
            "    list_sum([list_max([list_inner_product(q, v) FOR v IN vectors]) FOR q IN query]);\n";
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"load.sql", fill("CREATE TABLE {{name}} AS\n"
                                  "    SELECT position, id, metadata, vectors::FLOAT[{{dim}}][] AS vectors\n"
                                  "    FROM read_parquet('pages.parquet');\n\n",
                                  {{"name", plan.name}, {"dim", std::to_string(plan.dim)}}) +
                                 macro},
                {"query.sql", fill("{{macro}}\n"
                                   "SELECT id, max_sim({{query}}::FLOAT[{{dim}}][], vectors) AS score\n"
                                   "FROM {{name}}\nORDER BY score DESC, position\nLIMIT 10;\n",
                                   {{"macro", macro},
                                    {"name", plan.name},
                                    {"dim", std::to_string(plan.dim)},
                                    {"query", rows_text(plan.query)}})}};
    }
};

}  // namespace

const ExportTarget& parquet_target() {
    static const Parquet target;
    return target;
}

}  // namespace marginmerge
