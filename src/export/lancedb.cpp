// LanceDB: an Arrow IPC stream with list<fixed_size_list<float>[d]>, which it stores without a conversion.
#include "export/table_writers.h"
#include "export/text.h"
#include "io/arrow_writer.h"

namespace marginmerge {

namespace {

constexpr std::string_view load_script =
    R"js(// Loads pages.arrow into a LanceDB table: node load.mjs [DATABASE-FOLDER]
// Needs: npm install @lancedb/lancedb apache-arrow@18.1.0
import { createReadStream } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as lancedb from "@lancedb/lancedb";
import { RecordBatchReader, Table } from "apache-arrow";

const here = dirname(fileURLToPath(import.meta.url));
const db = await lancedb.connect(resolve(process.argv[2] ?? join(here, "lancedb")));  // connect needs an absolute path
let table;
for await (const batch of await RecordBatchReader.from(createReadStream(join(here, "pages.arrow")))) {
    const rows = new Table(batch);
    if (table) await table.add(rows);
    else table = await db.createTable("{{name}}", rows, { mode: "overwrite" });
}
{{index}}console.log(`${await table.countRows()} pages in table {{name}}`);
)js";

constexpr std::string_view query_script =
    R"js(// The ten best pages for a query, by exact MaxSim: node query.mjs [DATABASE-FOLDER] [QUERY.json]
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as lancedb from "@lancedb/lancedb";

const here = dirname(fileURLToPath(import.meta.url));
const db = await lancedb.connect(resolve(process.argv[2] ?? join(here, "lancedb")));
const table = await db.openTable("{{name}}");
const query = JSON.parse(readFileSync(process.argv[3] ?? join(here, "query.json"), "utf8"));

let search = table.search(Float32Array.from(query[0])).column("vectors").distanceType("{{distance}}");
for (const vector of query.slice(1)) search = search.addQueryVector(Float32Array.from(vector));
const hits = await search.select(["id", "position", "vectors", "_distance"]).limit(10).toArray();

// What LanceDB calls the distance of several vectors differs between its versions; the score is recomputed.
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const scored = hits.map((hit) => {
    const vectors = [...hit.vectors].map((v) => [...v]);
    const score = query.reduce((sum, q) => sum + Math.max(...vectors.map((v) => dot(q, v))), 0);
    return { id: hit.id, position: hit.position, score };
});
scored.sort((a, b) => b.score - a.score || Number(a.position - b.position));
scored.forEach((hit, i) => console.log(`${i + 1}\t${hit.id}\t${hit.score}`));
)js";

constexpr std::string_view python_script =
    R"py(# Loads pages.arrow into a LanceDB table and asks it: python load.py [DATABASE-FOLDER]
# Needs: pip install lancedb pyarrow numpy
import json
import pathlib
import sys

import lancedb
import numpy
import pyarrow

here = pathlib.Path(__file__).resolve().parent
db = lancedb.connect(str(pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else here / "lancedb"))
with pyarrow.OSFile(str(here / "pages.arrow")) as file:
    reader = pyarrow.ipc.open_stream(file)
    table = db.create_table("{{name}}", reader, schema=reader.schema, mode="overwrite")
query = numpy.array(json.loads((here / "query.json").read_text()), dtype=numpy.float32)
for hit in table.search(query, vector_column_name="vectors").distance_type("{{distance}}").limit(10).to_list():
    best = query @ numpy.array(hit["vectors"], dtype=numpy.float32).T
    print(hit["id"], best.max(axis=1).sum())
)py";

class LanceDb : public ExportTarget {
public:
    std::string_view name() const override { return "lancedb"; }
    std::string_view summary() const override { return "LanceDB: an Arrow IPC stream of multivectors"; }
    bool offers_ann() const override { return true; }
    TargetLimits limits() const override { return {.empty_pages = false}; }
    std::string_view cosine_only(bool ann) const override {
        return ann ? "its multivector index compares by cosine, which ignores norms" : "";
    }

    std::unique_ptr<PageWriter> open(const ExportPlan& plan, const std::filesystem::path& folder) const override {
        return std::make_unique<TablePageWriter<ArrowWriter>>(folder / "pages.arrow", plan.dim);
    }

    TextFiles texts(const ExportPlan& plan) const override {
        Readme readme;
        readme.title = "LanceDB";
        readme.tried = true;
        readme.load =
            "npm install @lancedb/lancedb apache-arrow@18.1.0   # Node below 22: @lancedb/lancedb@0.37.1\n"
            "node load.mjs                                      # or: python load.py\n";
        readme.query = "node query.mjs\n";
        readme.notes =
            "Without an index LanceDB scans all pages, and by inner product that is exact for any norms. Its "
            "multivector\n"
            "index only knows cosine: `node load.mjs --index` makes one when the norms are 1 (export with "
            "`--unit-norm`)\n"
            "and refuses otherwise. The `_distance` of a multivector search means different things in different "
            "versions (1 - S\n"
            "in 0.37, tokens - S in 0.39), so the scripts compute the score S from the vectors.\n"
            "`metadata` is text holding a JSON object.\n";
        const auto script = [&](std::string_view text) {
            return fill(text, {{"name", plan.name},
                               {"distance", plan.ann ? "cosine" : "dot"},
                               {"index", plan.ann ? "await table.createIndex(\"vectors\", { config: "
                                                    "lancedb.Index.ivfPq({ distanceType: \"cosine\" }) });\n"
                                                  : ""}});
        };
        return {{"README.md", readme_text(plan, readme)}, {"expected.tsv", expected_text(plan)},
                {"load.mjs", script(load_script)},        {"query.mjs", script(query_script)},
                {"load.py", script(python_script)},       {"query.json", rows_text(plan.query) + "\n"}};
    }
};

}  // namespace

const ExportTarget& lancedb_target() {
    static const LanceDb target;
    return target;
}

}  // namespace marginmerge
