// Writes a synthetic corpus and request bodies for the load test: node make.mjs FOLDER [PAGES]
import fs from "node:fs";
import path from "node:path";
import { generator } from "../web/corpus.mjs";

const [folder, pages = "2000"] = process.argv.slice(2);
const dim = 128, kept = 52, tokens = 20, queries = 16;
const random = generator(11);

function rows(n) {
  const out = new Float32Array(n * dim);
  for (let i = 0; i < n; ++i) {
    let norm = 0;
    for (let j = 0; j < dim; ++j) { const v = random() + random() + random() - 1.5; out[i * dim + j] = v; norm += v * v; }
    for (let j = 0; j < dim; ++j) out[i * dim + j] /= Math.sqrt(norm);
  }
  return out;
}

function multiVectors(file, each, count, data) {
  const offsets = BigInt64Array.from({ length: count + 1 }, (_, i) => BigInt(i * each));
  let text = JSON.stringify({
    __metadata__: { schema: "marginmerge.multivector", version: "1" },
    vectors: { dtype: "F32", shape: [each * count, dim], data_offsets: [0, data.byteLength] },
    offsets: { dtype: "I64", shape: [count + 1], data_offsets: [data.byteLength, data.byteLength + offsets.byteLength] },
  });
  text += " ".repeat((64 - ((8 + text.length) % 64)) % 64);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  fs.writeFileSync(file, Buffer.concat([length, Buffer.from(text), Buffer.from(data.buffer), Buffer.from(offsets.buffer)]));
}

fs.mkdirSync(folder, { recursive: true });
multiVectors(path.join(folder, "docs.safetensors"), kept, Number(pages), rows(kept * Number(pages)));
multiVectors(path.join(folder, "queries.safetensors"), tokens, queries, rows(tokens * queries));
const one = rows(tokens);
let header = `{'descr': '<f4', 'fortran_order': False, 'shape': (${tokens}, ${dim}), }`;
header += `${" ".repeat((64 - ((11 + header.length) % 64)) % 64)}\n`;
fs.writeFileSync(path.join(folder, "query.npy"), Buffer.concat([Buffer.from([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]), Buffer.from(header), Buffer.from(one.buffer)]));
const vectors = Array.from({ length: tokens }, (_, i) => Array.from(one.slice(i * dim, (i + 1) * dim), (v) => Number(v.toFixed(6))));
fs.writeFileSync(path.join(folder, "query.json"), JSON.stringify({ vectors, k: 10 }));
