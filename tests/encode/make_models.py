"""Makes tiny ONNX graphs, a SentencePiece model and a byte-level tokenizer.json with the inputs and outputs of the
real encoders, so that the whole path can be tested without any download.

Usage: make_models.py DIR. Needs python3-onnx, python3-numpy and spm_train (package sentencepiece).

The graphs are transparent on purpose: an image token's vector is the mean colour of its patch put through a fixed
random matrix with one direction reserved for brightness, a text token's vector is its row of a random table. So a test
can tell which vector must light up. Opset 13, IR version 8: older than anything a current runtime refuses."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DIM = 16


def constant(name, value):
    return numpy_helper.from_array(np.asarray(value), name)


def save(path, nodes, inputs, outputs, initializers):
    graph = helper.make_graph(nodes, "tiny", inputs, outputs, initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString())


def tensor(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def table(vocabulary, seed):
    rows = np.random.RandomState(seed).standard_normal((vocabulary, DIM)).astype(np.float32)
    rows[:, 0] = 0  # dimension 0 is brightness: text has none
    return rows


def colour_matrix():
    """[3,DIM]: mean colour of a patch to a vector; dimension 0 is the sum of the channels."""
    m = 0.01 * np.random.RandomState(7).standard_normal((3, DIM)).astype(np.float32)
    m[:, 0] = 1
    return m


def text_graph(path, vocabulary, seed, extra_inputs=()):
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["rows"], axis=0)]
    last = "rows"
    inputs = [tensor("input_ids", TensorProto.INT64, ["b", "l"]), tensor("attention_mask", TensorProto.INT64, ["b", "l"])]
    nodes += [helper.make_node("Cast", ["attention_mask"], ["mask_f"], to=TensorProto.FLOAT),
              helper.make_node("Unsqueeze", ["mask_f", "axis2"], ["mask_u"]),
              helper.make_node("Mul", [last, "mask_u"], ["embeddings"])]
    for name in extra_inputs:
        inputs.append(tensor(name, TensorProto.INT64, ["b", "l"]))
    save(path, nodes, inputs, [tensor("embeddings", TensorProto.FLOAT, ["b", "l", DIM])],
         [constant("table", table(vocabulary, seed)), constant("axis2", np.array([2], np.int64))])


def scatter_nodes(image_token):
    """Text rows with the image vectors `image` [n,DIM] put where input_ids equals the image token."""
    return [helper.make_node("Gather", ["table", "input_ids"], ["rows"], axis=0),
            helper.make_node("Equal", ["input_ids", "image_token"], ["is_image"]),
            helper.make_node("NonZero", ["is_image"], ["where_t"]),
            helper.make_node("Transpose", ["where_t"], ["where"], perm=[1, 0]),
            helper.make_node("ScatterND", ["rows", "where", "image"], ["merged"]),
            helper.make_node("Cast", ["attention_mask"], ["mask_f"], to=TensorProto.FLOAT),
            helper.make_node("Unsqueeze", ["mask_f", "axis2"], ["mask_u"]),
            helper.make_node("Mul", ["merged", "mask_u"], ["embeddings"])], [
            constant("image_token", np.array(image_token, np.int64)), constant("axis2", np.array([2], np.int64))]


TOKEN_INPUTS = [tensor("input_ids", TensorProto.INT64, ["b", "l"]), tensor("attention_mask", TensorProto.INT64, ["b", "l"])]
OUTPUT = [tensor("embeddings", TensorProto.FLOAT, ["b", "l", DIM])]


def grid_graph(path, vocabulary, image_token, patch, seed):
    """ColPali: pixel_values [1,3,H,W], one vector a patch."""
    scatter, constants = scatter_nodes(image_token)
    nodes = [helper.make_node("AveragePool", ["pixel_values"], ["pooled"], kernel_shape=[patch, patch], strides=[patch, patch]),
             helper.make_node("Reshape", ["pooled", "flat"], ["flattened"]),
             helper.make_node("Transpose", ["flattened"], ["colours"], perm=[1, 0]),
             helper.make_node("MatMul", ["colours", "to_vector"], ["image"])] + scatter
    save(path, nodes, TOKEN_INPUTS + [tensor("pixel_values", TensorProto.FLOAT, [1, 3, "h", "w"])], OUTPUT,
         [constant("table", table(vocabulary, seed)), constant("to_vector", colour_matrix()),
          constant("flat", np.array([3, -1], np.int64))] + constants)


def patches_graph(path, vocabulary, image_token, patch, temporal, merge, seed):
    """ColQwen: pixel_values [patches, 3*temporal*patch*patch] in blocks of merge^2, one vector a block."""
    scatter, constants = scatter_nodes(image_token)
    nodes = [helper.make_node("Reshape", ["pixel_values", "blocks"], ["blocked"]),
             helper.make_node("ReduceMean", ["blocked"], ["colours"], axes=[1, 3], keepdims=0),
             helper.make_node("MatMul", ["colours", "to_vector"], ["plain"]),
             # The grid must match: rows * columns patches in blocks of merge^2.
             helper.make_node("ReduceProd", ["image_grid_thw"], ["patches"], axes=[1], keepdims=0),
             helper.make_node("Div", ["patches", "per_block"], ["count"]),
             helper.make_node("Concat", ["count", "dim"], ["shape"], axis=0),
             helper.make_node("Reshape", ["plain", "shape"], ["image"])] + scatter
    save(path, nodes, TOKEN_INPUTS + [tensor("pixel_values", TensorProto.FLOAT, ["p", 3 * temporal * patch * patch]),
                                      tensor("image_grid_thw", TensorProto.INT64, [1, 3])], OUTPUT,
         [constant("table", table(vocabulary, seed)), constant("to_vector", colour_matrix()),
          constant("blocks", np.array([-1, merge * merge, 3, temporal * patch * patch], np.int64)),
          constant("per_block", np.array([merge * merge], np.int64)), constant("dim", np.array([DIM], np.int64))] + constants)


def tiles_graph(path, vocabulary, image_token, cell, seed):
    """ColSmol: pixel_values [1,frames,3,T,T] with pixel_attention_mask, one vector a cell of every frame."""
    scatter, constants = scatter_nodes(image_token)
    nodes = [helper.make_node("Cast", ["pixel_attention_mask"], ["pm"], to=TensorProto.FLOAT),
             helper.make_node("Unsqueeze", ["pm", "axis2"], ["pmu"]),
             helper.make_node("Mul", ["pixel_values", "pmu"], ["masked"]),
             helper.make_node("Squeeze", ["masked", "axis0"], ["frames"]),
             helper.make_node("AveragePool", ["frames"], ["pooled"], kernel_shape=[cell, cell], strides=[cell, cell]),
             helper.make_node("Transpose", ["pooled"], ["last"], perm=[0, 2, 3, 1]),
             helper.make_node("Reshape", ["last", "flat"], ["colours"]),
             helper.make_node("MatMul", ["colours", "to_vector"], ["image"])] + scatter
    save(path, nodes, TOKEN_INPUTS + [tensor("pixel_values", TensorProto.FLOAT, [1, "f", 3, "h", "w"]),
                                      tensor("pixel_attention_mask", TensorProto.BOOL, [1, "f", "h", "w"])], OUTPUT,
         [constant("table", table(vocabulary, seed)), constant("to_vector", colour_matrix()),
          constant("axis0", np.array([0], np.int64)), constant("flat", np.array([-1, 3], np.int64))] + constants)


def byte_names():
    """The printable stand-in of every byte in byte-level vocabularies."""
    names, spare = [], 256
    for b in range(256):
        printable = 33 <= b <= 126 or 161 <= b <= 172 or b >= 174
        names.append(chr(b if printable else spare))
        spare += 0 if printable else 1
    return names


def tokenizer_json(path, specials):
    """A byte-level BPE tokenizer: 256 bytes, a few merges, the specials."""
    vocabulary = {name: i for i, name in enumerate(byte_names())}
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("i", "n"), ("in", "g"), ("a", "n"), ("an", "d"), ("Q", "u"), ("e", "r"),
              ("Qu", "er"), ("Quer", "y"), ("\u0120", "a")]
    for left, right in merges:
        vocabulary[left + right] = len(vocabulary)
    added = [{"id": len(vocabulary) + i, "content": s, "special": True} for i, s in enumerate(specials)]
    pattern = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
    path.write_text(json.dumps({
        "version": "1.0", "added_tokens": added, "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}]},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [f"{a} {b}" for a, b in merges]}}))
    return {s: vocabulary_size for s, vocabulary_size in ((a["content"], a["id"]) for a in added)}


def sentencepiece_model(folder):
    """A tiny unigram model with Gemma's habits: no dummy prefix, bytes as a fallback, its control tokens."""
    text = folder / "sentences.txt"
    words = "describe the image query what is the price of a page table figure number one two three".split()
    rng = np.random.RandomState(3)
    text.write_text("".join(" ".join(rng.choice(words, 8)) + ".\n" for _ in range(400)))
    subprocess.run(["spm_train", f"--input={text}", f"--model_prefix={folder / 'spm'}", "--vocab_size=340",
                    "--model_type=unigram", "--add_dummy_prefix=false", "--byte_fallback=true", "--pad_id=0", "--eos_id=1",
                    "--bos_id=2", "--unk_id=3", "--pad_piece=<pad>", "--eos_piece=<eos>", "--bos_piece=<bos>",
                    "--user_defined_symbols=\n", "--hard_vocab_limit=false", "--minloglevel=2"],
                   check=True, capture_output=True)
    text.unlink()


