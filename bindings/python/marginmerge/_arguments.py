"""What several functions take."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any, Callable, Iterable, Mapping, Union

from . import _core
from .errors import UsageError

#: Called now and then as progress(phase, unit, done, total, detail), from one thread at a time. Raising cancels the job.
Progress = Callable[[str, str, int, int, str], None]

#: Judgements: a file, query -> document -> grade, or query -> relevant documents.
QrelsLike = Union[str, "os.PathLike[str]", Mapping[str, Union[Mapping[str, int], Iterable[str]]]]


def judgements(qrels: QrelsLike | None) -> dict[str, dict[str, int]] | None:
    if qrels is None:
        return None
    if isinstance(qrels, (str, os.PathLike)):
        return _core.read_qrels(qrels)
    if not isinstance(qrels, Mapping):
        raise UsageError(f"qrels: expected a file or a mapping from query ids, found {type(qrels).__name__}")
    out: dict[str, dict[str, int]] = {}
    for query, documents in qrels.items():
        if isinstance(documents, str):
            raise UsageError(f"qrels: query '{query}': expected document ids, found a text; put it into a list")
        if isinstance(documents, Mapping):
            out[str(query)] = {str(document): int(grade) for document, grade in documents.items()}
        else:
            out[str(query)] = {str(document): 1 for document in documents}
    return out


def given(**options: Any) -> dict[str, Any]:
    """The options that were set; paths as texts."""
    return {
        name: os.fspath(value) if isinstance(value, os.PathLike) else value
        for name, value in options.items()
        if value is not None
    }


def search_arguments(
    k: int,
    threads: int,
    filter: str | Mapping[str, Any] | None,
    first_pass: str,
    candidates: int,
    prefix: int,
    rerank: int,
    full: bool,
) -> _core.SearchArguments:
    if k < 1:
        raise UsageError(f"k: expected at least 1, found {k}")
    text = filter if isinstance(filter, str) else ""
    structure = json.dumps(filter) if isinstance(filter, Mapping) else ""
    return _core.SearchArguments(k, threads, text, structure, first_pass, candidates, prefix, rerank, full)


def warn(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, stacklevel=3)
