"""A sketch on disk: what was written comes back to the last bit, and everything else is refused."""

import contextlib
import io
import json
import struct
import tempfile
import tracemalloc
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_registry import NOTIONS
from test_sketch_inside import binary, made, matrix, same

import calibrant
from calibrant import Sketch
from calibrant.score_data import COARSE
from calibrant.sketch import file as sketch_file
from weighing import weighing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sketches")


@cache
def content(notion="binary", *, weighted=False):
    """A file's bytes."""
    weight = np.linspace(0.5, 3, 9) if weighted else None
    with tempfile.TemporaryDirectory() as place:
        made(notion, *matrix(9, classes=3), sample_weight=weight).save(f"{place}/some.sketch")
        return Path(place, "some.sketch").read_bytes()


def loaded(folder, data):
    path = folder / "some.sketch"
    path.write_bytes(data)
    return Sketch.load(path)


def refused(folder, data, reason=" must "):
    """One clear line: the file, and the rule that it breaks."""
    with pytest.raises(calibrant.InputError, match=reason) as caught:
        loaded(folder, data)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'some.sketch'}: ")
    assert "\n" not in text


def taken_apart(data):
    """The header, and the arrays by name."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        members = {name: archive[name] for name in archive.files}
    return json.loads(members.pop(sketch_file.HEADER)), members


def put_together(header, arrays, *, method=zipfile.ZIP_DEFLATED):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(sketch_file.HEADER, header)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                if isinstance(array, bytes):
                    member.write(array)
                else:
                    np.lib.format.write_array(member, np.asarray(array))
    return buffer.getvalue()


def with_rows(header, **changes):
    return header | {"rows": header["rows"] | changes}


LABELS = [
    (["a", "b", "c"], "text"),
    (["", "\u00e9\udc80\n", '"\\'], "any text"),
    ([10, -3, 2**64], "integers"),
    ([0.5, 1.5, -2.25e-300], "floats"),
    (np.array([1, 5, 9], dtype=np.int16), "numpy"),
    (np.array(["x", "y", "z"]), "numpy text"),
    ([(1, "a"), (2, None), ("b",)], "tuples"),
]


@pytest.mark.parametrize("labels", [pytest.param(labels, id=name) for labels, name in LABELS])
@pytest.mark.parametrize("notion", NOTIONS)
def test_labels_come_back_as_they_were(folder, labels, notion):
    y, p = matrix(20, classes=3)
    own = list(labels.tolist() if isinstance(labels, np.ndarray) else labels)
    truth = np.empty(20, dtype=object)
    truth[:] = [own[k] for k in y]
    options = {"pos_label": own[1]} if notion == "binary" else {}
    sketch = Sketch(notion, labels=labels, **options).update(truth, p)
    sketch.save(folder / "labels.sketch")
    again = Sketch.load(folder / "labels.sketch")
    same(sketch, again)
    same(sketch.update(truth, p), again.update(truth, p))


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("weights", ["none", "counts", "floats", "extreme"])
@pytest.mark.parametrize("kind", ["vector", "pair", "three", "saturated", "single", "many"])
def test_a_sketch_comes_back_to_the_last_bit(folder, kind, weights, notion):
    rng = np.random.default_rng(3)
    n = 1 if kind == "single" else 60
    if kind == "many":
        y, p = matrix(n, classes=30)
    elif kind == "three":
        y, p = matrix(n, classes=3)
    else:
        y, p = binary(n)
        if kind == "saturated":
            p = np.where(
                rng.random(n) < 0.5, 10.0 ** -rng.uniform(0, 320, n), 1 - 10.0 ** -rng.uniform(0, 17, n)
            )
            p[:4] = 0, 1, 5e-324, 1 - 2**-53
        p = np.stack([1 - p, p], axis=1) if kind == "pair" else p
    weight = {"none": None, "counts": rng.integers(1, 9, n), "floats": rng.random(n) + 0.01}.get(weights)
    if weights == "extreme":
        weight = 10.0 ** rng.uniform(-100, 100, n)
    sketch = made(notion, y, p, **weighing(weight))
    sketch.save(folder / "bits.sketch")
    again = Sketch.load(folder / "bits.sketch")
    same(sketch, again)
    assert again.ece(estimator="uniform:10") == sketch.ece(estimator="uniform:10")
    same(sketch + again, again + sketch)
    same(again.update(y, p, **weighing(weight)), sketch.update(y, p, **weighing(weight)))


def test_an_empty_sketch_comes_back_with_what_it_was_told(folder):
    for sketch in (
        Sketch(),
        Sketch("confidence", n_classes=3),
        Sketch("binary", labels=["a", "b"], pos_label="b"),
    ):
        sketch.save(folder / "empty.sketch")
        again = Sketch.load(folder / "empty.sketch")
        assert again.digest == sketch.digest
        assert (again._given, again._n_classes, again.notion) == (
            sketch._given,
            sketch._n_classes,
            sketch.notion,
        )
        with pytest.raises(ValueError, match="the sketch is empty"):
            again.ece()
    assert again.update(["a", "b"], [0.2, 0.9]).n == 2


def test_other_archives_are_refused(folder):
    np.savez(folder / "rows.npz", y_true=[0, 1], y_prob=[0.1, 0.9])
    refused(folder, (folder / "rows.npz").read_bytes(), "a file of another kind")
    header, arrays = taken_apart(content())
    refused(folder, put_together(header, {}), "damaged")
    refused(folder, put_together(header, {name: arrays[name] for name in ("held", "sums")}), "damaged")
    refused(folder, put_together(header, arrays, method=zipfile.ZIP_STORED), "compressed by deflate")
    refused(folder, put_together(header, arrays, method=zipfile.ZIP_LZMA), "compressed by deflate")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_refused(folder, data, begun):
    refused(folder, content()[: 64 * begun] + data)
    refused(folder, content()[:64] + data + content()[-22:])
    refused(folder, put_together(data, taken_apart(content())[1]), "header must be")


def answers(sketch):
    """Whatever a file says, what it says must make sense."""
    assert 0 <= sketch.ece(estimator="uniform:10") <= 1
    assert np.isfinite(sketch.n)
    assert sketch.n > 0
    for residuals in sketch._task.residuals:
        assert np.all(np.isfinite(residuals.spread) & (residuals.spread > 0))


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(NOTIONS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=3),
    st.sampled_from(("file", "header", "held", "sums", "squares")),
    st.booleans(),
)
def test_flipped_bytes_are_refused_or_harmless(folder, notion, changes, where, weighted):
    data = content(notion, weighted=weighted)
    header, arrays = taken_apart(data)
    if where == "file":
        changed = bytearray(data)
    else:
        changed = bytearray(json.dumps(header).encode() if where == "header" else arrays[where].tobytes())
    for at, change in changes:
        changed[at % len(changed)] ^= change
    if where == "file":
        forged = bytes(changed)
    elif where == "header":
        forged = put_together(bytes(changed), arrays)
    else:
        own = arrays[where]
        arrays[where] = np.frombuffer(bytes(changed), own.dtype).reshape(own.shape)
        forged = put_together(header, arrays)
    found = None
    with contextlib.suppress(calibrant.InputError):
        found = loaded(folder, forged)
    refused(folder, forged) if found is None else answers(found)


def test_what_is_put_together_again_is_the_same(folder):
    for notion in NOTIONS:
        for weighted in (False, True):
            data = content(notion, weighted=weighted)
            header, arrays = taken_apart(data)
            assert header["rows"]["weighted"] == weighted
            assert arrays["sums"].shape[0] == 5 + weighted
            assert loaded(folder, put_together(header, arrays)).digest == loaded(folder, data).digest


def put(place, value):
    return lambda sums: sums.__setitem__(place, value)


SUMS = {
    "negative weight": (put((0, 0), -1.0), "sums must not be negative"),
    "no weight": (put((0, 0), 0.0), "sums must not be negative"),
    "negative score": (put((1, 0), -1e-9), "sums must not be negative"),
    "negative outcome": (put((2, 0), -1.0), "sums must not be negative"),
    "negative both": (put((3, 0), -1e-9), "sums must not be negative"),
    "negative square": (put((4, 0), -1e-9), "sums must not be negative"),
    "not a number": (put((1, 0), np.nan), "sums must be finite"),
    "infinite": (put((0, 0), np.inf), "sums must be finite"),
    "outcomes": (lambda sums: put((2, 0), sums[0, 0] + 1)(sums), "no more outcomes than rows"),
    "outside": (put((1, 0), 0.5), "scores that lie in their cells"),
    "outcomes outside": (put((3, 0), 0.5), "scores that lie in their cells"),
    "square": (put((4, 0), 0.5), "squared scores that fit the scores"),
    "no square": (put((4, slice(None)), 0.0), "squared scores that fit the scores"),
    "weight": (lambda sums: sums.__imul__(2), "hold the weight of all rows"),
}


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("damage", SUMS)
def test_sums_that_no_rows_have_are_refused(folder, damage, notion):
    header, arrays = taken_apart(content(notion))
    change, reason = SUMS[damage]
    change(arrays["sums"])
    refused(folder, put_together(header, arrays), reason)


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("squares", [1e9, 1e-3, np.nan, np.inf, -1.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_squares_that_no_rows_have_are_refused(folder, squares, notion, weighted):
    header, arrays = taken_apart(content(notion, weighted=weighted))
    arrays["squares"][0] = squares
    refused(folder, put_together(header, arrays), "squares must fit the weights")


SQUARES = {
    "negative": (put((5, 0), -1.0), "sums must not be negative"),
    "none": (put((5, 0), 0.0), "squared weights above 0"),
    "not a number": (put((5, 0), np.nan), "sums must be finite"),
    "infinite": (put((5, 0), np.inf), "sums must be finite"),
    "twice": (lambda sums: sums[5].__imul__(2), "squares must be the sums of those of the cells"),
    "small": (lambda sums: put((5, slice(2)), [1e-9, sums[5, :2].sum()])(sums), "fit in every cell"),
    "tiny": (lambda sums: put((5, slice(2)), [5e-324, sums[5, :2].sum()])(sums), "fit in every cell"),
}


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("damage", SQUARES)
def test_squared_weights_that_no_rows_have_are_refused(folder, damage, notion):
    header, arrays = taken_apart(content(notion, weighted=True))
    change, reason = SQUARES[damage]
    change(arrays["sums"])
    refused(folder, put_together(header, arrays), reason)


def test_only_counts_may_leave_their_squares_out(folder):
    header, arrays = taken_apart(content(weighted=True))
    refused(folder, put_together(with_rows(header, weighted=False), arrays), "sums.npy must")
    arrays["sums"] = arrays["sums"][:5]
    refused(folder, put_together(header, arrays), "sums.npy must")
    refused(folder, put_together(with_rows(header, weighted=False), arrays), "weights of counted rows")
    plain, arrays = taken_apart(content())
    refused(folder, put_together(with_rows(plain, weighted=True), arrays), "sums.npy must")


@pytest.mark.parametrize("notion", NOTIONS)
def test_cells_must_be_as_many_as_their_sums(folder, notion):
    header, arrays = taken_apart(content(notion))
    for held in (arrays["held"][:-1], np.append(arrays["held"], 0), arrays["held"].astype("u2")):
        refused(folder, put_together(header, arrays | {"held": held}), "held.npy must")
    more, fewer = arrays["held"].copy(), arrays["held"].copy()
    more[np.argmin(more)] |= 1
    fewer[np.argmax(fewer)] = 0
    for held in (more, fewer, np.zeros_like(more), np.full_like(more, 255)):
        refused(folder, put_together(header, arrays | {"held": held}), "sums.npy must|must hold the weight")
    for name in ("sums", "squares"):
        for array in (arrays[name].astype("f4"), arrays[name].astype(">f8"), arrays[name][..., :-1]):
            refused(folder, put_together(header, arrays | {name: array}), f"{name}.npy must")
    turned = np.asfortranarray(arrays["sums"])
    refused(folder, put_together(header, arrays | {"sums": turned}), "sums.npy must be an array of type")


def test_what_an_array_says_of_itself_is_not_trusted(folder):
    header, arrays = taken_apart(content())
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, arrays["sums"])
    own, shape = buffer.getvalue(), str(arrays["sums"].shape).encode()
    assert loaded(folder, put_together(header, arrays | {"sums": own})).n == 9
    huge = own.replace(shape, shape[:-1] + b"0000)").replace(b" " * 4, b"", 1)
    assert len(huge) == len(own)
    for forged in (huge, own.replace(b"<f8", b"|O8"), own.replace(b"NUMPY", b"PICKL"), own + b"\0", own[8:]):
        refused(folder, put_together(header, arrays | {"sums": forged}), "sums.npy must")


def test_outcomes_must_be_those_of_the_totals(folder):
    for notion in ("classwise", "confidence"):
        header, arrays = taken_apart(content(notion))
        arrays["sums"][2:4] = 0.0
        refused(folder, put_together(header, arrays), "outcomes as the totals say|cells with")


HEADERS = {
    "format": (2, "header.format must be 1, got 2"),
    "notion": ("calibrated", "header.notion must be one of"),
    "n_classes": (10**9, "header.rows.labels must be 1000000000 distinct classes"),
    "given_labels": (7, "header.given_labels must be a list"),
    "given_pos_label": ({}, "header.given_pos_label must be a label"),
    "rows": ([], "header.rows must be a mapping of fields"),
}
ROWS = {
    "labels": (["a", "a", "b"], "header.rows.labels must be 3 distinct classes"),
    "positive": (3, "header.rows.positive must be below 3"),
    "vector": (True, "header.rows.vector must be false"),
    "weighted": (1, "header.rows.weighted must be true or false"),
    "cells": (720, "header.rows.cells must be 14400, got 720"),
    "totals": ({}, "header.rows.totals.rows must be given"),
}
WRONG = (1.5, "x", [], [[[[[[1]]]]]], {"a": 1}, -1, 10**30, [1e999] * 3)
# Values that may have been given.
GIVEN = {"given_labels": ([], [[[[[[1]]]]]]), "given_pos_label": (*WRONG[:4], -1, 10**30)}


@pytest.mark.parametrize("key", HEADERS)
def test_a_header_that_does_not_fit_is_refused(folder, key):
    header, arrays = taken_apart(content("classwise"))
    wrong, reason = HEADERS[key]
    refused(folder, put_together(header | {key: wrong}, arrays), reason)
    for other in WRONG:
        if other not in GIVEN.get(key, ()):
            refused(folder, put_together(header | {key: other}, arrays))
    missing = {k: v for k, v in header.items() if k != key}
    refused(folder, put_together(missing, arrays), f"header.{key} must be given")
    refused(folder, put_together(header | {"more": 1}, arrays), "header.more must be a known field")


@pytest.mark.parametrize("key", ROWS)
def test_a_header_of_rows_that_does_not_fit_is_refused(folder, key):
    header, arrays = taken_apart(content("classwise"))
    wrong, reason = ROWS[key]
    refused(folder, put_together(with_rows(header, **{key: wrong}), arrays), reason)
    for other in WRONG:
        refused(folder, put_together(with_rows(header, **{key: other}), arrays))


def test_a_class_must_be_asked_about(folder):
    header, arrays = taken_apart(content("binary"))
    refused(folder, put_together(with_rows(header, positive=None), arrays), "rows.positive must name")


def test_labels_nested_deeply_are_refused(folder):
    header, arrays = taken_apart(content())
    text = json.dumps(header | {"given_pos_label": "X"}).encode()
    for depth in (300, 600, 990, 5000, 10**6):
        nested = text.replace(b'"X"', b"[" * depth + b"1" + b"]" * depth)
        with contextlib.suppress(calibrant.InputError):
            assert loaded(folder, put_together(nested, arrays)).n == 9


@pytest.mark.parametrize("name", ["rows", "weight", "right", "log_loss", "impossible", "brier"])
def test_totals_that_no_rows_have_are_refused(folder, name):
    header, arrays = taken_apart(content("confidence"))
    totals = header["rows"]["totals"]
    for wrong in (-1, -1.0, 1e9, 0 if name in ("rows", "weight") else -0.5, None, "x", [], 2**70, True):
        refused(folder, put_together(with_rows(header, totals=totals | {name: wrong}), arrays))
    raw = json.dumps(with_rows(header, totals=totals | {name: "X"})).encode()
    for wrong in (b"NaN", b"Infinity", b"1e999", b"9" * 5000):
        refused(folder, put_together(raw.replace(b'"X"', wrong), arrays))
    more = totals | {"renormalised": 10}
    refused(folder, put_together(with_rows(header, totals=more), arrays), "at most the number of rows, 9")


def test_headers_that_are_no_json_are_refused(folder):
    _, arrays = taken_apart(content())
    for header in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, '{"é":1}'.encode(), b"1e5"):
        refused(folder, put_together(header, arrays), "header")


def bombs():
    """Small files that declare, or inflate to, a great deal."""
    header, arrays = taken_apart(content("classwise"))
    for classes in (50_000, 100_000):
        many = with_rows(header, labels=list(range(classes)), cells=720) | {"n_classes": classes}
        yield put_together(many, arrays)
        held = np.full(-(-classes * COARSE.size // 8), 255, "u1")
        yield put_together(many, arrays | {"held": held})
    # Twenty million cells whose sums are all the same.
    count, classes = 8_000_000, 50_000
    held = np.packbits(np.arange(classes * COARSE.size) < count)
    many = with_rows(header, labels=list(range(classes)), cells=720) | {"n_classes": classes}
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.zeros((5, 0)))
    start = buffer.getvalue().replace(b"(5, 0), }" + b" " * 6, f"(5, {count}), }}".encode())
    yield put_together(many, {"held": held, "sums": start + bytes(40 * count), "squares": np.ones(classes)})
    # Members that inflate to more than the directory says, and directories that say too much.
    data = put_together(header, arrays | {"sums": bytes(1 << 27)})
    yield data
    size = struct.pack("<L", 1 << 27)
    assert size in data
    for claimed in (arrays["sums"].nbytes + 128, 2**32 - 2):
        yield data.replace(size, struct.pack("<L", claimed))
    yield put_together(b" " * (1 << 25), arrays)
    for length in (1 << 20, 2**32 - 1):
        yield content()[:-10] + struct.pack("<LLH", length, 0, 0)


def test_no_file_takes_much_memory(folder):
    for data in bombs():
        path = folder / "some.sketch"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(calibrant.InputError):
                Sketch.load(path)
            assert tracemalloc.get_traced_memory()[1] < 20 * len(data) + 40e6
        finally:
            tracemalloc.stop()


def test_a_sketch_too_large_to_be_read_is_not_written(folder, monkeypatch):
    sketch, data = made("classwise", *matrix(10)), content("classwise")
    monkeypatch.setattr(sketch_file, "MOST_SUMS", 1000)
    with pytest.raises(
        calibrant.InputError, match=r"at most 1000 bytes in a file, got \d+ bytes for 4 classes"
    ):
        sketch.save(folder / "large.sketch")
    refused(folder, data, "header.n_classes must have sums of at most 1000 bytes")
    monkeypatch.undo()
    monkeypatch.setattr(sketch_file, "MOST_HEADER", 100)
    with pytest.raises(calibrant.InputError, match="labels must take at most 100 bytes"):
        sketch.save(folder / "large.sketch")
    refused(folder, data, "header must take at most 100 bytes")
    assert not (folder / "large.sketch").exists()