def shipped(cards, name, files, image=None, dim=DIM):
    """A shipped card with its files replaced by the tiny ones: everything else stays as users get it."""
    card = json.loads((cards / name).read_text())
    card["dim"] = dim
    card["tokenizer"]["file"] = files["tokenizer"]
    card["tokenizer"].pop("added_tokens", None)
    if "added" in files:
        card["tokenizer"]["added_tokens"] = files["added"]
    card["document"]["model"] = files["document"]
    card["document"]["output"] = "embeddings"
    card["query"]["model"] = files["query"]
    card["query"]["output"] = "embeddings"
    card["image"].update(image or {})
    return card


def main():
    folder = pathlib.Path(sys.argv[1])
    cards = pathlib.Path(__file__).resolve().parents[2] / "cards"
    folder.mkdir(parents=True, exist_ok=True)
    sentencepiece_model(folder)
    grid_graph(folder / "colpali.onnx", 400, 399, 14, 1)
    text_graph(folder / "colpali-query.onnx", 400, 1)
    write = lambda name, card: (folder / name).write_text(json.dumps(card, indent=1))
    write("colpali.json", shipped(cards, "colpali-v1.3.json", {
        "tokenizer": "spm.model", "added": {"<image>": 399}, "document": "colpali.onnx", "query": "colpali-query.onnx"}))

    qwen = tokenizer_json(folder / "qwen.json", ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>",
                                                 "<|vision_end|>", "<|image_pad|>"])
    patches_graph(folder / "colqwen.onnx", 300, qwen["<|image_pad|>"], 14, 2, 2, 1)
    text_graph(folder / "colqwen-query.onnx", 300, 1)
    write("colqwen.json", shipped(cards, "colqwen2.5-v0.1.json", {
        "tokenizer": "qwen.json", "document": "colqwen.onnx", "query": "colqwen-query.onnx"}))

    rows = [f"<row_{r}_col_{c}>" for r in range(1, 7) for c in range(1, 7)]
    smol = tokenizer_json(folder / "smol.json", ["<|im_start|>", "<end_of_utterance>", "<fake_token_around_image>", "<global-img>",
                                                 "<image>"] + rows)
    tiles_graph(folder / "colsmol.onnx", 400, smol["<image>"], 64, 1)
    text_graph(folder / "colsmol-query.onnx", 400, 1)
    write("colsmol.json", shipped(cards, "colsmol.json", {
        "tokenizer": "smol.json", "document": "colsmol.onnx", "query": "colsmol-query.onnx"}))
    text_graph(folder / "text.onnx", 400, 5)


if __name__ == "__main__":
    main()
