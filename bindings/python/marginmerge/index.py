"""Indexes: exact MaxSim search over files, folders and sets in memory."""

from __future__ import annotations

import json
import os
from typing import Any, Iterable, Iterator, Mapping, NamedTuple, Union

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._arguments import Progress, search_arguments
from .errors import Error, UsageError
from .vectors import MultiVectorSet, VectorsLike, vectors


class Hit(NamedTuple):
    """One result of a search; higher scores are better."""

    id: str
    score: float
    position: int


class Index:
    """A searchable set of pages.

    `Index(path)` opens a multi-vector file or an index folder, memory-mapped. `Index(pages)` searches vectors in memory.
    `Index(folder, create=True)` is where a new folder begins; it exists once the first pages were added.

    Folders can change: `add`, `delete` and `compact` each become visible and durable at one instant, a process that is
    killed leaves the folder as it was before or after. One process writes at a time, any number read. An `Index` is a
    consistent snapshot; `refresh` moves it to the newest state, which the methods that write do by themselves.
    """

    def __init__(self, source: IndexLike, *, create: bool = False) -> None:
        self._path: str | None = None
        self._snapshot: _core.Snapshot | None = None
        if isinstance(source, Index):
            self._path, self._snapshot = source._path, source._snapshot
        elif isinstance(source, (str, os.PathLike)):
            self._path = os.fspath(source)
            # A folder without a manifest has no state yet; the first pages make one.
            if not (create and not _has_content(self._path)):
                self._snapshot = _core.Snapshot.open(self._path)
        else:
            self._snapshot = _core.Snapshot.wrap(vectors(source))

    @property
    def path(self) -> str | None:
        """Where it is stored; None for an index in memory."""
        return self._path

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self._state.dim

    @property
    def stats(self) -> dict[str, Any]:
        """Pages, vectors, bytes, segments and storage code."""
        return self._state.stats()

    @property
    def ids(self) -> list[str]:
        """Ids of the pages, in order of position."""
        return list(self)

    def __len__(self) -> int:
        return 0 if self._snapshot is None else len(self._snapshot)

    def __iter__(self) -> Iterator[str]:
        return (self._state.id(i) for i in range(len(self)))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._snapshot is not None and self._snapshot.find(id) is not None

    def __repr__(self) -> str:
        where = "in memory" if self._path is None else self._path
        return f"<marginmerge.Index {where}: {len(self)} pages>"

    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        filter: str | Mapping[str, Any] | None = None,
        first_pass: str = "none",
        candidates: int = 0,
        prefix: int = 0,
        rerank: int = 0,
        full: bool = False,
        threads: int = 0,
    ) -> list[Hit]:
        """The best k pages for one query [tokens, dim], best first.

        Args:
            query: an array or tensor of two dimensions.
            filter: a condition on the pages' metadata, as text ("year >= 2020 and source = a.pdf") or as a mapping
                ({"year": {"gte": 2020}}).
            first_pass: "none" scores every page exactly; "prefix" and "bits" look at all pages cheaply first.
            candidates: pages that survive a first pass (0: max(8 k, 200)).
            prefix: vectors a page in a prefix pass (0: a quarter of them, at least 4).
            rerank: score so many of the best again with the full vectors, where the index keeps them.
            full: score every page with its full vectors.
            threads: 0 means all cores; the result does not depend on it.
        """
        arguments = search_arguments(k, threads, filter, first_pass, candidates, prefix, rerank, full)
        return [Hit(*hit) for hit in self._state.search(query, arguments)]

    def search_batch(
        self,
        queries: VectorsLike,
        k: int = 10,
        *,
        filter: str | Mapping[str, Any] | None = None,
        first_pass: str = "none",
        candidates: int = 0,
        prefix: int = 0,
        rerank: int = 0,
        full: bool = False,
        threads: int = 0,
    ) -> list[list[Hit]]:
        """The same for many queries at once, which is faster than one by one."""
        arguments = search_arguments(k, threads, filter, first_pass, candidates, prefix, rerank, full)
        return [[Hit(*hit) for hit in hits] for hits in self._state.search_batch(vectors(queries), arguments)]

    def score_all(self, query: Any, *, threads: int = 0) -> NDArray[np.float32]:
        """The score of every page, by position."""
        return self._state.score_all(query, threads)

    def explain(self, query: Any, id: str) -> dict[str, Any]:
        """Why a page scored what it did: for each query token the stored vector that answered, their inner product, and
        the original vectors it stands for."""
        return self._state.explain(query, id)

    def vectors(self, id: str) -> NDArray[np.float32]:
        """The stored vectors of a page, decoded."""
        return self._state.vectors(id)

    def owner(self, id: str) -> NDArray[np.int32]:
        """For each original vector of a page the stored one that stands for it, -1 for none."""
        return self._state.owner(id)

    def metadata(self, id: str) -> dict[str, Any]:
        """What was stored with a page."""
        return self._state.metadata(id)

    def refresh(self) -> Index:
        """Moves to the newest state of a folder; cheap when nothing changed. Returns the index itself."""
        if self._path is not None:
            self._snapshot = _core.Snapshot.open(self._path) if self._snapshot is None else self._snapshot.reopen()
        return self

    def add(
        self,
        pages: VectorsLike,
        ids: Iterable[str] | None = None,
        *,
        metadata: Iterable[Mapping[str, Any] | None] | None = None,
        code: str | None = None,
        replace: bool = False,
        full: VectorsLike | None = None,
        lock_timeout: float = 10,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> dict[str, int]:
        """Adds pages as one segment of a folder.

        Args:
            pages: compressed pages or any other vectors.
            ids: their names, when `pages` does not have them.
            metadata: one mapping (or None) a page, for filters and for showing.
            code: of a new folder: "f32", "f16" (default), "int8" or "bits".
            replace: pages whose id exists take the old one's place; otherwise they are an error.
            full: the pages before compression, found by id, kept for re-ranking.
            lock_timeout: seconds to wait for another writer.

        Returns: how many were added and replaced, and the folder's generation.
        """
        given = vectors(pages) if ids is None else vectors(pages, ids)
        lines = [] if metadata is None else ["" if m is None else json.dumps(m) for m in metadata]
        if lines and len(lines) != len(given):
            raise UsageError(f"metadata: expected {len(given)} entries, one a page, found {len(lines)}")
        report = _core.add_pages(
            self._folder(),
            given,
            lines,
            code or "",
            replace,
            None if full is None else vectors(full),
            lock_timeout,
            threads,
            progress,
        )
        self.refresh()
        return report

    def delete(self, ids: Iterable[str], *, ignore_missing: bool = False, lock_timeout: float = 10) -> dict[str, int]:
        """Removes pages from a folder; their space is freed by `compact`."""
        if isinstance(ids, str):
            raise UsageError("ids: expected a list of them, found a text")
        report = _core.delete_pages(self._folder(), [str(id) for id in ids], ignore_missing, lock_timeout)
        self.refresh()
        return report

    def compact(
        self, *, code: str | None = None, lock_timeout: float = 10, progress: Progress | None = None
    ) -> dict[str, int]:
        """Rewrites a folder as one segment without deleted pages, in a coarser storage code when one is given."""
        report = _core.compact_index(self._folder(), code or "", lock_timeout, progress)
        self.refresh()
        return report

    def verify(self, *, progress: Progress | None = None) -> dict[str, Any]:
        """Reads every byte: checksums, formats, counts, unique ids. `problems` is empty when all is sound."""
        if self._path is None:
            raise UsageError("verify: expected an index on disk, found one in memory")
        return _core.verify_index(self._path, progress)

    @property
    def _state(self) -> _core.Snapshot:
        if self._snapshot is None:
            raise Error(f"{self._path}: expected pages, found none; add some first", "not_found")
        return self._snapshot

    def _folder(self) -> str:
        if self._path is None or os.path.isfile(self._path):
            where = "in memory" if self._path is None else self._path
            raise UsageError(f"index: expected a folder, found one {where}; files and arrays cannot be changed")
        return self._path


#: An index, a file or folder of one, or vectors.
IndexLike = Union[Index, VectorsLike]


def _has_content(path: str) -> bool:
    return os.path.isfile(path) or (os.path.isdir(path) and any(os.scandir(path)))


def as_index(source: IndexLike) -> Index:
    return source if isinstance(source, Index) else Index(source)


__all__ = ["Hit", "Index", "IndexLike", "MultiVectorSet", "as_index"]
