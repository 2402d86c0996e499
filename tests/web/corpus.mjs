// A small collection for the browser tests: pages of 8x8 patches around a few directions, compressed
// to a fifth, with images, texts, metadata and queries. Deterministic.
import fs from "node:fs";
import path from "node:path";

export const dim = 32;

export function generator(seed) {
  let state = BigInt(seed);
  return () => {
    state = (state * 6364136223846793005n + 1442695040888963407n) & 0xffffffffffffffffn;
    return Number(state >> 40n) / 2 ** 24;
  };
}

export function unit(row) {
  const norm = Math.hypot(...row) || 1;
  return row.map((v) => v / norm);
}

const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
const direction = (random) => unit(Array.from({ length: dim }, () => normal(random)));
const near = (random, centre, noise) => unit(centre.map((v) => v + noise * normal(random)));

function safetensors(file, tensors) {
  const header = { __metadata__: { schema: "marginmerge.multivector", version: "1" } };
  const parts = [];
  let offset = 0;
  for (const [name, [dtype, shape, data]] of Object.entries(tensors)) {
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes.length] };
    offset += bytes.length;
    parts.push(bytes);
  }
  let text = JSON.stringify(header);
  text += " ".repeat((64 - ((8 + text.length) % 64)) % 64);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(file, Buffer.concat([length, Buffer.from(text), ...parts]));
}

const flat = (pages) => Float32Array.from(pages.flat(2));
const offsets = (pages) => BigInt64Array.from(pages.reduce((all, p) => [...all, all[all.length - 1] + BigInt(p.length)], [0n]));
const names = (ids) => new Uint8Array(Buffer.from(ids.join("\n")));

export function multiVectors(file, ids, pages, more = {}) {
  const rows = pages.reduce((n, p) => n + p.length, 0);
  safetensors(file, {
    vectors: ["F32", [rows, dim], flat(pages)], offsets: ["I64", [pages.length + 1], offsets(pages)], ...more,
    ids: ["U8", [names(ids).length], names(ids)],
  });
}

export function npy(rows) {
  let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${rows.length}, ${rows[0].length}), }`;
  header += `${" ".repeat((64 - ((11 + header.length) % 64)) % 64)}\n`;
  const head = Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  return Buffer.concat([head, Buffer.from(header), Buffer.from(Float32Array.from(rows.flat()).buffer)]);
}

/** Farthest-first anchors, then means of what each one owns. */
function compress(patches, kept) {
  const dot = (a, b) => a.reduce((s, v, i) => s + v * b[i], 0);
  const anchors = [0];
  while (anchors.length < kept) {
    const best = patches.map((p) => Math.max(...anchors.map((a) => dot(p, patches[a]))));
    anchors.push(best.indexOf(Math.min(...best)));
  }
  const owner = patches.map((p) => anchors.map((a) => dot(p, patches[a])).reduce((m, v, i, all) => (v > all[m] ? i : m), 0));
  const vectors = anchors.map((_, r) => unit(patches.filter((p, i) => owner[i] === r).reduce((s, p) => s.map((v, j) => v + p[j]), new Array(dim).fill(0))));
  return { vectors, owner };
}

function picture(topics, columns) {
  const cells = topics.map((t, i) => `<rect x="${(i % columns) * 30}" y="${Math.floor(i / columns) * 30}" width="29" height="29" fill="hsl(${t * 45} 45% 75%)"/>`);
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${columns * 30} ${columns * 30}" width="480" height="480"><rect width="100%" height="100%" fill="#fff"/>${cells.join("")}</svg>`;
}

/** Writes everything into a folder and returns what the tests need to know. */
export function writeCorpus(folder, count = 30) {
  const random = generator(7);
  const topics = Array.from({ length: 8 }, () => direction(random));
  const ids = [], full = [], small = [], owners = [], lines = [];
  fs.mkdirSync(path.join(folder, "assets"), { recursive: true });
  for (let i = 0; i < count; ++i) {
    const mine = [i % 8, (i * 3 + 1) % 8, (i * 5 + 2) % 8];
    const layout = Array.from({ length: 64 }, (_, p) => mine[Math.floor(p / 8) < 3 ? 0 : p % 8 < 4 ? 1 : 2]);
    const patches = layout.map((t) => near(random, topics[t], 0.12));
    const { vectors, owner } = compress(patches, 13);
    const id = `report-${String(i).padStart(2, "0")}`;
    ids.push(id);
    full.push(patches);
    small.push(vectors);
    owners.push(owner);
    lines.push(JSON.stringify({ id, metadata: { title: `Report ${i}`, year: 2000 + i, language: i % 3 ? "en" : "de", source: `volume-${i % 5}.pdf`, page: i } }));
    if (i % 2 === 0) fs.writeFileSync(path.join(folder, "assets", `${id}.svg`), picture(layout, 8));
    if (i % 4 === 1) fs.writeFileSync(path.join(folder, "assets", `${id}.txt`), `The words of report ${i}.`);
  }
  const grid = Int32Array.from(ids.flatMap(() => [8, 8]));
  const sourceOffsets = offsets(full);
  multiVectors(path.join(folder, "full.safetensors"), ids, full, { grid: ["I32", [count, 2], grid] });
  multiVectors(path.join(folder, "small.safetensors"), ids, small, {
    source_offsets: ["I64", [count + 1], sourceOffsets], grid: ["I32", [count, 2], grid],
    owner: ["I32", [count * 64], Int32Array.from(owners.flat())],
  });
  const queries = Array.from({ length: 6 }, (_, q) => Array.from({ length: 6 }, (_, t) => near(random, topics[(q + (t % 2) * 3) % 8], 0.25)));
  multiVectors(path.join(folder, "queries.safetensors"), queries.map((_, q) => `question-${q}`), queries);
  fs.writeFileSync(path.join(folder, "query.npy"), npy(queries[2]));
  fs.writeFileSync(path.join(folder, "broken.npy"), "this is no array");
  fs.writeFileSync(path.join(folder, "metadata.jsonl"), `${lines.join("\n")}\n`);
  return { ids, topics, queries };
}
