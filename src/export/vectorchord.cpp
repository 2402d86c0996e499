// VectorChord: the same table as pgvector's, with an index for MaxSim and the operator @#.
#include "export/postgres.h"
#include "export/text.h"

namespace marginmerge {

namespace {

class VectorChord : public ExportTarget {
public:
    std::string_view name() const override { return "vectorchord"; }
    std::string_view summary() const override {
        return "PostgreSQL with VectorChord: vector(d)[], @# and its MaxSim index";
    }
    bool offers_ann() const override { return true; }
    TargetLimits limits() const override { return {.dim = 16000, .empty_pages = false}; }

    std::unique_ptr<PageWriter> open(const ExportPlan&, const std::filesystem::path& folder) const override {
        return postgres::copy_file(folder / "pages.copy");
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "PostgreSQL with VectorChord";
        readme.load = "psql -v ON_ERROR_STOP=1 -d YOUR_DATABASE -f load.sql\n";
        readme.query = "psql -d YOUR_DATABASE -f query.sql\n";
        readme.notes =
            "`vectors @# query` is the negated MaxSim with inner products, so ascending order is best first. The index "
            "is\n"
            "approximate; `SET enable_indexscan = off` asks every page, exactly. `vchordrq.maxsim_refine` and "
            "`vchordrq.probes`\n"
            "trade speed for recall; with more than a few hundred thousand vectors give the index "
            "`build.internal.lists`.\n";
        return {
            {"README.md", readme_text(plan, readme)},
            {"expected.tsv", expected_text(plan)},
            {"schema.sql", postgres::table_sql(plan, "vchord CASCADE")},
            {"index.sql", fill("CREATE INDEX {{name}}_maxsim ON {{name}} USING vchordrq (vectors vector_maxsim_ops);\n",
                               {{"name", plan.name}})},
            {"load.sql", "\\i schema.sql\n" + postgres::copy_sql(plan) + (plan.ann ? "\\i index.sql\n" : "") +
                             "ANALYZE " + plan.name + ";\n"},
            {"query.sql", fill("SELECT id, -(vectors @# {{query}}) AS score\n"
                               "FROM {{name}}\nORDER BY vectors @# {{query}}\nLIMIT 10;\n",
                               {{"name", plan.name}, {"query", postgres::query_literal(plan.query)}})}};
    }
};

}  // namespace

const ExportTarget& vectorchord_target() {
    static const VectorChord target;
    return target;
}

}  // namespace marginmerge
