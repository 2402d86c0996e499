// Loads exports of an index into the engines npm ships, asks each of them its own MaxSim, and compares the ten best
// pages with those of marginmerge. Usage: engines.mjs BINARY SCRATCH INDEX QUERIES [MOST-QUERIES]
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [binary, scratchArgument, index, queriesFile, most = "25"] = process.argv.slice(2);
const scratch = resolve(scratchArgument);
const require = createRequire(join(scratch, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const version = (name) => JSON.parse(readFileSync(join(scratch, "node_modules", name, "package.json"))).version;

function half(h) {
    const sign = h & 0x8000 ? -1 : 1, exponent = (h >> 10) & 31, fraction = h & 1023;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

// A multi-vector file as [{id, vectors}].
function readQueries(path) {
    const bytes = readFileSync(path);
    const length = Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
    const part = (name) => bytes.subarray(8 + length + header[name].data_offsets[0], 8 + length + header[name].data_offsets[1]);
    const offsets = part("offsets"), raw = part("vectors"), dim = header.vectors.shape[1];
    const count = header.offsets.shape[0] - 1;
    const ids = header.ids ? part("ids").toString().split("\n") : Array.from({ length: count }, (_, i) => String(i));
    const value = header.vectors.dtype === "F16" ? (i) => half(raw.readUInt16LE(2 * i)) : (i) => raw.readFloatLE(4 * i);
    return Array.from({ length: count }, (_, q) => {
        const begin = Number(offsets.readBigInt64LE(8 * q)), end = Number(offsets.readBigInt64LE(8 * q + 8));
        const vectors = [];
        for (let r = begin; r < end; ++r) vectors.push(Array.from({ length: dim }, (_, j) => value(r * dim + j)));
        return { id: ids[q], vectors };
    });
}

const queries = readQueries(queriesFile).slice(0, Number(most));
const ours = JSON.parse(execFileSync(binary, ["search", index, "--queries", queriesFile, "-k", "11", "--json", "--quiet"],
    { maxBuffer: 1 << 30 }));
const expected = new Map(ours.results.map((r) => [r.query, r.hits]));

function exported(target) {
    const folder = join(scratch, `export-${target}`);
    rmSync(folder, { recursive: true, force: true });
    execFileSync(binary, ["export", index, "--to", target, "--queries", queriesFile, "-o", folder, "--quiet"]);
    return folder;
}

// query.sql with the example's vectors replaced by those of another query.
function sqlTemplate(folder, pattern) {
    const text = readFileSync(join(folder, "query.sql"), "utf8");
    if (!pattern.test(text)) throw new Error(`${folder}/query.sql: expected the example's vectors`);
    return (literal) => text.replace(pattern, () => literal);
}
const nested = (vectors) => `[${vectors.map((v) => `[${v.join(",")}]`).join(",")}]`;
const nestedPattern = /\[\[.*?\]\]/s;

const engines = {
    async lancedb() {
        const folder = exported("lancedb");
        symlinkSync(join(scratch, "node_modules"), join(folder, "node_modules"));
        const run = (script, ...args) => execFileSync(process.execPath, [join(folder, script), ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
        const begin = performance.now();
        run("load.mjs");
        const loading = performance.now() - begin;
        // The example as a user runs it.
        const example = run("query.mjs").trim().split("\n").map((line) => line.split("\t")[1]);
        const want = readFileSync(join(folder, "expected.tsv"), "utf8").trim().split("\n").slice(1).map((l) => l.split("\t")[1]);
        if (example.join() !== want.join()) throw new Error(`lancedb: query.mjs printed ${example}, expected ${want}`);
        const lancedb = await load("@lancedb/lancedb");
        const table = await (await lancedb.connect(join(folder, "lancedb"))).openTable("pages");
        return {
            label: `LanceDB ${version("@lancedb/lancedb")}`, loading,
            async ask(vectors) {
                let search = table.search(Float32Array.from(vectors[0])).column("vectors").distanceType("dot");
                for (const v of vectors.slice(1)) search = search.addQueryVector(Float32Array.from(v));
                return (await search.select(["id", "_distance"]).limit(10).toArray()).map((h) => h.id);
            },
        };
    },
    async pgvector() {
        const folder = exported("pgvector");
        const { PGlite } = await load("@electric-sql/pglite");
        const { vector } = await load("@electric-sql/pglite-pgvector");
        const begin = performance.now();
        const db = await PGlite.create({ extensions: { vector } });
        await db.exec(readFileSync(join(folder, "schema.sql"), "utf8"));
        await db.query("COPY pages (position, id, metadata, vectors) FROM '/dev/blob'", [], { blob: new Blob([readFileSync(join(folder, "pages.copy"))]) });
        const loading = performance.now() - begin;
        const extension = (await db.query("SELECT extversion FROM pg_extension WHERE extname = 'vector'")).rows[0].extversion;
        const sql = sqlTemplate(folder, /ARRAY\[.*?\]'\]/s);
        return {
            label: `pgvector ${extension} in PGlite ${version("@electric-sql/pglite")}`, loading,
            async ask(vectors) {
                return (await db.query(sql(`ARRAY[${vectors.map((v) => `'[${v.join(",")}]'`).join(",")}]`))).rows.map((r) => r.id);
            },
            close: () => db.close(),
        };
    },
    async clickhouse() {
        const folder = exported("clickhouse");
        const { Session } = await load("chdb");
        const session = new Session();
        const begin = performance.now();
        session.query(readFileSync(join(folder, "schema.sql"), "utf8"));
        session.query(`INSERT INTO pages SELECT * FROM file('${join(folder, "pages.native")}', 'Native')`);
        const loading = performance.now() - begin;
        const release = String(session.query("SELECT version()", "TSVRaw")).trim();
        const sql = sqlTemplate(folder, nestedPattern);
        return {
            label: `ClickHouse ${release} (chdb)`, loading,
            ask: (vectors) => String(session.query(sql(nested(vectors)), "TSVRaw")).trim().split("\n").map((line) => line.split("\t")[0]),
            close: () => session.cleanup(),
        };
    },
    async duckdb() {
        const folder = exported("parquet");
        const { DuckDBInstance } = await load("@duckdb/node-api");
        const begin = performance.now();
        const db = await (await DuckDBInstance.create(":memory:")).connect();
        const file = (text) => text.replace("'pages.parquet'", `'${join(folder, "pages.parquet")}'`);
        await db.run(file(readFileSync(join(folder, "load.sql"), "utf8")));
        const loading = performance.now() - begin;
        const release = (await db.runAndReadAll("SELECT version()")).getRows()[0][0];
        const sql = sqlTemplate(folder, nestedPattern);
        return {
            label: `DuckDB ${release} (Parquet)`, loading,
            async ask(vectors) {
                return (await db.runAndReadAll(sql(nested(vectors)))).getRows().map((r) => r[0]);
            },
        };
    },
};

// Neighbours in our ranking closer than float rounding may stand either way round in another engine's sums.
const rounding = 2e-6;
function agrees(found, hits) {
    const top = hits.slice(0, 10);
    if (found.length !== top.length) return false;
    if (found.every((id, i) => id === top[i].id)) return "exact";
    const score = new Map(hits.map((h) => [h.id, h.score]));
    return found.every((id, i) => score.has(id) && Math.abs(score.get(id) - top[i].score) <= rounding * Math.abs(top[i].score)) ? "rounding" : false;
}

console.log(`${ours.pages} pages, ${ours.vectors} vectors, ${queries.length} queries of ${Math.round(queries.reduce((s, q) => s + q.vectors.length, 0) / queries.length)} vectors\n`);
const row = (a, b, c, d) => console.log(`${a.padEnd(40)} ${b.padStart(14)} ${c.padStart(12)} ${d.padStart(10)}`);
row("engine", "exact top 10", "ms a query", "load s");
row(`marginmerge (${ours.kernel}, all queries at once)`, "", (1e3 * ours.seconds / ours.results.length).toFixed(2), "");
let passed = 0, failed = 0;
for (const [name, start] of Object.entries(engines)) {
    let engine;
    try {
        engine = await start();
        let exact = 0, rounded = 0, spent = 0;
        const wrong = [];
        for (const query of queries) {
            const begin = performance.now();
            const found = await engine.ask(query.vectors);
            spent += performance.now() - begin;
            const verdict = agrees(found, expected.get(query.id));
            if (verdict === "exact") ++exact;
            else if (verdict === "rounding") ++rounded;
            else wrong.push(`query ${query.id}: expected ${expected.get(query.id).slice(0, 10).map((h) => h.id)}, found ${found}`);
        }
        row(engine.label, `${exact} of ${queries.length}`, (spent / queries.length).toFixed(2), (engine.loading / 1e3).toFixed(2));
        if (rounded > 0) console.log(`    ${rounded} more differ only where scores agree to ${rounding}`);
        for (const line of wrong.slice(0, 3)) console.log(`    ${line}`);
        if (wrong.length > 0) ++failed; else ++passed;
    } catch (error) {
        ++failed;
        console.log(`${name}: ${error.message.slice(0, 500)}`);
    }
    await engine?.close?.();
}

// Reading back: DuckDB writes the same vectors in its own ways, Arrow's JavaScript library its own stream and file.
async function readBack() {
    const folder = exported("parquet"), stream = exported("lancedb");
    const { DuckDBInstance } = await load("@duckdb/node-api");
    const db = await (await DuckDBInstance.create(":memory:")).connect();
    const forms = {
        "our Parquet": join(folder, "pages.parquet"),
        "our Arrow stream": join(stream, "pages.arrow"),
    };
    for (const options of ["COMPRESSION snappy", "COMPRESSION gzip", "COMPRESSION zstd, PARQUET_VERSION V2", "COMPRESSION lz4_raw, ROW_GROUP_SIZE 2048"]) {
        const file = join(scratch, `duckdb-${options.replace(/\W+/g, "-")}.parquet`);
        await db.run(`COPY (SELECT id, vectors AS embeddings FROM read_parquet('${forms["our Parquet"]}')) TO '${file}' (FORMAT parquet, ${options})`);
        forms[`DuckDB's Parquet, ${options.toLowerCase()}`] = file;
    }
    const arrow = await load("apache-arrow");
    const table = arrow.tableFromIPC(readFileSync(forms["our Arrow stream"]));
    forms["Arrow file by JavaScript"] = join(scratch, "javascript.arrow");
    writeFileSync(forms["Arrow file by JavaScript"], arrow.tableToIPC(table, "file"));
    for (const [name, file] of Object.entries(forms)) {
        const back = join(scratch, "back.safetensors");
        execFileSync(binary, ["import", file, "--keep-norms", "--quiet", "-o", back], { stdio: ["ignore", "ignore", "ignore"] });
        const again = JSON.parse(execFileSync(binary, ["search", back, "--queries", queriesFile, "-k", "11", "--json", "--quiet"], { maxBuffer: 1 << 30 }));
        const same = JSON.stringify(again.results) === JSON.stringify(ours.results);
        console.log(`${name.padEnd(62)} ${same ? "the same results" : "OTHER RESULTS"}`);
        if (same) ++passed; else ++failed;
    }
}
console.log("\nread back with import");
try {
    await readBack();
} catch (error) {
    ++failed;
    console.log(`read back: ${error.message.slice(0, 500)}`);
}
console.log(`\nengines: ${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
