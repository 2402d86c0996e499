// An independent run of the text encoder: tokens by @huggingface/tokenizers, states by onnxruntime-node, both from
// JavaScript. Usage: node compare-encoder.mjs MODEL_FOLDER TEXTS OURS.safetensors SECONDS_WE_TOOK
// Prints the largest difference of any token state and the ratio of the times for the same texts.
import { readFileSync } from "node:fs";
import path from "node:path";
import ort from "onnxruntime-node";
import { Tokenizer } from "@huggingface/tokenizers";

const [folder, textFile, oursFile, oursSeconds] = process.argv.slice(2);
const texts = readFileSync(textFile, "utf8").split("\n").filter((line) => line.trim() !== "");
const json = (name) => JSON.parse(readFileSync(path.join(folder, name), "utf8"));

function readSafetensors(file) {
    const bytes = readFileSync(file);
    const length = Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
    const view = (name, Type) => {
        const [begin, end] = header[name].data_offsets;
        return new Type(new Uint8Array(bytes.subarray(8 + length + begin, 8 + length + end)).buffer);
    };
    return { vectors: view("vectors", Float32Array), offsets: view("offsets", BigInt64Array), dim: header.vectors.shape[1] };
}

// The file asks for padding and truncation to 128 tokens; neither belongs to the comparison.
const tokenizerFile = json("tokenizer.json");
tokenizerFile.truncation = null;
tokenizerFile.padding = null;
const model = path.join(folder, "onnx/model_quantized.onnx");

async function encodeAll(threads, lanes) {
    const session = await ort.InferenceSession.create(model, { intraOpNumThreads: threads, interOpNumThreads: 1 });
    const tokenizer = new Tokenizer(tokenizerFile, json("tokenizer_config.json"));
    const results = new Array(texts.length);
    let next = 0;
    const lane = async () => {
        while (next < texts.length) {
            const i = next++;
            const { ids } = tokenizer.encode(texts[i], { add_special_tokens: true });
            const shape = [1, ids.length];
            const output = await session.run({
                input_ids: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), shape),
                attention_mask: new ort.Tensor("int64", new BigInt64Array(ids.length).fill(1n), shape),
                token_type_ids: new ort.Tensor("int64", new BigInt64Array(ids.length), shape),
            });
            const [, length, dim] = output.last_hidden_state.dims;
            const rows = output.last_hidden_state.data.slice(dim, (length - 1) * dim);
            for (let r = 0; r < rows.length; r += dim) {
                let norm = 0;
                for (let k = r; k < r + dim; ++k) norm += rows[k] * rows[k];
                norm = Math.sqrt(norm);
                for (let k = r; k < r + dim; ++k) rows[k] /= norm;
            }
            results[i] = rows;
        }
    };
    const started = process.hrtime.bigint();
    await Promise.all(Array.from({ length: lanes }, lane));
    return { results, seconds: Number(process.hrtime.bigint() - started) / 1e9 };
}

const cores = (await import("node:os")).availableParallelism();
const wide = await encodeAll(cores, 1); // one text at a time, all cores inside a run
const lanes = await encodeAll(1, cores); // a text for each core
const ours = readSafetensors(oursFile);
let largest = 0;
for (let i = 0; i < texts.length; ++i) {
    const begin = Number(ours.offsets[i]) * ours.dim;
    const end = Number(ours.offsets[i + 1]) * ours.dim;
    const theirs = lanes.results[i];
    if (theirs.length !== end - begin) {
        console.log(JSON.stringify({ text: texts[i].slice(0, 80), ours: (end - begin) / ours.dim, theirs: theirs.length / ours.dim }));
        process.exit(1);
    }
    for (let k = 0; k < theirs.length; ++k) largest = Math.max(largest, Math.abs(theirs[k] - ours.vectors[begin + k]));
}
const best = Math.min(wide.seconds, lanes.seconds);
const report = {
    texts: texts.length, token_states: Number(ours.offsets.at(-1)), largest_difference: largest,
    node_all_cores_in_a_run_s: wide.seconds, node_a_text_a_core_s: lanes.seconds, ours_s: Number(oursSeconds),
    ours_over_node: Number(oursSeconds) / best,
};
console.log(JSON.stringify(report, null, 2));
process.exit(largest <= 1e-4 ? 0 : 1);
