"""A small corpus with one relevant page for each query, made without the library."""

from __future__ import annotations

import os
import pathlib

import numpy as np
import pytest

DIM = 32


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


class Corpus:
    def __init__(self, pages: int = 40, queries: int = 30) -> None:
        rng = np.random.default_rng(7)
        topics = unit(rng.standard_normal((12, DIM)))
        self.pages = []
        for _ in range(pages):
            own = unit(rng.standard_normal((6, DIM)))
            regions = np.concatenate([topics[rng.integers(0, 12, 4)], own])
            rows = regions[rng.integers(0, len(regions), int(rng.integers(30, 90)))]
            self.pages.append(unit(rows + 0.1 * rng.standard_normal(rows.shape)))
        self.ids = [f"page-{i}" for i in range(pages)]
        self.queries = {}
        self.qrels = {}
        for q in range(queries):
            target = int(rng.integers(0, pages))
            rows = self.pages[target][rng.integers(0, len(self.pages[target]), 6)]
            self.queries[f"q{q}"] = unit(rows + 0.15 * rng.standard_normal(rows.shape))
            self.qrels[f"q{q}"] = {self.ids[target]: 1}

    def named(self) -> dict[str, np.ndarray]:
        return dict(zip(self.ids, self.pages))


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return Corpus()


@pytest.fixture(scope="session")
def binary() -> str:
    """The command line of the same build."""
    path = os.environ.get("MARGINMERGE_BINARY")
    if path is None:
        import marginmerge

        path = str(pathlib.Path(marginmerge.__file__).resolve().parents[2] / "bin" / "marginmerge")
    assert os.access(path, os.X_OK), f"{path}: build target marginmerge_cli, or set MARGINMERGE_BINARY"
    return path


def maxsim(query: np.ndarray, page: np.ndarray) -> float:
    return float((query.astype(np.float64) @ page.astype(np.float64).T).max(axis=1).sum())
