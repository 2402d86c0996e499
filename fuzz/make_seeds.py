"""Writes small well-formed inputs for every fuzz target: make_seeds.py FOLDER."""
import io
import json
import pathlib
import struct
import sys
import zipfile

import numpy

out = pathlib.Path(sys.argv[1])
data = pathlib.Path(__file__).parent.parent / "tests" / "data"


def seed(target, name, content):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def npy(array):
    buffer = io.BytesIO()
    numpy.save(buffer, array)
    return buffer.getvalue()


def safetensors(tensors, metadata=None):
    names = {"float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "uint8": "U8"}
    header, blob = {}, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        begin = len(blob)
        blob += array.tobytes()
        header[name] = {"dtype": names[str(array.dtype)], "shape": list(array.shape), "data_offsets": [begin, len(blob)]}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % 64)
    return struct.pack("<Q", len(text)) + text + blob


vectors = numpy.arange(48, dtype=numpy.float32).reshape(3, 16) / 8
offsets = numpy.array([0, 1, 3])
own = {"vectors": vectors, "offsets": offsets, "grid": numpy.ones((2, 2), numpy.int32), "ids": numpy.frombuffer(b"a\nb", numpy.uint8)}
seed("safetensors", "own", safetensors(own, {"schema": "marginmerge.multivector", "version": "1"}))
compressed = {"vectors": vectors, "offsets": offsets, "source_offsets": numpy.array([0, 2, 6]),
              "owner": numpy.array([0, 0, 0, 1, 1, -1], numpy.int32), "boxes": numpy.zeros((3, 4), numpy.float32)}
seed("safetensors", "compressed", safetensors(compressed))
seed("safetensors", "tensors", safetensors({"a": vectors, "b10": vectors[:1].astype(numpy.float16), "b2": vectors[:2]}))
seed("safetensors", "padded", safetensors({"x": vectors.reshape(3, 1, 16)}))

arrays = {"f4": vectors, "f2": vectors.astype(numpy.float16), "f8": vectors.astype(float), "padded": vectors.reshape(3, 1, 16),
          "offsets": offsets, "u": numpy.array(["a", "bc"]), "s": numpy.array([b"a", b"bc"])}
for name, array in arrays.items():
    seed("npy", name, npy(array))

for name, first, second, kinds in [("parts", vectors, offsets, 0 + 7 * 1), ("ids", numpy.array(["a", "b", "c"]), vectors, 2 + 7 * 0),
                                   ("two", vectors, vectors[:1], 4 + 7 * 5), ("padded", vectors.reshape(3, 1, 16), numpy.array([1, 1, 0]), 4 + 7 * 1)]:
    head = npy(first)
    split = (len(head) + 3) // 4
    head += b"\0" * (split * 4 - len(head)) if len(head) % 4 else b""
    seed("npz", name, bytes([split, kinds]) + head + npy(second))

for file in sorted((data / "torch").glob("*.pt")):
    content = file.read_bytes()
    if content[:2] != b"PK":
        continue
    seed("zip", file.name, content)
    with zipfile.ZipFile(file) as archive:
        seed("torch", file.name, archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl"))))
for name, save in [("stored", numpy.savez), ("deflated", numpy.savez_compressed)]:
    buffer = io.BytesIO()
    save(buffer, vectors=vectors, offsets=offsets, ids=numpy.array(["a", "b"]))
    seed("zip", name, buffer.getvalue())

for file in sorted((data / "tables").iterdir()):
    target = {".parquet": "parquet", ".arrow": "arrow_ipc", ".arrows": "arrow_ipc"}.get(file.suffix)
    if target:
        seed(target, file.name, file.read_bytes())

line = json.dumps({"id": "a", "vectors": vectors.tolist(), "grid": [3, 1]})
seed("json_lines", "lines", (line + "\n" + json.dumps({"_id": 7, "embedding": vectors[0].tolist()}) + "\n").encode())
seed("json_lines", "meta", json.dumps({"doc_ids": ["a", "b"], "query_ids": [1, 2], "gold": [0, [1, 0]]}).encode())
seed("json_lines", "records", json.dumps([{"query_id": "q", "gold": 1}, {"query_id": "r", "gold": {"d": 2}}]).encode())

seed("text", "beir", b"query-id\tcorpus-id\tscore\nq1\td 1\t2\nq2\td2\t0\n")
seed("text", "trec", b"q1 0 d1 1\nq1 0 d2 -2\n")
seed("text", "two", b"q1\td1\nq2\td1\n")
seed("text", "run", b"q1 Q0 d1 1 12.5 tag\nq1 Q0 d2 2 11.25 tag\n")

root = pathlib.Path(__file__).parent.parent
for card in sorted((root / "cards").glob("*.json")):
    seed("encoder_card", card.name, card.read_bytes())
for picture in sorted((root / "tests/encode/data").iterdir()):
    if picture.suffix in (".png", ".jpg", ".webp", ".tif"):
        seed("image", picture.name, picture.read_bytes())
seed("tokenizer", "wordpiece", b"\0[UNK]\nthe\n##s\n,\n\0The s, thes")
bpe = {"added_tokens": [{"id": 9, "content": "<s>"}], "normalizer": {"type": "NFC"},
       "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True},
                                                               {"type": "ByteLevel", "add_prefix_space": True, "use_regex": True}]},
       "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "\u0120ab": 4}, "merges": ["a b", "\u0120 ab"]}}
seed("tokenizer", "bpe", b"\2" + json.dumps(bpe).encode() + b"\0ab abab 12")
words = {"normalizer": {"type": "BertNormalizer", "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"},
         "model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##b": 2}, "unk_token": "[UNK]"}}
seed("tokenizer", "words", b"\1" + json.dumps(words).encode() + b"\0ab A")
drawing = b"BT /F1 20 Tf 20 350 Td (Hello world) Tj ET"
seed("pdf", "small", b"%%PDF-1.4\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\n"
     b"endobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 400] /Contents 5 0 R /Resources << /Font << /F1 4 0 R >> >> >>\n"
     b"endobj\n4 0 obj\n<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>\nendobj\n5 0 obj\n<< /Length %d >>\nstream\n%s\nendstream\n"
     b"endobj\ntrailer << /Size 6 /Root 1 0 R >>\n%%%%EOF\n" % (len(drawing), drawing))
seed("page_wire", "question", struct.pack("<Q", 3) + b"a.p" + struct.pack("<BQIB", 0, 1, 200, 1))
seed("page_wire", "answer", struct.pack("<BBQQddQQQIIQ", 0, 5, 0, 1, 2.0, 3.0, 0, 0, 0, 1, 1, 3) + b"rgb")
