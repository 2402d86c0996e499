"""Sets: what is borrowed, what is copied, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import marginmerge


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def test_packed_array_is_borrowed(corpus):
    packed = np.concatenate(corpus.pages)
    offsets = np.cumsum([0] + [len(p) for p in corpus.pages])
    pages = marginmerge.vectors(packed, corpus.ids, offsets=offsets)
    assert len(pages) == len(corpus.pages) and pages.dim == packed.shape[1] and pages.dtype == "F32"
    assert address(pages.vectors) == address(packed)
    assert np.array_equal(pages["page-3"], corpus.pages[3]) and np.array_equal(pages[-1], corpus.pages[-1])
    assert not pages[0].flags.writeable
    assert np.array_equal(pages.offsets, offsets)


def test_slices_of_one_array_are_borrowed(corpus):
    packed = np.concatenate(corpus.pages[:3]).astype(np.float16)
    ends = np.cumsum([len(p) for p in corpus.pages[:3]])
    pages = marginmerge.vectors(np.split(packed, ends[:-1]))
    assert pages.dtype == "F16" and address(pages.vectors) == address(packed)


def test_separate_arrays_are_packed(corpus):
    pages = marginmerge.vectors(corpus.pages, corpus.ids)
    assert pages.ids == corpus.ids and "page-7" in pages and "nobody" not in pages
    for array, page in zip(corpus.pages, pages):
        assert np.array_equal(array, page)


def test_the_set_keeps_its_arrays_alive():
    packed = np.arange(64, dtype=np.float32).reshape(4, 16)
    expected = packed.copy()
    pages = marginmerge.vectors(packed, offsets=[0, 1, 4])
    del packed
    assert np.array_equal(pages.vectors, expected)
    view = pages[1]
    del pages
    assert np.array_equal(view, expected[1:])


@pytest.mark.parametrize("change", [lambda p: p.astype(np.float64), lambda p: np.asfortranarray(p), lambda p: p[:, ::-1]])
def test_other_layouts_are_converted(corpus, change):
    given = change(corpus.pages[0])
    assert np.array_equal(marginmerge.vectors([given])[0], np.asarray(given, dtype=np.float32))


def test_unaligned_rows(corpus):
    raw = np.zeros(corpus.pages[0].size + 1, dtype=np.float32)
    raw[1:] = corpus.pages[0].ravel()
    page = raw[1:].reshape(corpus.pages[0].shape)
    odd = np.frombuffer(b"x" + corpus.pages[0].tobytes(), dtype=np.uint8)[1:].view(np.float32).reshape(page.shape)
    expected = marginmerge.compress([corpus.pages[0]], keep=0.2)
    for given in (page, odd):
        assert np.array_equal(marginmerge.compress([given], keep=0.2)[0], expected[0])


def test_padding_is_left_out(corpus):
    rows = max(len(p) for p in corpus.pages)
    padded = np.zeros((len(corpus.pages), rows, corpus.pages[0].shape[1]), dtype=np.float32)
    for out, page in zip(padded, corpus.pages):
        out[: len(page)] = page
    pages = marginmerge.vectors(padded)
    assert [len(p) for p in pages] == [len(p) for p in corpus.pages]
    mask = np.zeros(padded.shape[:2], dtype=bool)
    mask[:, :5] = True
    assert all(len(p) == 5 for p in marginmerge.vectors(padded, mask=mask))
    whole = np.ascontiguousarray(padded[:, :20])
    assert address(marginmerge.vectors(whole).vectors) == address(whole)


def test_buffers_and_memory_views():
    pages = marginmerge.vectors([memoryview(np.ones((3, 16), dtype=np.float32))])
    assert np.array_equal(pages[0], np.ones((3, 16)))


def test_files_round_trip(corpus, tmp_path):
    path = tmp_path / "pages.safetensors"
    grids = [(3, 10)] + [(0, 0)] * (len(corpus.pages) - 1)
    marginmerge.vectors(corpus.named(), grids=grids).save(path, "f32")
    again = marginmerge.vectors(path)
    assert again.ids == corpus.ids and again.grid("page-0") == (3, 10)
    assert all(np.array_equal(a, b) for a, b in zip(again, corpus.pages))
    assert again.metadata["schema"] == "marginmerge.multivector"


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: marginmerge.vectors([]), "at least one document"),
        (lambda: marginmerge.vectors([np.ones(3, "f4")]), "document 0: expected an array of 2 dimensions"),
        (lambda: marginmerge.vectors([np.ones((2, 16), "f4"), np.ones((2, 17), "f4")]), "document 1: expected 16"),
        (lambda: marginmerge.vectors([np.ones((2, 16), "c8")]), "expected numbers"),
        (lambda: marginmerge.vectors(np.ones((2, 16), "f4")), "needs offsets"),
        (lambda: marginmerge.vectors(np.ones((2, 16), "f4"), offsets=[0, 3]), "offsets: expected 2"),
        (lambda: marginmerge.vectors(np.ones((2, 16), "f4"), offsets=[0, 2, 1, 2]), "ascending"),
        (lambda: marginmerge.vectors([np.ones((2, 16), "f4")] * 2, ["a", "a"]), "unique"),
        (lambda: marginmerge.vectors([np.ones((2, 16), "f4")], ["a", "b"]), "ids: expected 1"),
        (lambda: marginmerge.vectors([np.ones((2, 16), "f4")], ["a\nb"]), "line breaks"),
        (lambda: marginmerge.vectors(np.ones((2, 3, 16), "f4"), mask=np.ones((2, 4))), "mask: expected 2 x 3"),
        (lambda: marginmerge.vectors(7), "expected a file"),
    ],
)
def test_what_makes_no_sense(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        make()
    assert isinstance(caught.value, marginmerge.Error) and caught.value.code == "invalid_argument"


def test_missing_and_broken_files(tmp_path):
    with pytest.raises(marginmerge.Error) as caught:
        marginmerge.vectors(tmp_path / "absent.safetensors")
    assert caught.value.code == "not_found"
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 40)
    with pytest.raises(marginmerge.Error) as caught:
        marginmerge.vectors(tmp_path / "broken.safetensors")
    assert caught.value.code == "corrupt" and "broken.safetensors" in str(caught.value)
    assert not isinstance(caught.value, ValueError)


def test_keys():
    pages = marginmerge.vectors([np.ones((2, 16), "f4")])
    with pytest.raises(KeyError):
        pages["nobody"]
    with pytest.raises(IndexError):
        pages[1]
    with pytest.raises(ValueError, match="compressed"):
        pages.owner(0)
