// MaxSim by LanceDB's flat multivector scan (cosine on unit vectors orders as inner products do). Same
// lines as peers.cpp: processor time of all its threads beside one thread, wall-clock time beside two.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as lancedb from "@lancedb/lancedb";
import { Field, FixedSizeList, Float32, Int32, List, Schema } from "apache-arrow";

const DIM = 128, TOKENS = 20, VECTORS = 52, RUNS = Number(process.argv[2] ?? 5);

function unit() {
    const v = Array.from({ length: DIM }, () => Math.random() - 0.5);
    const norm = Math.hypot(...v);
    return v.map((x) => x / norm);
}

const folder = mkdtempSync(join(tmpdir(), "lance-peer-"));
try {
    const db = await lancedb.connect(folder);
    const item = new FixedSizeList(DIM, new Field("item", new Float32(), true));
    const schema = new Schema([
        new Field("id", new Int32(), false),
        new Field("vector", new List(new Field("item", item, true)), false),
    ]);
    for (const pages of [1000, 10000]) {
        const table = await db.createEmptyTable(`t${pages}`, schema);
        for (let first = 0; first < pages; first += 500) {
            const rows = [];
            for (let id = first; id < first + 500; ++id)
                rows.push({ id, vector: Array.from({ length: VECTORS }, unit) });
            await table.add(rows);
        }
        await table.optimize();
        const query = Array.from({ length: TOKENS }, unit);
        let best = Infinity, wall = Infinity;
        for (let run = 0; run < RUNS + 1; ++run) {
            let search = table.search(query[0]);
            for (const token of query.slice(1)) search = search.addQueryVector(token);
            const before = process.cpuUsage(), start = performance.now();
            const hits = await search.distanceType("cosine").select(["id", "_distance"]).limit(10).toArray();
            const used = process.cpuUsage(before), took = performance.now() - start;
            if (hits.length !== 10) throw new Error(`expected 10 hits, found ${hits.length}`);
            if (run === 0) continue;
            best = Math.min(best, (used.user + used.system) / 1e3);
            wall = Math.min(wall, took);
        }
        console.log(`maxsim ${pages} pages\tLanceDB flat multivector scan\t${best.toFixed(4)}\t0`);
        console.log(`maxsim ${pages} pages, two threads\tLanceDB flat multivector scan\t${wall.toFixed(4)}\t0`);
    }
} finally {
    rmSync(folder, { recursive: true, force: true });
}
