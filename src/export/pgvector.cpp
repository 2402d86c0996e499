// pgvector: vector(d)[] and MaxSim as an SQL function.
#include "export/postgres.h"
#include "export/text.h"

namespace marginmerge {

namespace {

constexpr std::string_view max_sim_sql = R"sql(
-- MaxSim: for every query vector its best inner product with a vector of the page, summed.
-- pgvector's <#> is the negative inner product.
CREATE OR REPLACE FUNCTION max_sim(document vector[], query vector[]) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT sum(best)
    FROM (SELECT -min(d.v <#> q.v) AS best
          FROM unnest(query) WITH ORDINALITY AS q (v, token), unnest(document) AS d (v)
          GROUP BY q.token) AS tokens
$$;
)sql";

class Pgvector : public ExportTarget {
public:
    std::string_view name() const override { return "pgvector"; }
    std::string_view summary() const override { return "PostgreSQL with pgvector: vector(d)[] and a max_sim function"; }
    TargetLimits limits() const override { return {.dim = 16000}; }

    std::unique_ptr<PageWriter> open(const ExportPlan&, const std::filesystem::path& folder) const override {
        return postgres::copy_file(folder / "pages.copy");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "PostgreSQL with pgvector";
        readme.tried = true;
        readme.load = "psql -v ON_ERROR_STOP=1 -d YOUR_DATABASE -f load.sql\n";
        readme.query = "psql -d YOUR_DATABASE -f query.sql\n";
        readme.notes =
            "`max_sim` compares the query with every vector of every page: exact, and as fast as PostgreSQL runs SQL. "
            "With many\n"
            "pages let another column choose candidates first (`WHERE`, full text, one mean vector with an HNSW index) "
            "and order\n"
            "only those by `max_sim`; the VectorChord target has an index for MaxSim itself.\n"
            "Metadata are jsonb: `WHERE metadata->>'source' = 'a.pdf'`. `pages.copy` is COPY's text form; its binary "
            "form\n"
            "needs the number PostgreSQL gave the type `vector`, which differs from database to database.\n";
        return {{"README.md", readme_text(plan, readme)},
                {"expected.tsv", expected_text(plan)},
                {"schema.sql", postgres::table_sql(plan, "vector") + std::string(max_sim_sql)},
                {"load.sql", "\\i schema.sql\n" + postgres::copy_sql(plan) + "ANALYZE " + plan.name + ";\n"},
                {"query.sql", fill("SELECT id, max_sim(vectors, {{query}}) AS score\n"
                                   "FROM {{name}}\nORDER BY score DESC NULLS LAST, position\nLIMIT 10;\n",
                                   {{"name", plan.name}, {"query", postgres::query_literal(plan.query)}})}};
    }
};

}  // namespace

const ExportTarget& pgvector_target() {
    static const Pgvector target;
    return target;
}

}  // namespace marginmerge
