// Writes the Parquet and Arrow files of this folder with other people's writers: node make.mjs SCRATCH, where
// SCRATCH/node_modules has @duckdb/node-api and apache-arrow. Row r has 1 + r % 3 vectors of 16 numbers;
// number j of vector v is ((7 r + 3 v + 5 j) % 17) / 8 - 1. Row 4 of files named *-null has no vectors.
import { createRequire } from "node:module";
import { writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const require = createRequire(join(resolve(process.argv[2]), "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { DuckDBInstance } = await load("@duckdb/node-api");
const arrow = await load("apache-arrow");

const value = (r, v, j) => ((7 * r + 3 * v + 5 * j) % 17) / 8 - 1;
const db = await (await DuckDBInstance.create(":memory:")).connect();
await db.run(`CREATE TABLE t AS SELECT 'doc ' || r AS id, r AS number,
    [[(((7 * r + 3 * v + 5 * j) % 17) / 8.0 - 1)::FLOAT FOR j IN range(16)] FOR v IN range(1 + r % 3)] AS embeddings
    FROM range(6) AS s(r)`);
const write = (name, select, options) => db.run(`COPY (${select}) TO '${join(here, name)}' (FORMAT parquet, ${options})`);
await write("snappy.parquet", "SELECT * FROM t", "COMPRESSION snappy");
await write("zstd-v2.parquet", "SELECT * FROM t", "COMPRESSION zstd, PARQUET_VERSION V2");
await write("gzip.parquet", "SELECT * FROM t", "COMPRESSION gzip");
await write("lz4.parquet", "SELECT * FROM t", "COMPRESSION lz4_raw");
await write("doubles.parquet", "SELECT id, embeddings::DOUBLE[][] AS embeddings FROM t", "COMPRESSION uncompressed");
await write("dictionary.parquet", "SELECT id, embeddings FROM t, range(40)", "COMPRESSION snappy, ROW_GROUP_SIZE 2048");
await write("one-vector.parquet", "SELECT number AS id, embeddings[1] AS embedding FROM t", "COMPRESSION snappy");
await write("snappy-null.parquet", "SELECT id, CASE WHEN number = 4 THEN NULL ELSE embeddings END AS embeddings FROM t", "COMPRESSION snappy");

const rows = Array.from({ length: 6 }, (_, r) => Array.from({ length: 1 + (r % 3) }, (_, v) => Array.from({ length: 16 }, (_, j) => value(r, v, j))));
const item = (name, type) => new arrow.Field(name, type, true);
function table(outer, type) {
    const schema = new arrow.Schema([new arrow.Field("id", new arrow.Utf8(), false), new arrow.Field("number", new arrow.Int32(), false), new arrow.Field("embeddings", outer, true)]);
    const batches = [rows.slice(0, 4), rows.slice(4)].map((part, b) => {
        const columns = {
            id: arrow.vectorFromArray(part.map((_, r) => `doc ${4 * b + r}`), new arrow.Utf8()),
            number: arrow.vectorFromArray(part.map((_, r) => 4 * b + r), new arrow.Int32()),
            embeddings: arrow.vectorFromArray(part, outer),
        };
        return new arrow.RecordBatch(schema, arrow.makeData({ type: new arrow.Struct(schema.fields), children: schema.fields.map((f) => columns[f.name].data[0]), length: part.length, nullCount: 0 }));
    });
    return new arrow.Table(schema, batches);
}
const fixed = table(new arrow.List(item("item", new arrow.FixedSizeList(16, item("item", new arrow.Float32())))));
const ragged = table(new arrow.List(item("item", new arrow.List(item("item", new arrow.Float64())))));
writeFileSync(join(here, "fixed.arrows"), arrow.tableToIPC(fixed, "stream"));
writeFileSync(join(here, "fixed.arrow"), arrow.tableToIPC(fixed, "file"));
writeFileSync(join(here, "ragged.arrows"), arrow.tableToIPC(ragged, "stream"));
