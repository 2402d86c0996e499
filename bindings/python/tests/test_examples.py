"""The examples, run as programs. Qdrant is a stand-in that does what its documentation says."""

from __future__ import annotations

import gzip
import http.server
import json
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import maxsim

import marginmerge

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python"


def run(name, *arguments):
    done = subprocess.run([sys.executable, EXAMPLES / name, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


class StandIn(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_PUT(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/collections/pages":
            self.server.settings = body
        elif self.path == "/collections/pages/points?wait=true":
            self.server.points += body["points"]
        else:
            return self.answer(404, {"status": {"error": f"Not found: {self.path}"}})
        self.answer(200, {"result": True, "status": "ok"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        query = np.array(body["query"], dtype=np.float32)
        scored = [(maxsim(query, np.array(p["vector"])), p) for p in self.server.points]
        scored.sort(key=lambda pair: (-pair[0], pair[1]["id"]))
        points = [{"id": p["id"], "score": s, "payload": p["payload"]} for s, p in scored[: body["limit"]]]
        self.answer(200, {"result": {"points": points}})


@pytest.fixture
def qdrant():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), StandIn)
    server.settings, server.points = None, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server, f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


def test_qdrant(corpus, qdrant, tmp_path, monkeypatch):
    server, url = qdrant
    np.savez(tmp_path / "pages.npz", **corpus.named())
    status, out, err = run("colpali_to_qdrant.py", "--embeddings", tmp_path / "pages.npz", "--pool-factor", 5, "--url", url)
    assert status == 0, err
    assert server.settings["vectors"]["distance"] == "Dot"
    assert server.settings["vectors"]["multivector_config"] == {"comparator": "max_sim"}
    assert len(server.points) == len(corpus.pages)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import colpali_to_qdrant

    small = {p["payload"]["page"]: np.array(p["vector"], dtype=np.float32) for p in server.points}
    expected = marginmerge.search(small, corpus.queries, k=10)
    for name, query in corpus.queries.items():
        found = colpali_to_qdrant.Qdrant(url, "pages").search(query)
        assert [page for page, _ in found] == [hit.id for hit in expected[name]]


def test_qdrant_says_no(corpus, qdrant, tmp_path):
    _, url = qdrant
    np.savez(tmp_path / "pages.npz", **corpus.named())
    arguments = ["--embeddings", tmp_path / "pages.npz", "--collection", "other", "--url"]
    status, _, err = run("colpali_to_qdrant.py", *arguments, url)
    assert status == 1 and "404" in err and "Traceback" not in err
    status, _, err = run("colpali_to_qdrant.py", *arguments, "http://127.0.0.1:9")
    assert status == 1 and "cannot reach" in err and "Traceback" not in err


def test_byaldi(corpus, tmp_path):
    torch = pytest.importorskip("torch")
    folder = tmp_path / "index"
    (folder / "embeddings").mkdir(parents=True)
    tensors = [torch.from_numpy(p).to(torch.bfloat16) for p in corpus.pages]
    for first in (0, 9, 18, 27, 36):  # ten files would sort wrongly as text; the numbers decide
        torch.save(tensors[first : first + 9], folder / "embeddings" / f"embeddings_{first}.pt")
    places = {str(i): {"doc_id": i // 8, "page_id": i % 8 + 1} for i in range(len(tensors))}
    for name, content in {
        "embed_id_to_doc_id": places,
        "doc_ids_to_file_names": {str(d): f"papers/{d}.pdf" for d in range(5)},
        "metadata": {"0": {"year": 2024}},
    }.items():
        with gzip.open(folder / f"{name}.json.gz", "wt") as file:
            json.dump(content, file)
    status, out, err = run("from_byaldi.py", folder, "-o", tmp_path / "out", "--keep", 0.2)
    assert status == 0, err
    index = marginmerge.Index(tmp_path / "out")
    assert len(index) == len(corpus.pages)
    assert index.metadata("0.pdf#3 (0)") == {"year": 2024, "doc_id": 0, "page": 3, "source": "papers/0.pdf"}
    expected = marginmerge.compress([t.to(torch.float16) for t in tensors], keep=0.2, dtype="f16")
    assert np.allclose(index.vectors("4.pdf#8 (4)"), expected[39], atol=2e-3)


def test_own_labels(corpus, tmp_path):
    marginmerge.vectors(corpus.named()).save(tmp_path / "docs.safetensors")
    marginmerge.vectors(corpus.queries).save(tmp_path / "queries.safetensors")
    (tmp_path / "labels.tsv").write_text("".join(f"{q}\t{d}\n" for q, ds in corpus.qrels.items() for d in ds))
    status, out, err = run("own_labels.py", "--docs", tmp_path / "docs.safetensors", "--queries",
                           tmp_path / "queries.safetensors", "--labels", tmp_path / "labels.tsv", "--preset", "fixed",
                           "--keep", 0.1, 0.5)  # fmt: skip
    assert status == 0, err
    assert "50% ward" in out and "smallest within" in out or "none is certain" in out
