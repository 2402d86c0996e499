"""How small can this corpus get, judged by your own labels?

    python own_labels.py --docs docs.safetensors --queries log.safetensors --labels clicks.tsv [--tolerance 0.02]

Labels are lines of query, document and optionally a grade. Half of the labelled queries are learned from, the other half
judges, so that no query does both. Prints a table of recipes and sizes with 95% intervals, and names the smallest index
whose loss of nDCG@5 is within the tolerance even at the lower end of the interval.
"""

from __future__ import annotations

import argparse
import random

import marginmerge


def split(queries, labels, seed: int):
    """Labelled queries in two halves: to learn from, and to judge by."""
    labelled = sorted(set(queries.ids) & set(labels))
    if len(labelled) < 4:
        raise SystemExit(f"expected at least 4 queries with labels, found {len(labelled)}")
    random.Random(seed).shuffle(labelled)
    halves = labelled[: len(labelled) // 2], labelled[len(labelled) // 2 :]
    return [{q: queries[q] for q in half} for half in halves]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--labels", required=True)
    parser.add_argument("--keep", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    parser.add_argument("--tolerance", type=float, default=0.02)
    parser.add_argument("--preset", default="default", help="what to fit")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()

    pages = marginmerge.vectors(options.docs)
    labels = marginmerge.read_qrels(options.labels)
    learn, judge = split(marginmerge.vectors(options.queries), labels, options.seed)
    model = marginmerge.fit(pages, learn, labels, preset=options.preset, keep=min(options.keep), seed=options.seed)

    indexes = {}
    for keep in options.keep:
        indexes[f"{100 * keep:g}% fitted"] = marginmerge.compress(pages, model, keep=keep, dtype="f16")
        indexes[f"{100 * keep:g}% kmeans"] = marginmerge.compress(pages, keep=keep, preset="compact", dtype="f16")
        indexes[f"{100 * keep:g}% ward"] = marginmerge.compress(pages, keep=keep, preset="pooling", dtype="f16")
    figures = marginmerge.evaluate(pages, indexes, judge, labels, timed_queries=0)

    print(f"{figures['queries']} judging queries, full index nDCG@5 {figures['full']['quality']['ndcg']:.4f}")
    print("recipe         nDCG@5   difference [95%]              flips   KB a page")
    best = None
    for row in figures["indexes"]:
        d = row["ndcg_difference"]
        size = row["store"]["vector_bytes_per_page"]
        print(f"{row['name']:14} {row['quality']['ndcg']:.4f}   {d['mean']:+.4f} [{d['low']:+.4f}, {d['high']:+.4f}]   "
              f"{row['fidelity']['flip_rate']:.4f}  {size / 1024:.2f}")  # fmt: skip
        if d["low"] >= -options.tolerance and (best is None or size < best[0]):
            best = (size, row["name"])
    if best is None:
        print(f"none is certain to stay within {options.tolerance}; keep more, or judge with more queries")
    else:
        print(f"smallest within {options.tolerance}: {best[1]}")


if __name__ == "__main__":
    main()
