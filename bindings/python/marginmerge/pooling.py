"""A pooler with the calling convention of colpali-engine's token poolers."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from . import _core
from ._arguments import given
from ._core import Model
from .errors import UsageError
from .vectors import vectors


@dataclass
class TokenPoolingOutput:
    """Pooled vectors, and for each page a mapping from a pooled vector's number to the (1-tuple of the) indices of the
    vectors it stands for. Fields are named as in colpali-engine."""

    pooled_embeddings: Any
    cluster_id_to_indices: List[Optional[Dict[int, Tuple[Any]]]]


class MarginMergePooler:
    """Stands in for colpali-engine's `HierarchicalTokenPooler`:

        pooler = MarginMergePooler(pool_factor=20, model="model.safetensors")
        pooled = pooler.pool_embeddings(embeddings)

    Args:
        pool_factor: how many times fewer vectors; a page of n keeps ceil(n / pool_factor).
        keep: the share of vectors instead (0.05 is a pool factor of 20).
        vectors_per_page: a fixed number a page instead.
        model: from `marginmerge.fit`, or its file; without one pages are clustered by spherical k-means.
        unit_norm: scale pooled vectors to unit norm. Leave it off for engines that score with inner products: the norms
            carry meaning, and scaling costs quality.
        preset, anchors, fill, representative: the recipe, as for `marginmerge.compress`.
        threads: 0 means all cores.
    """

    def __init__(
        self,
        pool_factor: float | None = None,
        *,
        keep: float | None = None,
        vectors_per_page: int | None = None,
        model: Model | str | os.PathLike[str] | None = None,
        unit_norm: bool | None = None,
        preset: str | None = None,
        anchors: str | None = None,
        fill: str | None = None,
        representative: str | None = None,
        threads: int = 0,
    ) -> None:
        if sum(x is not None for x in (pool_factor, keep, vectors_per_page)) > 1:
            raise UsageError("pool_factor, keep and vectors_per_page exclude each other")
        if pool_factor is not None:
            if pool_factor < 1:
                raise UsageError(f"pool_factor: expected at least 1, found {pool_factor}")
            keep = 1 / pool_factor
        self.pool_factor = pool_factor
        self.model = Model(model) if isinstance(model, (str, os.PathLike)) else model
        self._threads = threads
        self._options = given(
            keep=keep, vectors=vectors_per_page, unit_norm=unit_norm, preset=preset, anchors=anchors, fill=fill,
            representative=representative, dtype="f32",
        )  # fmt: skip

    def pool_embeddings(
        self,
        embeddings: Any,
        return_dict: bool = False,
        padding: bool = False,
        padding_side: str = "left",
        num_workers: int | None = None,
        *,
        attention_mask: Any | None = None,
    ) -> Any:
        """Pools a list of [tokens, dim] tensors to a list of such tensors, or a padded [n, tokens, dim] tensor to a
        padded tensor. Type and device are those of the input; NumPy arrays give NumPy arrays.

        Args:
            embeddings: the pages of a batch.
            return_dict: return a `TokenPoolingOutput`, which says what each pooled vector stands for.
            padding: rows of zeros in a padded tensor are padding. They never enter a page here, so this changes nothing;
                it is taken because colpali-engine's poolers take it.
            padding_side: "left" or "right": where the result of a padded tensor is padded.
            num_workers: threads to use; the pooler's own number by default.
            attention_mask: for a padded tensor: [n, tokens], zero where a row is padding.
        """
        if padding_side not in ("left", "right"):
            raise UsageError(f"padding_side: expected left or right, found '{padding_side}'")
        padded = not isinstance(embeddings, (list, tuple))
        if padded and getattr(embeddings, "ndim", None) != 3:
            raise UsageError("embeddings: expected a list of 2-D tensors or one 3-D tensor")
        if not padded and attention_mask is not None:
            raise UsageError("attention_mask: expected a padded tensor to go with it, found a list")
        if len(embeddings) == 0:
            return TokenPoolingOutput(embeddings, []) if return_dict else embeddings
        like = embeddings if padded else embeddings[0]
        options = dict(self._options, threads=self._threads if num_workers is None else num_workers)
        if padded:
            mask = None if attention_mask is None else _to_cpu(attention_mask)
            pages = vectors(_to_cpu(embeddings), mask=mask)
            result, _ = _core.compress_set(pages, self.model, options, None)
        else:
            for i, page in enumerate(embeddings):
                if getattr(page, "ndim", None) == 2 and page.shape[0] == 0:
                    raise UsageError(f"embeddings: page {i}: expected at least one vector, found none")
            result, _ = _core.compress_list([_to_cpu(e) for e in embeddings], None, None, self.model, options, None)
        arrays = _core.unpack(result)
        pooled = _pad(arrays, padding_side, like) if padded else [_like(a, e) for a, e in zip(arrays, embeddings)]
        if not return_dict:
            return pooled
        return TokenPoolingOutput(pooled, [_clusters(result.owner(i), len(a), like) for i, a in enumerate(arrays)])


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def _to_cpu(value: Any) -> Any:
    return value.detach().cpu() if _is_torch(value) else value


def _like(array: Any, like: Any) -> Any:
    """The array as the kind, type and device of `like`."""
    if not _is_torch(like):
        return array.astype(like.dtype, copy=False) if isinstance(like, np.ndarray) else array
    import torch

    tensor = torch.from_numpy(array)
    return tensor.to(device=like.device, dtype=like.dtype if like.is_floating_point() else tensor.dtype)


def _pad(arrays: list[Any], side: str, like: Any) -> Any:
    longest = max(len(a) for a in arrays)
    out = np.zeros((len(arrays), longest, arrays[0].shape[1]), dtype=np.float32)
    for page, array in zip(out, arrays):
        first = longest - len(array) if side == "left" else 0
        page[first : first + len(array)] = array
    return _like(out, like)


def _clusters(owner: Any, count: int, like: Any) -> dict[int, tuple[Any]]:
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(count + 1))
    groups = [order[bounds[c] : bounds[c + 1]] for c in range(count)]
    if _is_torch(like):
        import torch

        return {c: (torch.from_numpy(group),) for c, group in enumerate(groups)}
    return {c: (group,) for c, group in enumerate(groups)}
