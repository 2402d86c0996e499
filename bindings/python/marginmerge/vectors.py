"""Documents and queries: many vectors each."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping, Sequence, Union

from . import _core
from ._core import MultiVectorSet
from .errors import UsageError

#: A file, a set, or arrays: a list of [rows, dim], a mapping from ids to them, or one padded [n, rows, dim]. Arrays may
#: be of NumPy, of torch (on the CPU), or anything with the buffer protocol or DLPack.
VectorsLike = Union[str, "os.PathLike[str]", MultiVectorSet, Mapping[str, Any], Sequence[Any], Any]


def vectors(
    source: VectorsLike,
    ids: Iterable[str] | None = None,
    *,
    offsets: Any | None = None,
    mask: Any | None = None,
    grids: Iterable[tuple[int, int]] | None = None,
) -> MultiVectorSet:
    """Makes a set of documents or queries out of whatever holds their vectors.

    Nothing is copied where the layout allows it: a packed float32, float16 or bfloat16 array, a padded tensor without
    padding, or a list whose arrays are consecutive slices of one array are used where they lie; do not change them
    while the set is in use. Files are memory-mapped.

    Args:
        source: a multi-vector file; a list of arrays [rows, dim]; a mapping from ids to such arrays; one array
            [N, dim] with `offsets`; or one padded array [n, rows, dim], whose rows of zeros are left out.
        ids: names of the documents; by default their decimal position.
        offsets: for a packed array: where each document begins, and the end ([n+1], first 0, last N).
        mask: for a padded array: [n, rows], zero where a row is padding.
        grids: columns and rows of each document's patch grid, (0, 0) where not known.

    Raises:
        UsageError: shapes that do not fit, or ids that are not unique.
        Error: a file that cannot be read.
    """
    if isinstance(source, MultiVectorSet):
        if ids is not None or offsets is not None or mask is not None or grids is not None:
            raise UsageError("vectors: a set has its ids, offsets and grids already")
        return source
    if isinstance(source, (str, os.PathLike)):
        if ids is not None or offsets is not None or mask is not None or grids is not None:
            raise UsageError("vectors: a file has its ids, offsets and grids already")
        return MultiVectorSet.open(source)
    if isinstance(source, Mapping):
        if ids is not None:
            raise UsageError("ids: the keys of a mapping are its ids")
        ids, source = list(source.keys()), list(source.values())
    names = None if ids is None else list(ids)
    places = None if grids is None else list(grids)
    if isinstance(source, (list, tuple)):
        if offsets is not None or mask is not None:
            raise UsageError("offsets and mask belong to a single array, not to a list of them")
        return MultiVectorSet.from_list(list(source), names, places)
    dimensions = getattr(source, "ndim", None)
    if dimensions == 2:
        if offsets is None:
            raise UsageError("vectors: a single array [N, dim] needs offsets; put one document into a list")
        return MultiVectorSet.from_packed(source, offsets, names, places)
    if dimensions == 3:
        return MultiVectorSet.from_padded(source, mask, names, places)
    raise UsageError(
        f"vectors: expected a file, a set, a list or mapping of arrays, or an array of 2 or 3 dimensions, "
        f"found {type(source).__name__}" + ("" if dimensions is None else f" of {dimensions} dimensions")
    )


def read_qrels(path: str | os.PathLike[str]) -> dict[str, dict[str, int]]:
    """Reads relevance judgements: BEIR, TREC or two columns. Returns query id -> document id -> grade."""
    return _core.read_qrels(path)
