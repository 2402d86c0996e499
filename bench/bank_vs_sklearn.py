#!/usr/bin/python3
"""Prototype clustering against scikit-learn on the same tokens: inertia and seconds.

Usage: bank_vs_sklearn.py BENCH_BANK [--seeds N] [--full-above] [TOKENS|FILE[:TOKENS]]...
BENCH_BANK is the built program bench_bank, which reads tokens.npy and weights.npy from a folder and writes
means.npy there. TOKENS alone are made up; FILE is a multi-vector file of ours, from which TOKENS are drawn (more than it
has: with noise, so that no two are the same). Up to 20,000 tokens scikit-learn runs KMeans, above MiniBatchKMeans, and
with --full-above KMeans as well.
"""
import argparse
import json
import os
import subprocess
import tempfile
import time

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans


def unit(x):
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def tokens_like_queries(count, dim, seed):
    """Unit vectors around a few hundred directions of unequal popularity."""
    rng = np.random.RandomState(seed)
    topics = unit(rng.randn(400, dim))
    share = 1.0 / np.arange(2, 402)
    chosen = rng.choice(400, count, p=share / share.sum())
    return unit(topics[chosen] + rng.randn(count, dim) * 0.9 / np.sqrt(dim))


def tokens_of_file(path, count, seed):
    """Rows of tensor `vectors`, all of them or `count` drawn."""
    with open(path, "rb") as f:
        length = int.from_bytes(f.read(8), "little")
        info = json.loads(f.read(length))["vectors"]
        f.seek(8 + length + info["data_offsets"][0])
        kind = {"F16": np.float16, "F32": np.float32}[info["dtype"]]
        x = np.frombuffer(f.read(info["data_offsets"][1] - info["data_offsets"][0]), kind).reshape(info["shape"])
    rng = np.random.RandomState(seed)
    if count is None or count == len(x):
        return unit(x.astype(np.float32))
    if count < len(x):
        return unit(x[rng.choice(len(x), count, replace=False)].astype(np.float32))
    x = unit(x[rng.randint(len(x), size=count)].astype(np.float32))
    return unit(x + rng.standard_normal(x.shape).astype(np.float32) * np.float32(0.2 / np.sqrt(x.shape[1])))


def inertia(x, weights, means):
    total = 0.0
    for begin in range(0, len(x), 50000):
        part = x[begin:begin + 50000]
        gap = (part ** 2).sum(1)[:, None] - 2 * part @ means.T + (means ** 2).sum(1)[None]
        total += float((np.maximum(gap.min(1), 0) * weights[begin:begin + 50000]).sum())
    return total


def ours(program, folder, x, weights, seed):
    answer = subprocess.run([program, folder, str(seed)], check=True, stdout=subprocess.PIPE, text=True).stdout
    return inertia(x, weights, np.load(os.path.join(folder, "means.npy"))), float(answer)


def theirs(kind, x, weights, seed):
    # With its default of ten batches without improvement MiniBatchKMeans stops early; patience lowers its inertia.
    extra = {"batch_size": 8192, "max_no_improvement": 100} if kind is MiniBatchKMeans else {}
    start = time.time()
    model = kind(128, n_init=5, max_iter=50, random_state=seed, **extra).fit(x, sample_weight=weights * len(x))
    seconds = time.time() - start
    return inertia(x, weights, model.cluster_centers_.astype(np.float32)), seconds


def tokens_of(what):
    if what.isdigit():
        return tokens_like_queries(int(what), 128, 7)
    path, _, count = what.partition(":")
    return tokens_of_file(path, int(count) if count else None, 7)


def compare(program, what, seeds, full_above):
    x = tokens_of(what)
    weights = np.random.RandomState(3).uniform(0.5, 1.5, len(x)).astype(np.float32)
    weights /= weights.sum()
    kinds = [KMeans] if len(x) <= 20000 else [MiniBatchKMeans] + ([KMeans] if full_above else [])
    with tempfile.TemporaryDirectory() as folder:
        np.save(os.path.join(folder, "tokens.npy"), x)
        np.save(os.path.join(folder, "weights.npy"), weights)
        own = np.array([ours(program, folder, x, weights, s) for s in seeds])
    print(f"{what}, {len(x)} tokens: ours {own[:, 0].mean():.5f} ({own[:, 0].min():.5f}-{own[:, 0].max():.5f}), "
          f"{own[:, 1].mean():.2f} s", flush=True)
    for kind in kinds:
        other = np.array([theirs(kind, x, weights, s) for s in seeds])
        ratio = own[:, 0] / other[:, 0]
        print(f"    {kind.__name__} {other[:, 0].mean():.5f} ({other[:, 0].min():.5f}-{other[:, 0].max():.5f}), "
              f"{other[:, 1].mean():.2f} s; ours over theirs {ratio.mean():.4f} ({ratio.min():.4f}-{ratio.max():.4f})",
              flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("tokens", nargs="*", default=["5000", "20000", "100000", "1000000"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--full-above", action="store_true", help="KMeans above 20,000 tokens as well")
    options = parser.parse_intermixed_args()
    for what in options.tokens:
        compare(options.program, what, range(42, 42 + options.seeds), options.full_above)


if __name__ == "__main__":
    main()
