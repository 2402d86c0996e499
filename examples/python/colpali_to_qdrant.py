"""Pages from colpali-engine, pooled by marginmerge, into Qdrant.

    python colpali_to_qdrant.py --images scans/ --url http://localhost:6333 --collection pages --pool-factor 20
    python colpali_to_qdrant.py --embeddings pages.pt --model model.safetensors --collection pages

--images encodes with colpali-engine (and needs it, and a GPU to be quick); --embeddings takes what was encoded before:
a .pt with a list of tensors, .npz, or any other file `marginmerge import` reads. Qdrant is spoken to over its REST API.
Scores are inner products ("Dot"): the norms of pooled vectors carry meaning that cosine would throw away.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
import urllib.error
import urllib.request

import marginmerge

FLOATS_PER_POINT = 1_048_576  # what Qdrant takes


def encode(folder: pathlib.Path, checkpoint: str, batch: int = 4) -> dict:
    import torch
    from colpali_engine.models import ColQwen2, ColQwen2Processor
    from PIL import Image

    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    model = ColQwen2.from_pretrained(checkpoint, torch_dtype=torch.bfloat16, device_map=device).eval()
    processor = ColQwen2Processor.from_pretrained(checkpoint)
    files = sorted(p for p in folder.iterdir() if p.suffix.lower() in {".png", ".jpg", ".jpeg", ".webp"})
    pages = {}
    for first in range(0, len(files), batch):
        part = files[first : first + batch]
        inputs = processor.process_images([Image.open(p).convert("RGB") for p in part]).to(device)
        with torch.no_grad():
            pages.update(zip([p.name for p in part], model(**inputs).cpu()))
    return pages


def load(path: pathlib.Path) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        pages = marginmerge.import_vectors(path, pathlib.Path(folder) / "pages.safetensors")
    return dict(zip(pages.ids, pages))


def pool(pages: dict, pooler: marginmerge.MarginMergePooler) -> dict:
    """The one line that a program with HierarchicalTokenPooler would change is where `pooler` is made."""
    names = list(pages)
    batch = [page[(page != 0).any(1)] for page in pages.values()]  # the encoder pads with zeros
    return dict(zip(names, pooler.pool_embeddings(batch)))


class Qdrant:
    def __init__(self, url: str, collection: str) -> None:
        self.base = f"{url.rstrip('/')}/collections/{collection}"

    def call(self, method: str, path: str, body: dict) -> dict:
        request = urllib.request.Request(
            self.base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise SystemExit(f"{self.base}{path}: {error.code} {error.read().decode(errors='replace')[:300]}") from None
        except OSError as error:
            raise SystemExit(f"{self.base}: cannot reach Qdrant: {error}") from None

    def create(self, dim: int) -> None:
        multivector = {"comparator": "max_sim"}
        self.call("PUT", "", {"vectors": {"size": dim, "distance": "Dot", "multivector_config": multivector}})

    def upload(self, pages: dict, batch: int = 64) -> None:
        points = []
        for number, (name, vectors) in enumerate(pages.items()):
            if vectors.shape[0] * vectors.shape[1] > FLOATS_PER_POINT:
                raise SystemExit(f"{name}: {vectors.shape[0]} vectors are more than Qdrant takes; raise the pool factor")
            points.append({"id": number, "vector": vectors.tolist(), "payload": {"page": name}})
            if len(points) == batch or number + 1 == len(pages):
                self.call("PUT", "/points?wait=true", {"points": points})
                points = []

    def search(self, query, k: int = 10) -> list[tuple[str, float]]:
        answer = self.call("POST", "/points/query", {"query": query.tolist(), "limit": k, "with_payload": True})
        return [(point["payload"]["page"], point["score"]) for point in answer["result"]["points"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--images", type=pathlib.Path)
    source.add_argument("--embeddings", type=pathlib.Path)
    parser.add_argument("--checkpoint", default="vidore/colqwen2-v1.0")
    parser.add_argument("--model", help="from marginmerge fit; without one pages are clustered by k-means")
    parser.add_argument("--pool-factor", type=float, default=20)
    parser.add_argument("--url", default="http://localhost:6333")
    parser.add_argument("--collection", default="pages")
    options = parser.parse_args()

    pages = encode(options.images, options.checkpoint) if options.images else load(options.embeddings)
    pooler = marginmerge.MarginMergePooler(pool_factor=options.pool_factor, model=options.model)
    small = pool(pages, pooler)
    before, after = (sum(len(p) for p in some.values()) for some in (pages, small))
    print(f"{len(small)} pages: {before} -> {after} vectors")
    database = Qdrant(options.url, options.collection)
    database.create(next(iter(small.values())).shape[1])
    database.upload(small)
    print(f"{options.url}: collection '{options.collection}' holds {len(small)} pages")


if __name__ == "__main__":
    main()
