"""What the library does, one function a job."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Iterable, Mapping

from . import _core
from ._arguments import Progress, QrelsLike, given, judgements, warn
from ._core import Model, MultiVectorSet
from .errors import UsageError
from .index import Hit, IndexLike, as_index
from .vectors import VectorsLike, vectors


def fit(
    documents: VectorsLike,
    queries: VectorsLike | None = None,
    qrels: QrelsLike | None = None,
    *,
    output: str | os.PathLike[str] | None = None,
    preset: str = "default",
    keep: float | None = None,
    anchors: str | None = None,
    fill: str | None = None,
    representative: str | None = None,
    unit_norm: bool = False,
    align: float | None = None,
    sharpen: float | None = None,
    remember: bool = True,
    no_labels: bool = False,
    compare: bool = True,
    hold_out: float = 0.0,
    validation: float = 0.1,
    epochs: int | None = None,
    learning_rate: float | None = None,
    prototypes: int = 128,
    probes: int = 0,
    seed: int = 42,
    name: str | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    report: dict[str, Any] | None = None,
) -> Model:
    """Learns from queries how to compress documents.

    Args:
        documents: what will be compressed, or a sample of it.
        queries: a query log; without one, pseudo-queries are drawn from the documents.
        qrels: which documents are relevant; without any, the full index is the teacher.
        output: where to write the model file; None keeps it in memory only.
        preset: what to fit; see docs/training.md. `anchors`, `fill` and `representative` override its parts.
        keep: share of vectors to fit for (0.05).
        unit_norm: fit for engines that only know cosine.
        align: let `qrels` change the order of at most this share of pairs; 0: of none (0.005 with the default preset).
        remember: whether pages may remember what the queries of `qrels` asked of them, within what `align` allows.
        sharpen: lift unusually strong answers by this part of what makes them unusual; 0: aim at the full index alone
            (0.5 with the default preset).
        no_labels: ignore `qrels`.
        compare: hold the result against fixed representatives and keep those where they are better.
        hold_out: share of documents set aside for evaluation.
        validation: share of the queries kept for choosing.
        report: a dictionary that receives what was compared, chosen and measured.

    The same data and seed give the same model for any number of threads, and the one `marginmerge fit` writes.
    """
    source, wanted = vectors(documents), None if queries is None else vectors(queries)
    labels = judgements(qrels)
    if name is None and isinstance(documents, (str, os.PathLike)):
        name = os.path.splitext(os.path.basename(os.fspath(documents)))[0]
    options = given(
        preset=preset, keep=keep, anchors=anchors, fill=fill, representative=representative, unit_norm=unit_norm,
        align=align, sharpen=sharpen, remember=remember, no_labels=no_labels, compare=compare, hold_out=hold_out,
        validation=validation, epochs=epochs, learning_rate=learning_rate, prototypes=prototypes, probes=probes,
        seed=seed, name=name, threads=threads,
    )  # fmt: skip
    if output is not None:
        model, figures = _core.fit(source, wanted, labels, output, options, progress)
    else:
        with tempfile.TemporaryDirectory(prefix="marginmerge-") as folder:
            path = os.path.join(folder, "model.safetensors")
            model, figures = _core.fit(source, wanted, labels, path, options, progress)
    if report is not None:
        report.update(figures)
    return model


def compress(
    documents: VectorsLike,
    model: Model | str | os.PathLike[str] | None = None,
    *,
    keep: float | None = None,
    vectors_per_page: int | None = None,
    balance: bool = False,
    output: str | os.PathLike[str] | None = None,
    preset: str | None = None,
    anchors: str | None = None,
    fill: str | None = None,
    representative: str | None = None,
    unit_norm: bool | None = None,
    align: bool | None = None,
    seed: int | None = None,
    dtype: str | None = None,
    ids: Iterable[str] | None = None,
    grids: Iterable[tuple[int, int]] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> MultiVectorSet:
    """Shrinks every document to a few representatives.

    Args:
        documents: a file, a set, or arrays; pages of a list are read where they lie.
        model: from `fit`, or its file; without one a recipe that needs none is used.
        keep: share of each page's vectors, above 0 and at most 1 (0.05, or what the model was fitted for).
        vectors_per_page: a fixed number a page instead.
        balance: make `keep` the share of all pages together, more of short pages and less of long ones.
        output: a file to write. From a file to a file the work is streamed with bounded memory, continues after an
            interruption, and gives the bytes that `marginmerge compress` gives.
        preset: a whole recipe by name; `anchors`, `fill` and `representative` override its parts.
        unit_norm: scale representatives to unit norm, for engines that only know cosine.
        align: False leaves out what the model learned from judgements.
        dtype: storage of the result, "f16" or "f32"; by default f16 in files and f32 in memory.
        ids, grids: as for `vectors`, when `documents` is a list.

    Returns: the compressed documents; with `output` the file, opened. `owner(i)` says what each vector stands for.
    """
    options = given(
        preset=preset, anchors=anchors, fill=fill, representative=representative, keep=keep, vectors=vectors_per_page,
        balance=balance, unit_norm=unit_norm, align=align, seed=seed, dtype=dtype, threads=threads,
    )  # fmt: skip
    if isinstance(documents, (str, os.PathLike)) and output is not None:
        with tempfile.TemporaryDirectory(prefix="marginmerge-") as folder:
            path: str | os.PathLike[str] = "" if model is None else model  # type: ignore[assignment]
            if isinstance(model, Model):
                path = os.path.join(folder, "model.safetensors")
                model.save(path)
            warn(_core.compress_file(documents, output, path, options, progress)["notes"])
        return MultiVectorSet.open(output)
    used = Model(model) if isinstance(model, (str, os.PathLike)) else model
    if output is not None and dtype is None:
        options["dtype"] = "f16"
    if isinstance(documents, Mapping):
        if ids is not None:
            raise UsageError("ids: the keys of a mapping are its ids")
        ids, documents = list(documents.keys()), list(documents.values())
    if isinstance(documents, (list, tuple)):
        names = None if ids is None else list(ids)
        places = None if grids is None else list(grids)
        result, notes = _core.compress_list(list(documents), names, places, used, options, progress)
    else:
        result, notes = _core.compress_set(vectors(documents, ids, grids=grids), used, options, progress)
    warn(notes)
    if output is None:
        return result
    result.save(output)
    return MultiVectorSet.open(output)


def search(
    index: IndexLike,
    queries: VectorsLike,
    k: int = 10,
    **options: Any,
) -> dict[str, list[Hit]]:
    """The best k pages for every query, as query id -> hits. Options are those of `Index.search_batch`."""
    wanted = vectors(queries)
    hits = as_index(index).search_batch(wanted, k, **options)
    return dict(zip(wanted.ids, hits))


def evaluate(
    full: IndexLike,
    indexes: IndexLike | Mapping[str, IndexLike],
    queries: VectorsLike,
    qrels: QrelsLike | None = None,
    *,
    k: int = 5,
    top: int = 10,
    timed_queries: int = 50,
    runs: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Judges one or more indexes against the full documents.

    Args:
        full: the documents before compression.
        indexes: what is judged: one index, or several by name.
        qrels: relevance; without any, the full index's first `top` pages count as relevant.
        k: cut of nDCG.
        timed_queries: searched one by one for the time of a search; 0 does without.
        runs: a folder for TREC runs.
        report: an HTML file with tables and plots.

    Returns: what `marginmerge evaluate --json` prints: quality of the full index and of each index, nDCG difference and
    flips with 95% intervals, overlap, bytes, milliseconds, and figures for each query.
    """
    one = not isinstance(indexes, Mapping) or _looks_like_vectors(indexes)
    named = {_name(indexes): indexes} if one else indexes
    judged = [(str(name), as_index(index)._state) for name, index in named.items()]
    options = given(k=k, top=top, timed_queries=timed_queries, runs=runs, report=report, threads=threads)
    figures, html = _core.evaluate(
        as_index(full)._state, judged, vectors(queries), judgements(qrels), options, progress
    )
    if report is not None:
        with open(report, "w", encoding="utf-8") as file:
            file.write(html)
    return figures


