"""Fitting, compressing, searching and judging; and that the command line gives the same."""

from __future__ import annotations

import json
import subprocess
import threading
import time

import numpy as np
import pytest
from conftest import maxsim

import marginmerge


def run(binary, *arguments):
    done = subprocess.run([binary, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def files(corpus, tmp_path_factory):
    """The corpus as files, float32, so that arrays and files hold the same numbers."""
    folder = tmp_path_factory.mktemp("files")
    marginmerge.vectors(corpus.named()).save(folder / "docs.safetensors", "f32")
    marginmerge.vectors(corpus.queries).save(folder / "queries.safetensors", "f32")
    lines = [f"{q}\t{d}\t{g}" for q, grades in corpus.qrels.items() for d, g in grades.items()]
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def model(corpus):
    report = {}
    fitted = marginmerge.fit(corpus.named(), corpus.queries, corpus.qrels, keep=0.1, threads=2, report=report)
    assert report["documents"] == len(corpus.pages) and report["candidates"]
    return fitted


def test_compress_keeps_the_share(corpus):
    small = marginmerge.compress(corpus.pages, keep=0.1, ids=corpus.ids)
    assert small.compressed and small.ids == corpus.ids
    for page, kept, i in zip(corpus.pages, small, range(len(small))):
        assert len(kept) == int(np.ceil(0.1 * len(page) - 1e-9))
        owner = small.owner(i)
        assert len(owner) == len(page) and owner.min() >= -1 and owner.max() < len(kept)
    fixed = marginmerge.compress(corpus.pages, vectors_per_page=3)
    assert all(len(p) == 3 for p in fixed)


def test_every_form_of_input_gives_the_same(corpus, files):
    expected = marginmerge.compress(corpus.pages, keep=0.1)
    packed = marginmerge.vectors(np.concatenate(corpus.pages), offsets=np.cumsum([0] + [len(p) for p in corpus.pages]))
    for source in (corpus.named(), packed, files / "docs.safetensors", str(files / "docs.safetensors")):
        assert np.array_equal(marginmerge.compress(source, keep=0.1).vectors, expected.vectors)
    one_thread = marginmerge.compress(corpus.pages, keep=0.1, threads=1)
    assert np.array_equal(one_thread.vectors, expected.vectors)


def test_balance_shares_one_budget(corpus, files, binary, tmp_path):
    plain = [len(p) for p in marginmerge.compress(corpus.pages, keep=0.2)]
    shared = marginmerge.compress(corpus.pages, keep=0.2, balance=True, dtype="f16")
    kept = [len(p) for p in shared]
    lengths = [len(p) for p in corpus.pages]
    assert sum(plain) - len(plain) <= sum(kept) <= sum(plain)
    assert kept[int(np.argmin(lengths))] > min(plain) and kept[int(np.argmax(lengths))] < max(plain)
    run(binary, "compress", files / "docs.safetensors", "--keep", "0.2", "--balance", "-o", tmp_path / "shared")
    assert np.array_equal(marginmerge.vectors(tmp_path / "shared").vectors, shared.vectors)


def test_alignment_can_be_left_out(corpus, tmp_path):
    report = {}
    model = marginmerge.fit(corpus.pages, corpus.queries, corpus.qrels, align=0.5, report=report)
    plain = marginmerge.fit(corpus.pages, corpus.queries, corpus.qrels, align=0)
    without = marginmerge.compress(corpus.pages, model, keep=0.1, align=False)
    assert np.array_equal(without.vectors, marginmerge.compress(corpus.pages, plain, keep=0.1).vectors)
    changed = not np.array_equal(without.vectors, marginmerge.compress(corpus.pages, model, keep=0.1).vectors)
    assert changed == any(report.get(part, {"kept": False})["kept"] for part in ("alignment", "memory"))


def test_pages_need_not_remember():
    rng = np.random.default_rng(5)
    pages = [rng.normal(size=(20, 16)).astype(np.float32) for _ in range(150)]
    pages = [p / np.linalg.norm(p, axis=1, keepdims=True) for p in pages]
    queries = [pages[q % 50][:3] for q in range(100)]
    judged = {str(q): {str(q % 50): 1} for q in range(100)}
    report = {}
    marginmerge.fit(pages, queries, judged, align=0.5, compare=False, report=report)
    assert report["memory"]["queries"] == 100
    report = {}
    marginmerge.fit(pages, queries, judged, align=0.5, compare=False, remember=False, report=report)
    assert "memory" not in report and report["alignment"]["queries"] == 100


def test_unit_norm(corpus):
    small = marginmerge.compress(corpus.pages, keep=0.1, unit_norm=True)
    assert np.allclose(np.linalg.norm(small.vectors, axis=1), 1, atol=1e-5)
    free = np.linalg.norm(marginmerge.compress(corpus.pages, keep=0.1).vectors, axis=1)
    assert np.abs(free - 1).max() > 0.01


def test_files_equal_the_command_line(corpus, files, model, binary, tmp_path):
    model.save(tmp_path / "model.safetensors")
    run(binary, "compress", files / "docs.safetensors", "-m", tmp_path / "model.safetensors", "--keep", "0.1", "-o",
        tmp_path / "cli.safetensors")  # fmt: skip
    written = marginmerge.compress(files / "docs.safetensors", model, keep=0.1, output=tmp_path / "py.safetensors")
    assert (tmp_path / "py.safetensors").read_bytes() == (tmp_path / "cli.safetensors").read_bytes()
    in_memory = marginmerge.compress(corpus.pages, model, keep=0.1, dtype="f16")
    assert np.array_equal(in_memory.vectors, written.vectors)


def test_fit_equals_the_command_line(corpus, files, model, binary, tmp_path):
    run(binary, "fit", "--docs", files / "docs.safetensors", "--queries", files / "queries.safetensors", "--qrels",
        files / "qrels.tsv", "--keep", "0.1", "-o", tmp_path / "cli.safetensors")  # fmt: skip
    marginmerge.fit(files / "docs.safetensors", files / "queries.safetensors", files / "qrels.tsv", keep=0.1,
                    output=tmp_path / "py.safetensors")  # fmt: skip
    assert (tmp_path / "py.safetensors").read_bytes() == (tmp_path / "cli.safetensors").read_bytes()
    from_file = marginmerge.Model(tmp_path / "cli.safetensors")
    assert from_file.recipe == model.recipe and np.array_equal(from_file.probes, model.probes)


def test_fit_without_queries(corpus):
    report = {}
    marginmerge.fit(corpus.pages, preset="fixed", report=report)
    assert report["pseudo_queries"] > 0


def test_search_is_exact(corpus):
    found = marginmerge.search(corpus.named(), corpus.queries, k=5)
    assert list(found) == list(corpus.queries)
    for query, hits in found.items():
        scores = np.array([maxsim(corpus.queries[query], page) for page in corpus.pages])
        best = np.argsort(-scores, kind="stable")[:5]
        assert [hit.id for hit in hits] == [corpus.ids[i] for i in best]
        assert np.allclose([hit.score for hit in hits], scores[best], rtol=1e-5)


def test_evaluate_equals_the_command_line(corpus, files, model, binary, tmp_path):
    small = marginmerge.compress(files / "docs.safetensors", model, keep=0.1, output=tmp_path / "small.safetensors")
    text = run(binary, "evaluate", "--full", files / "docs.safetensors", "--index", tmp_path / "small.safetensors",
               "--queries", files / "queries.safetensors", "--qrels", files / "qrels.tsv", "--json")  # fmt: skip
    expected = json.loads(text)["indexes"][0]
    arrays = marginmerge.evaluate(corpus.named(), small, corpus.queries, corpus.qrels, report=tmp_path / "r.html")
    elsewhere = {"name", "path", "search_ms", "store"}  # what depends on where it lies
    assert set(arrays["indexes"][0]) == set(expected)
    for key in set(expected) - elsewhere:
        assert arrays["indexes"][0][key] == expected[key], key
    assert (tmp_path / "r.html").read_text().startswith("<!")
    several = marginmerge.evaluate(
        files / "docs.safetensors",
        {"fitted": small, "kmeans": marginmerge.compress(corpus.named(), keep=0.1)},
        corpus.queries,
        {q: list(d) for q, d in corpus.qrels.items()},
        timed_queries=0,
    )
    assert [figures["name"] for figures in several["indexes"]] == ["fitted", "kmeans"]
    assert several["indexes"][0]["quality"] == expected["quality"]
    unlabelled = marginmerge.evaluate(corpus.named(), small, corpus.queries)
    assert unlabelled["labels"] is False and unlabelled["full"]["quality"]["ndcg"] == 1


def test_import(corpus, tmp_path):
    np.savez(tmp_path / "pages.npz", **{f"p{i}": 3 * page for i, page in enumerate(corpus.pages[:4])})
    pages = marginmerge.import_vectors(tmp_path / "pages.npz", tmp_path / "pages.safetensors", dtype="f32")
    assert len(pages) == 4 and np.allclose(pages["p2"], corpus.pages[2], atol=1e-6)


def test_synthesise(tmp_path):
    report = marginmerge.synthesise(tmp_path, kind="natural", documents=20, queries=10)
    assert report["documents"] == 20 == len(marginmerge.vectors(tmp_path / "docs.safetensors"))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda p: marginmerge.compress(p, keep=0), "keep"),
        (lambda p: marginmerge.compress(p, keep=0.1, vectors_per_page=4), "exclude"),
        (lambda p: marginmerge.compress(p, preset="nobody"), "preset: expected one of"),
        (lambda p: marginmerge.compress(p, representative="learned"), "model|network"),
        (lambda p: marginmerge.compress(p, dtype="int4"), "dtype"),
        (lambda p: marginmerge.compress(marginmerge.compress(p)), "already compressed"),
        (lambda p: marginmerge.compress([p[0], p[1][:, :16]]), "page 1: expected 32"),
        (lambda p: marginmerge.search(p, [p[0][:, :16]]), "query: expected 32"),
        (lambda p: marginmerge.search(p, [p[0]], k=0), "k: expected"),
        (lambda p: marginmerge.search(p, [p[0]], first_pass="nobody"), "first"),
        (lambda p: marginmerge.fit(p, [p[0][:, :16]]), "expected 32"),
        (lambda p: marginmerge.fit(p, preset="nobody"), "preset"),
        (lambda p: marginmerge.evaluate(p, p, [p[0]], {"0": "1"}), "put it into a list"),
        (lambda p: marginmerge.evaluate(p, p, [p[0]], {"7": ["1"]}), "relevant"),
        (lambda p: marginmerge.evaluate(p, {}, [p[0]], {"0": ["1"]}), "at least one"),
    ],
)
def test_what_makes_no_sense(corpus, call, message):
    with pytest.raises(ValueError, match=message):
        call(corpus.pages)


