"""MaxSim and the page product with numpy; OPENBLAS_CORETYPE is set by the caller. Same lines as peers.cpp."""
import concurrent.futures
import os
import sys
import time

import numpy as np

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
WHO = "numpy, OpenBLAS " + os.environ.get("OPENBLAS_CORETYPE", "as installed")
DIM, TOKENS, VECTORS = 128, 20, 52


def best(run, clock=time.thread_time):
    run()
    found, begin = 1e9, clock()
    while clock() - begin < SECONDS:
        start = clock()
        run()
        found = min(found, clock() - start)
    return found


def line(task, seconds, difference):
    print(f"{task}\t{WHO}\t{seconds * 1e3:.4f}\t{difference:.2g}", flush=True)


def main():
    rng = np.random.default_rng(1)
    for pages in (1000, 10000):
        v = rng.standard_normal((pages * VECTORS, DIM), dtype=np.float32)
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        q = rng.standard_normal((TOKENS, DIM), dtype=np.float32)
        q /= np.linalg.norm(q, axis=1, keepdims=True)

        def whole():
            return (v @ q.T).reshape(pages, VECTORS, TOKENS).max(axis=1).sum(axis=1)

        out = np.empty(pages, np.float32)

        def blocked(first=0, last=pages, step=20):
            for p in range(first, last, step):
                s = v[p * VECTORS:(p + step) * VECTORS] @ q.T
                out[p:p + step] = s.reshape(-1, VECTORS, TOKENS).max(axis=1).sum(axis=1)

        blocked()
        away = float(np.abs(whole() - out).max())
        line(f"maxsim {pages} pages", min(best(whole), best(blocked)), away)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:  # numpy lets go of the lock while it computes
            half = pages // 2
            line(f"maxsim {pages} pages, two threads",
                 best(lambda: list(pool.map(blocked, (0, half), (half, pages))), time.perf_counter), away)
    v = rng.standard_normal((5000, DIM), dtype=np.float32)
    z = rng.standard_normal((128, DIM), dtype=np.float32)
    out = np.empty((5000, 128), np.float32)
    line("product 128 x 5000 x 128", best(lambda: np.matmul(v, z.T, out=out)), 0.0)


main()
