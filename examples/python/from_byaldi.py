"""A byaldi index to ours: smaller, searched exactly, and an honest figure of what was lost.

    python from_byaldi.py .byaldi/my_index -o my_index.marginmerge [--keep 0.05] [--model model.safetensors]

byaldi keeps an index as a folder: embeddings/embeddings_N.pt (lists of page tensors, numbered by their first page), and
gzipped JSON that says which document and page each of them is. Nothing in the .pt files is executed: they are read by
marginmerge's own reader, which constructs only tensors, lists and numbers; torch is not needed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import tempfile

import marginmerge


def read_json(path: pathlib.Path) -> dict:
    if not path.exists():
        return {}
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def read_folder(folder: pathlib.Path, output: pathlib.Path):
    """Writes all pages to one multi-vector file; returns it and each page's metadata."""
    chunks = sorted((folder / "embeddings").glob("embeddings_*.pt"), key=lambda p: int(p.stem.split("_")[1]))
    if not chunks:
        raise SystemExit(f"{folder}: expected embeddings/embeddings_0.pt of a byaldi index, found none")
    places = read_json(folder / "embed_id_to_doc_id.json.gz")
    names = read_json(folder / "doc_ids_to_file_names.json.gz")
    extra = read_json(folder / "metadata.json.gz")
    pages = []
    for position in range(len(places)):
        place = places[str(position)]
        document = str(place["doc_id"])
        source = names.get(document, f"document {document}")
        pages.append({**extra.get(document, {}), "doc_id": place["doc_id"], "page": place["page_id"], "source": source})
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as ids:
        ids.write("".join(f"{pathlib.Path(p['source']).name}#{p['page']} ({p['doc_id']})\n" for p in pages))
        ids.flush()
        vectors = marginmerge.import_vectors(chunks, output, ids=ids.name if pages else None)
    return vectors, pages or None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, help="the index folder to make")
    parser.add_argument("--model", help="from marginmerge fit")
    parser.add_argument("--keep", type=float, default=0.05)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        pages, metadata = read_folder(options.folder, pathlib.Path(scratch) / "pages.safetensors")
        small = marginmerge.compress(pages, options.model, keep=options.keep, dtype="f16")
        index = marginmerge.Index(options.output, create=True)
        index.add(small, metadata=metadata)
        # No queries at hand: sixteen patches of each of some pages stand for one, and the full index is the judge.
        some = range(0, len(pages), max(1, len(pages) // 100))
        queries = {f"like {pages.ids[i]}": pages[i][:: max(1, len(pages[i]) // 16)][:16] for i in some}
        figures = marginmerge.evaluate(pages, {"compressed": index}, queries)["indexes"][0]
        print(f"{options.output}: {len(index)} pages, {len(pages.vectors)} -> {len(small.vectors)} vectors, "
              f"{pages.vectors.nbytes / small.vectors.nbytes:.1f} times smaller")  # fmt: skip
        print(f"  on {len(queries)} pseudo-queries the best page stays the same for {100 * figures['overlap_1']:.1f}%, "
              f"{100 * figures['overlap_top']:.1f}% of the first ten stay")  # fmt: skip


if __name__ == "__main__":
    main()