def import_vectors(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    dtype: str = "f16",
    keep_norms: bool = False,
    queries: bool = False,
    drop_empty: bool = False,
    ids: str | os.PathLike[str] | None = None,
    offsets: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> MultiVectorSet:
    """Any supported file (safetensors, .npy, .npz, torch .pt, JSON lines, cache folders) to a multi-vector file.

    Zero rows are dropped, NaN is refused, vectors not of unit norm are normalised unless `keep_norms`. Nothing in a
    torch file is executed. Returns the file, opened.
    """
    paths = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    options = given(
        dtype=dtype, keep_norms=keep_norms, queries=queries, drop_empty=drop_empty, ids=ids, offsets=offsets
    )
    _core.import_files(paths, output, options, progress)
    return MultiVectorSet.open(output)


def synthesise(
    output: str | os.PathLike[str],
    *,
    kind: str = "dense",
    documents: int = 200,
    queries: int = 100,
    vectors: int | None = None,
    redundancy: float | None = None,
    dim: int = 128,
    difficulty: float = 0.85,
    seed: int = 42,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes a made-up corpus of a chosen redundancy into a folder: docs.safetensors, train_ and test_ queries and qrels."""
    options = given(
        kind=kind, documents=documents, queries=queries, vectors=vectors, redundancy=redundancy, dim=dim,
        difficulty=difficulty, seed=seed, threads=threads,
    )  # fmt: skip
    return _core.synthesise(output, options, progress)


def _looks_like_vectors(mapping: Mapping[str, Any]) -> bool:
    return bool(mapping) and all(getattr(value, "ndim", None) == 2 for value in mapping.values())


def _name(index: IndexLike) -> str:
    path = index if isinstance(index, (str, os.PathLike)) else getattr(index, "path", None)
    if path is None:
        return "index"
    name = os.path.basename(os.path.normpath(os.fspath(path)))
    return name[: -len(".safetensors")] if name.endswith(".safetensors") else name
