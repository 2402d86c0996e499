# %% [markdown]
# # Shrinking a late-interaction index from Python
#
# From vectors to a searchable index of a twentieth of the size, with every step measured. Run it as a program, or open
# it as a notebook (the `# %%` marks are cells). It uses the Cranfield collection when its folder is there, and a
# made-up corpus otherwise:
#
#     python walkthrough.py [--data FOLDER | --made-up] [--keep 0.05] [--check path/to/marginmerge]
#
# A folder holds docs.safetensors, train_queries.safetensors, train_qrels.tsv, test_queries.safetensors and
# test_qrels.tsv. With --check the same steps are done by the command line as well, and the figures must be equal.

# %%
import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

import marginmerge

parser = argparse.ArgumentParser()
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--made-up", action="store_true", help="a made-up corpus even where Cranfield is there")
parser.add_argument("--keep", type=float, default=0.05)
parser.add_argument("--check", type=pathlib.Path, help="the marginmerge program to compare with")
options, _ = parser.parse_known_args()
keep = options.keep
scratch = tempfile.TemporaryDirectory()
work = pathlib.Path(scratch.name)
print(f"marginmerge {marginmerge.__version__}, {marginmerge.kernel()} kernels")

# %% [markdown]
# ## 1. Vectors
# Anything with rows works: NumPy arrays, torch tensors, files. Here they come from files, which are memory-mapped;
# `pages[i]` is a NumPy view, not a copy.

# %%
cranfield = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "cranfield"
data = options.data or (cranfield if cranfield.is_dir() and not options.made_up else None)
if data is None:
    data = work / "made-up"
    marginmerge.synthesise(data, kind="scene", documents=100, queries=120, vectors=200)
pages = marginmerge.vectors(data / "docs.safetensors")
train_queries = marginmerge.vectors(data / "train_queries.safetensors")
test_queries = marginmerge.vectors(data / "test_queries.safetensors")
train_qrels = marginmerge.read_qrels(data / "train_qrels.tsv")
test_qrels = marginmerge.read_qrels(data / "test_qrels.tsv")
print(pages)
print(f"{len(train_queries)} queries to learn from, {len(test_queries)} to judge by")

# %% [markdown]
# ## 2. Fit
# Learns from the training queries what must survive. Labels help but are not needed.

# %%
report = {}
model = marginmerge.fit(pages, train_queries, train_qrels, keep=keep, report=report)
print(model)
for candidate in report["candidates"]:
    chosen = "  <- chosen" if candidate["chosen"] else ""
    print(f"  {candidate['name']:32} validation nDCG@5 {candidate['ndcg5']:.4f}  flips {candidate['flips']:.4f}{chosen}")

# %% [markdown]
# ## 3. Compress
# In memory, or from file to file with bounded memory and a journal that survives interruptions.

# %%
started = time.perf_counter()
small = marginmerge.compress(pages, model, keep=keep, dtype="f16")
seconds = time.perf_counter() - started
print(small)
print(f"  {len(pages) / seconds:.0f} pages a second, {pages.vectors.nbytes / small.vectors.nbytes:.1f} times fewer bytes")
ward = marginmerge.compress(pages, representative="ward", keep=keep, dtype="f16")

# %% [markdown]
# ## 4. What did it cost?
# Quality on queries that were not used above, against the full index and against hierarchical (Ward) pooling.

# %%
figures = marginmerge.evaluate(pages, {"marginmerge": small, "ward": ward}, test_queries, test_qrels)
print(f"full         nDCG@5 {figures['full']['quality']['ndcg']:.4f}")
for index in figures["indexes"]:
    difference = index["ndcg_difference"]
    print(
        f"{index['name']:12} nDCG@5 {index['quality']['ndcg']:.4f} ({100 * index['retention']:.1f}% of full)  "
        f"difference {difference['mean']:+.4f} [{difference['low']:+.4f}, {difference['high']:+.4f}]  "
        f"flips {index['fidelity']['flip_rate']:.4f}  same first page {100 * index['overlap_1']:.0f}%"
    )

# %% [markdown]
# ## 5. Search, and see why
# Scores are plain MaxSim: for each query token its best inner product, summed. Each stored vector knows which of the
# page's original vectors it stands for.

# %%
query_id = test_queries.ids[0]
index = marginmerge.Index(small)
hits = index.search(test_queries[query_id], k=5)
for rank, hit in enumerate(hits, 1):
    grade = test_qrels.get(query_id, {}).get(hit.id, 0)
    print(f"  {rank}. {hit.id:12} {hit.score:.4f}  grade {grade}")
by_hand = (test_queries[query_id].astype(np.float32) @ small[hits[0].id].astype(np.float32).T).max(axis=1).sum()
assert abs(by_hand - hits[0].score) < 1e-3
match = max(index.explain(test_queries[query_id], hits[0].id)["tokens"], key=lambda token: token["score"])
print(f"  its best token met a vector that stands for {len(match['patches'])} of the page's")

# %% [markdown]
# ## 6. Keep it
# A folder that can grow and shrink while it is being searched.

# %%
folder = marginmerge.Index(work / "index", create=True)
folder.add(small, metadata=[{"number": i} for i in range(len(small))])
folder.delete([hits[0].id])
print(folder, [hit.id for hit in folder.search(test_queries[query_id], k=3, filter={"number": {"gte": 10}})])
folder.compact(code="int8")
print(f"  {folder.stats['bytes'] / len(folder) / 1024:.2f} KB a page as int8; problems: {folder.verify()['problems']}")

# %% [markdown]
# ## 7. The same with the command line
# Same seed, same bytes: only where the file lies is different.

# %%
if options.check:

    def cli(*arguments):
        return subprocess.run([options.check, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    cli("fit", "--docs", data / "docs.safetensors", "--queries", data / "train_queries.safetensors", "--qrels",
        data / "train_qrels.tsv", "--keep", keep, "-o", work / "model.safetensors")  # fmt: skip
    for name, recipe in {"marginmerge": ["-m", work / "model.safetensors"], "ward": ["--representative", "ward"]}.items():
        cli("compress", data / "docs.safetensors", *recipe, "--keep", keep, "-o", work / f"{name}.safetensors")
    text = cli("evaluate", "--full", data / "docs.safetensors", "--index", work / "marginmerge.safetensors", "--index",
               work / "ward.safetensors", "--queries", data / "test_queries.safetensors", "--qrels",
               data / "test_qrels.tsv", "--json")  # fmt: skip
    expected = json.loads(text)
    assert np.array_equal(marginmerge.vectors(work / "marginmerge.safetensors").vectors, small.vectors)
    assert expected["full"]["quality"] == figures["full"]["quality"]
    for ours, theirs in zip(figures["indexes"], expected["indexes"]):
        for key in ("quality", "retention", "ndcg_difference", "flips", "fidelity", "overlap_1", "per_query"):
            assert ours[key] == theirs[key], (ours["name"], key)
        print(f"{ours['name']:12} nDCG@5 {theirs['quality']['ndcg']:.4f} from the command line: equal in every figure")
scratch.cleanup()
