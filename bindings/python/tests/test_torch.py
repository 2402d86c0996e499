"""torch tensors, where torch is installed."""

from __future__ import annotations

import numpy as np
import pytest

import marginmerge

torch = pytest.importorskip("torch")


def test_tensors_are_borrowed(corpus):
    packed = torch.from_numpy(np.concatenate(corpus.pages).copy())
    offsets = np.cumsum([0] + [len(p) for p in corpus.pages])
    for dtype in (torch.float32, torch.float16):
        tensor = packed.to(dtype)
        pages = marginmerge.vectors(tensor, offsets=offsets)
        assert pages.vectors.__array_interface__["data"][0] == tensor.data_ptr()
        expected = pages.vectors.copy()
        del tensor
        assert np.array_equal(pages.vectors, expected)


def test_bfloat16(corpus):
    tensors = [torch.from_numpy(p).to(torch.bfloat16) for p in corpus.pages]
    pages = marginmerge.vectors(tensors)
    assert pages.dtype == "BF16"
    assert np.array_equal(pages[4], tensors[4].float().numpy())
    expected = marginmerge.compress([t.float() for t in tensors], keep=0.1)
    assert np.array_equal(marginmerge.compress(tensors, keep=0.1).vectors, expected.vectors)


def test_layouts_and_gradients(corpus):
    page = torch.from_numpy(corpus.pages[0].copy())
    for given in (page.t().contiguous().t(), page.clone().requires_grad_(), page.double(), page[::2], page.to(torch.bfloat16).t().contiguous().t()):
        expected = given.detach().float().numpy()
        assert np.array_equal(marginmerge.vectors([given])[0].astype(np.float32), expected)


def test_pooler_keeps_type_and_convention(corpus):
    pooler = marginmerge.MarginMergePooler(pool_factor=4)
    tensors = [torch.from_numpy(p) for p in corpus.pages]
    pooled = pooler.pool_embeddings(tensors)
    assert all(isinstance(t, torch.Tensor) and t.dtype == torch.float32 for t in pooled)
    expected = marginmerge.compress(corpus.pages, keep=0.25)
    assert all(np.array_equal(t.numpy(), e) for t, e in zip(pooled, expected))
    half = pooler.pool_embeddings([t.to(torch.bfloat16) for t in tensors], num_workers=2)
    assert half[0].dtype == torch.bfloat16
    padded = torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True)
    out = pooler.pool_embeddings(padded, return_dict=True, padding=True, padding_side="right")
    assert out.pooled_embeddings.shape[0] == len(tensors) and out.pooled_embeddings.dtype == torch.float32
    assert torch.equal(out.pooled_embeddings[3][: len(pooled[3])], pooled[3])
    (indices,) = out.cluster_id_to_indices[3][0]
    assert isinstance(indices, torch.Tensor) and indices.dtype == torch.int64


def test_search_with_a_tensor(corpus):
    index = marginmerge.Index(corpus.named())
    query = corpus.queries["q1"]
    assert index.search(torch.from_numpy(query)) == index.search(query)
