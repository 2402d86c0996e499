#!/usr/bin/python3
"""Prototype clustering against scikit-learn on the same tokens: inertia and seconds.

Usage: bank_vs_sklearn.py BENCH_BANK [TOKENS...]
BENCH_BANK is the built program bench_bank, which reads tokens.npy and weights.npy from a folder and writes
means.npy there.
"""
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans


def tokens_like_queries(count, dim, seed):
    """Unit vectors around a few hundred directions of unequal popularity."""
    rng = np.random.RandomState(seed)
    topics = rng.randn(400, dim)
    topics /= np.linalg.norm(topics, axis=1, keepdims=True)
    share = 1.0 / np.arange(2, 402)
    chosen = rng.choice(400, count, p=share / share.sum())
    x = topics[chosen] + rng.randn(count, dim) * 0.9 / np.sqrt(dim)
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def inertia(x, weights, means):
    total = 0.0
    for begin in range(0, len(x), 50000):
        part = x[begin:begin + 50000]
        gap = (part ** 2).sum(1)[:, None] - 2 * part @ means.T + (means ** 2).sum(1)[None]
        total += float((np.maximum(gap.min(1), 0) * weights[begin:begin + 50000]).sum())
    return total


def main():
    program = sys.argv[1]
    for count in [int(a) for a in sys.argv[2:]] or [5000, 20000, 100000, 1000000]:
        x = tokens_like_queries(count, 128, 7)
        weights = np.random.RandomState(3).uniform(0.5, 1.5, count).astype(np.float32)
        weights /= weights.sum()
        with tempfile.TemporaryDirectory() as folder:
            np.save(os.path.join(folder, "tokens.npy"), x)
            np.save(os.path.join(folder, "weights.npy"), weights)
            start = time.time()
            subprocess.run([program, folder], check=True)
            ours_seconds = time.time() - start
            ours = inertia(x, weights, np.load(os.path.join(folder, "means.npy")))
        kind = KMeans if count <= 20000 else MiniBatchKMeans
        extra = {} if count <= 20000 else {"batch_size": 8192}
        start = time.time()
        model = kind(128, n_init=5, max_iter=50, random_state=42, **extra).fit(x, sample_weight=weights * count)
        theirs_seconds = time.time() - start
        theirs = inertia(x, weights, model.cluster_centers_.astype(np.float32))
        print(f"{count} tokens: inertia ours {ours:.5f} scikit-learn {theirs:.5f} ratio {ours / theirs:.4f}; "
              f"seconds {ours_seconds:.1f} and {theirs_seconds:.1f}", flush=True)


if __name__ == "__main__":
    main()
