"""Index folders from Python."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import maxsim

import marginmerge


def test_life_of_a_folder(corpus, tmp_path):
    small = marginmerge.compress(corpus.named(), keep=0.2)
    index = marginmerge.Index(tmp_path / "index", create=True)
    assert len(index) == 0
    with pytest.raises(marginmerge.Error, match="add some first"):
        index.search(corpus.queries["q0"])
    metadata = [{"number": i, "parity": "odd" if i % 2 else "even"} for i in range(len(small))]
    assert index.add(small, metadata=metadata, full=corpus.named(), code="f32")["added"] == len(small)
    assert len(index) == len(small) and "page-3" in index and index.ids == corpus.ids
    assert index.metadata("page-3") == {"number": 3, "parity": "odd"}
    assert np.array_equal(index.vectors("page-5"), small["page-5"])
    assert np.array_equal(index.owner("page-5"), small.owner("page-5"))

    query = corpus.queries["q0"]
    hits = index.search(query, k=4)
    scores = np.array([maxsim(query, page) for page in small])
    assert [h.id for h in hits] == [corpus.ids[i] for i in np.argsort(-scores, kind="stable")[:4]]
    assert np.allclose(index.score_all(query), scores, rtol=1e-5)
    odd = index.search(query, k=40, filter="parity = odd and number < 20")
    assert [h.id for h in odd] == [h.id for h in index.search(query, k=40, filter={"parity": "odd", "number": {"lt": 20}})]
    assert len(odd) == 10 and all(int(h.id[5:]) % 2 == 1 for h in odd)
    full = index.search(query, k=4, full=True)
    assert full[0].score == pytest.approx(max(maxsim(query, page) for page in corpus.pages), rel=1e-3)  # kept as f16

    explained = index.explain(query, hits[0].id)
    assert explained["score"] == pytest.approx(hits[0].score, rel=1e-5)
    assert sum(t["score"] for t in explained["tokens"]) == pytest.approx(hits[0].score, rel=1e-5)

    before = marginmerge.Index(tmp_path / "index")
    assert index.delete(["page-0", "page-1"])["deleted"] == 2
    assert "page-0" not in index and "page-0" in before
    assert "page-0" not in before.refresh()
    with pytest.raises(marginmerge.Error):
        index.delete(["page-0"])
    assert index.delete(["page-0"], ignore_missing=True)["missing"] == 1
    with pytest.raises(marginmerge.Error, match="page-2"):
        index.add({"page-2": small["page-2"]}, full=corpus.named())
    assert index.add({"page-2": small["page-9"]}, replace=True, full=corpus.named())["replaced"] == 1
    assert np.array_equal(index.vectors("page-2"), small["page-9"])
    assert index.compact(code="f16")["pages"] == len(small) - 2
    assert index.stats["segments"] == 1 and index.stats["deleted"] == 0 and index.stats["code"] == "f16"
    assert index.verify()["problems"] == []

    victim = max((tmp_path / "index").rglob("*.safetensors"), key=lambda p: p.stat().st_size)
    raw = bytearray(victim.read_bytes())
    raw[-7] ^= 1
    victim.write_bytes(raw)
    assert index.verify()["problems"]


def test_files_are_searched_but_not_changed(corpus, tmp_path):
    path = tmp_path / "small.safetensors"
    marginmerge.compress(corpus.named(), keep=0.2, output=path)
    index = marginmerge.Index(path)
    batch = index.search_batch(corpus.queries, k=3)
    assert batch == [index.search(query, k=3) for query in corpus.queries.values()]
    assert batch == index.search_batch(corpus.queries, k=3, first_pass="bits", candidates=len(index))
    with pytest.raises(ValueError, match="folder"):
        index.add(corpus.named())
    with pytest.raises(ValueError, match="in memory"):
        marginmerge.Index(corpus.named()).delete(["page-0"])


def test_what_makes_no_sense(corpus, tmp_path):
    with pytest.raises(marginmerge.Error) as caught:
        marginmerge.Index(tmp_path / "absent")
    assert caught.value.code == "not_found"
    index = marginmerge.Index(tmp_path / "index", create=True)
    with pytest.raises(ValueError, match="metadata"):
        index.add(corpus.named(), metadata=[{}])
    with pytest.raises(ValueError, match="code|f16"):
        index.add(corpus.named(), code="f64")
    index.add(corpus.named())
    with pytest.raises(ValueError, match="dimension|expected 32"):
        index.search(np.ones((2, 16), dtype=np.float32))
    with pytest.raises(ValueError, match="filter|expected"):
        index.search(corpus.queries["q0"], filter="number ==== 3")
    with pytest.raises(KeyError):
        index.vectors("nobody")
    with pytest.raises(ValueError, match="text"):
        index.delete("page-0")