def test_values_that_are_not_numbers(corpus):
    page = corpus.pages[0].copy()
    page[3, 5] = np.nan
    with pytest.raises(marginmerge.Error, match="document '0' vector 3") as caught:
        marginmerge.compress([page])
    assert caught.value.code == "corrupt"


def test_odd_norms_are_noticed(corpus):
    with pytest.warns(UserWarning, match="not of unit norm"):
        marginmerge.compress([2 * corpus.pages[0]])


def test_progress_and_cancelling(corpus):
    calls = []
    marginmerge.compress(corpus.pages, progress=lambda *update: calls.append(update))
    assert calls[-1][:4] == ("compress", "pages", len(corpus.pages), len(corpus.pages))

    def stop(phase, unit, done, total, detail):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        marginmerge.compress(corpus.pages, progress=stop)


def test_other_threads_run_meanwhile(corpus):
    """The library works without the GIL: a Python thread keeps counting."""
    big = [np.tile(page, (30, 1)) for page in corpus.pages]
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    begin, start = counted[0], time.perf_counter()
    marginmerge.compress(big, keep=0.2, representative="ward", threads=1)
    seconds, steps = time.perf_counter() - start, counted[0] - begin
    stop.set()
    counter.join()
    assert seconds > 0.05 and steps > 20 * seconds
