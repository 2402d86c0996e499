"""The pooler, on NumPy arrays."""

from __future__ import annotations

import numpy as np
import pytest

import marginmerge
from marginmerge import MarginMergePooler


def test_lists(corpus):
    pooled = MarginMergePooler(pool_factor=5).pool_embeddings(corpus.pages)
    assert isinstance(pooled, list) and len(pooled) == len(corpus.pages)
    expected = marginmerge.compress(corpus.pages, keep=0.2)
    for array, small, page in zip(pooled, expected, corpus.pages):
        assert len(array) == -(-len(page) // 5) and np.array_equal(array, small)
        assert array.flags.writeable


def test_what_vectors_stand_for(corpus):
    out = MarginMergePooler(keep=0.2).pool_embeddings(corpus.pages, return_dict=True)
    for array, clusters, page in zip(out.pooled_embeddings, out.cluster_id_to_indices, corpus.pages):
        assert list(clusters) == list(range(len(array)))
        members = np.sort(np.concatenate([indices for (indices,) in clusters.values()]))
        assert np.array_equal(members, np.arange(len(page)))


@pytest.mark.parametrize("side", ["left", "right"])
def test_padded(corpus, side):
    pages = corpus.pages[:5]
    rows = max(len(p) for p in pages)
    padded = np.zeros((len(pages), rows, pages[0].shape[1]), dtype=np.float32)
    mask = np.zeros(padded.shape[:2], dtype=np.int64)
    for out, m, page in zip(padded, mask, pages):
        where = slice(rows - len(page), rows) if side == "left" else slice(0, len(page))
        out[where], m[where] = page, 1
    pooler = MarginMergePooler(pool_factor=4)
    expected = pooler.pool_embeddings(pages)
    masked = np.where(mask[:, :, None] == 1, padded, 0.25)
    for result in (
        pooler.pool_embeddings(padded, padding=True, padding_side=side),
        pooler.pool_embeddings(masked.astype(np.float32), padding_side=side, attention_mask=mask),
    ):
        assert result.shape == (5, max(len(e) for e in expected), pages[0].shape[1])
        for got, want in zip(result, expected):
            kept = got[len(got) - len(want) :] if side == "left" else got[: len(want)]
            assert np.array_equal(kept, want) and np.count_nonzero(np.any(got != 0, axis=1)) == len(want)


def test_half_precision_stays_half(corpus):
    pooled = MarginMergePooler(pool_factor=5).pool_embeddings([corpus.pages[0].astype(np.float16)])
    assert pooled[0].dtype == np.float16


def test_edges(corpus):
    pooler = MarginMergePooler(pool_factor=10)
    assert pooler.pool_embeddings([]) == []
    assert pooler.pool_embeddings([corpus.pages[0][:1]])[0].shape == (1, 32)
    with pytest.raises(ValueError, match="list of 2-D"):
        pooler.pool_embeddings(corpus.pages[0])
    with pytest.raises(ValueError, match="page 1: expected at least one"):
        pooler.pool_embeddings([corpus.pages[0], corpus.pages[0][:0]])
    with pytest.raises(ValueError, match="padding_side"):
        pooler.pool_embeddings(corpus.pages, padding_side="top")
    with pytest.raises(ValueError, match="exclude"):
        MarginMergePooler(pool_factor=2, keep=0.5)
    with pytest.raises(ValueError, match="at least 1"):
        MarginMergePooler(pool_factor=0)
