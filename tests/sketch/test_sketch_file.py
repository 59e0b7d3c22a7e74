"""A sketch on disk: what was written comes back to the last bit, and everything else is refused."""

import contextlib
import copy
import hashlib
import itertools
import json
import math
import os
import struct
import tempfile
import tracemalloc
import zlib
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_registry import NOTIONS
from test_sketch import binary, made, matrix, same

from calibrant import Sketch
from calibrant.evidence import FINE
from calibrant.sketch import file as sketch_file
from weighing import weighing


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("sketches")


@cache
def content(notion="class", *, weighted=False):
    """A file's bytes."""
    weight = np.linspace(0.5, 3, 9) if weighted else None
    with tempfile.TemporaryDirectory() as place:
        made(notion, *matrix(9, classes=3), sample_weight=weight).save(f"{place}/some.sketch")
        return Path(place, "some.sketch").read_bytes()


def loaded(folder, data):
    path = folder / "some.sketch"
    path.write_bytes(data)
    return Sketch.load(path)


def refused(folder, data, reason="cannot be read as a sketch"):
    """One clear line: the file, and what is wrong with it."""
    with pytest.raises(ValueError, match=reason) as caught:
        loaded(folder, data)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'some.sketch'} cannot be read as a sketch: ")
    assert "\n" not in text


def taken_apart(data):
    _, _, header, body = struct.unpack("<16sIIQ", data[:32])
    return json.loads(data[32 : 32 + header]), zlib.decompress(data[32 + header : 32 + header + body])


def put_together(header, body, *, version=2, squeezed=None):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    squeezed = zlib.compress(body) if squeezed is None else squeezed
    return signed(
        struct.pack("<16sIIQ", b"calibrant sketch", version, len(header), len(squeezed)) + header + squeezed
    )


def signed(data):
    return data + hashlib.sha256(data).digest()


class Cell:
    """The first problem of a body, to be changed."""

    def __init__(self, body, sums=5):
        self.count, self.squares = struct.unpack("<Id", body[:12])
        end = 12 + (4 + 8 * sums) * self.count
        self.gaps = (
            np.frombuffer(body[12 : 12 + 4 * self.count], "u1").reshape(4, -1).T.copy().view("<u4").ravel()
        )
        self.sums = np.frombuffer(body[12 + 4 * self.count : end], "u1").reshape(8, -1).T.copy().view("<f8")
        self.sums, self.rest = self.sums.reshape(sums, self.count), body[end:]

    def body(self):
        planes = [a.reshape(-1, 1).view("u1").T.tobytes() for a in (self.gaps.copy(), self.sums.copy())]
        return struct.pack("<Id", self.count, self.squares) + b"".join(planes) + self.rest


LABELS = [
    (["a", "b", "c"], "text"),
    (["", "\u00e9\udc80\n", '"\\'], "any text"),
    ([10, -3, 2**63], "integers"),
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
    options = {"pos_label": own[1]} if notion == "class" else {}
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


@pytest.mark.usefixtures("few_rulers")
def test_saved_sketches_give_the_same_answers(folder):
    y, p = matrix(80, classes=3)
    for notion in NOTIONS:
        sketch = made(notion, y, p)
        sketch.save(folder / "answers.sketch")
        again = Sketch.load(folder / "answers.sketch")
        assert again.estimate(rng=0) == sketch.estimate(rng=0)
    assert again.assess(rng=0).to_json() == sketch.assess(rng=0).to_json()


def test_an_empty_sketch_comes_back_with_what_it_was_told(folder):
    for sketch in (
        Sketch(),
        Sketch("confidence", n_classes=3),
        Sketch("class", labels=["a", "b"], pos_label="b"),
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


def test_a_digest_is_of_the_content():
    y, p = binary()
    one = Sketch("class").update(y, p)
    assert one.digest == Sketch("class").update(y, p).digest
    assert one.digest != Sketch("class").update(y, p[::-1]).digest
    assert one.digest != Sketch("confidence").update(y, p).digest


DATES = (date(2026, 5, 1), datetime(2026, 5, 1), np.datetime64("2026-05-01"))
OTHERS = (b"a", Decimal(1), Fraction(1, 2), frozenset([1]), 1j, 2**64, 10**5000, math.inf, (1, b"a"), int)


@pytest.mark.parametrize("label", DATES + OTHERS, ids=lambda label: type(label).__name__)
def test_a_label_that_a_file_cannot_keep_is_refused(folder, label):
    path = folder / "refused.sketch"
    with pytest.raises(ValueError, match=r"^labels in a file must be") as caught:
        Sketch("class", pos_label=label).save(path)
    assert len(str(caught.value)) < 300
    assert not path.exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path, (y, p) = tmp_path / "day.sketch", binary(50)
    sketch = Sketch("class").update(y, p)
    sketch.save(path)
    before = path.read_bytes()
    for name in ("replace", "fsync", "chmod"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
            with pytest.raises(OSError, match="the disk is full"):
                copy.copy(sketch).update(y, p).save(path)
        assert [one.name for one in tmp_path.iterdir()] == ["day.sketch"]
        assert path.read_bytes() == before
    sketch.update(y, p).save(str(path))
    assert Sketch.load(str(path)).n == 100
    with pytest.raises(FileNotFoundError):
        sketch.save(tmp_path / "nowhere" / "day.sketch")
    with pytest.raises(FileNotFoundError):
        Sketch.load(tmp_path / "other.sketch")


@pytest.mark.skipif(os.name == "nt", reason="permissions and links as POSIX has them")
def test_a_file_has_the_usual_permissions_and_links_stay(tmp_path):
    real, link = tmp_path / "real.sketch", tmp_path / "latest.sketch"
    link.symlink_to(real)
    mask = os.umask(0o027)
    try:
        Sketch().save(link)
    finally:
        os.umask(mask)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "it is empty"),
        (b"PK\x03\x04" + bytes(100), "it is a file of another kind"),
        (b"calibrant sketches are fine" + bytes(100), "it has format"),
        (b"calib", "it is cut short, after 5 bytes"),
        (bytes(7), "it is a file of another kind"),
    ],
)
def test_files_of_another_kind_are_refused(folder, data, reason):
    refused(folder, data, reason)


@pytest.mark.parametrize("notion", NOTIONS)
def test_every_truncation_is_refused(folder, notion):
    data = content(notion, weighted=notion == "class")
    for size in range(len(data)):
        refused(folder, data[:size], "cut short" if size else "empty")
    refused(folder, data + b"\0", "goes on after its end")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_refused(folder, data, begun):
    refused(folder, content()[: 32 * begun] + data)
    refused(folder, struct.pack("<16sIIQ", b"calibrant sketch", 2, 0, len(data)) + data)
    body = signed(struct.pack("<16sIIQ", b"calibrant sketch", 2, len(data), 0) + data)
    refused(folder, body)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(NOTIONS), st.integers(0, 10**6), st.integers(1, 255))
def test_a_flipped_byte_is_noticed(folder, notion, where, change):
    data = bytearray(content(notion))
    data[where % len(data)] ^= change
    refused(folder, bytes(data))


def answers(sketch):
    """Whatever a file says, what it says must make sense."""
    assert 0 <= sketch.ece(estimator="uniform:10") <= 1
    assert np.isfinite(sketch.n)
    assert sketch.n > 0
    for residuals in sketch.question.residuals:
        assert np.all(np.isfinite(residuals.spread) & (residuals.spread > 0))


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(NOTIONS),
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1, max_size=3),
    st.sampled_from(("file", "header", "body")),
    st.booleans(),
)
def test_a_flipped_byte_under_a_true_checksum_is_refused_or_harmless(
    folder, notion, changes, where, weighted
):
    data = content(notion, weighted=weighted)
    if where == "file":
        changed = bytearray(data[:-32])
    elif where == "header":
        changed = bytearray(json.dumps(taken_apart(data)[0]).encode())
    else:
        changed = bytearray(taken_apart(data)[1])
    for at, change in changes:
        changed[at % len(changed)] ^= change
    header, body = taken_apart(data)
    if where == "file":
        forged = signed(bytes(changed))
    else:
        forged = put_together(*((bytes(changed), body) if where == "header" else (header, bytes(changed))))
    found = None
    with contextlib.suppress(ValueError):
        found = loaded(folder, forged)
    refused(folder, forged) if found is None else answers(found)


def test_what_is_put_together_again_is_the_same(folder):
    for notion in NOTIONS:
        header, body = taken_apart(content(notion))
        assert loaded(folder, put_together(header, body)).digest == loaded(folder, content(notion)).digest
        assert Cell(body).body() == body
        header, body = taken_apart(content(notion, weighted=True))
        assert header["sums"] == 6
        assert Cell(body, 6).body() == body


SUMS = {
    "negative weight": (lambda c: c.sums.__setitem__((0, 0), -1.0), "must not be negative"),
    "no weight": (lambda c: c.sums.__setitem__((0, 0), 0.0), "must not be negative"),
    "negative score": (lambda c: c.sums.__setitem__((1, 0), -1e-9), "must not be negative"),
    "negative outcome": (lambda c: c.sums.__setitem__((2, 0), -1.0), "must not be negative"),
    "negative both": (lambda c: c.sums.__setitem__((3, 0), -1e-9), "must not be negative"),
    "negative square": (lambda c: c.sums.__setitem__((4, 0), -1e-9), "must not be negative"),
    "not a number": (lambda c: c.sums.__setitem__((1, 0), np.nan), "must be finite"),
    "infinite": (lambda c: c.sums.__setitem__((0, 0), np.inf), "must be finite"),
    "outcomes": (lambda c: c.sums.__setitem__((2, 0), c.sums[0, 0] + 1), "more outcomes than rows"),
    "outside": (lambda c: c.sums.__setitem__((1, 0), 0.5), "must lie in their cells"),
    "outcomes outside": (lambda c: c.sums.__setitem__((3, 0), 0.5), "must lie in their cells"),
    "square": (lambda c: c.sums.__setitem__((4, 0), 0.5), "must fit its scores"),
    "no square": (lambda c: c.sums.__setitem__((4, slice(None)), 0.0), "must fit its scores"),
    "weight": (lambda c: c.sums.__imul__(2), "must hold the weight of all rows"),
    "squares": (lambda c: setattr(c, "squares", 1e9), "squared weights must fit"),
    "no squares": (lambda c: setattr(c, "squares", 1e-3), "squared weights must fit"),
    "nan squares": (lambda c: setattr(c, "squares", np.nan), "must be finite"),
    "unsorted": (lambda c: c.gaps.__setitem__(1, 0), "must be in order"),
    "beyond": (lambda c: c.gaps.__setitem__(-1, FINE.size), "must be in order"),
    "far beyond": (lambda c: c.gaps.__setitem__(slice(None), 2**32 - 1), "must be in order"),
    "many": (lambda c: setattr(c, "count", 2**32 - 1), "must have 1 to 14980 cells, got 4294967295"),
    "none": (lambda c: setattr(c, "count", 0), "must have 1 to 14980 cells, got 0"),
    "too many": (lambda c: setattr(c, "count", 1000), "ends too soon"),
}  # fmt: skip


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("damage", SUMS)
def test_sums_that_no_rows_have_are_refused(folder, damage, notion):
    header, body = taken_apart(content(notion))
    cell, (change, reason) = Cell(body), SUMS[damage]
    change(cell)
    # Where more classes follow, theirs are read instead.
    reason = "damaged|must|too soon" if (damage, notion) == ("too many", "classwise") else reason
    refused(folder, put_together(header, cell.body()), reason)


SQUARES = {
    "negative": (lambda c: c.sums.__setitem__((5, 0), -1.0), "must be above 0"),
    "none": (lambda c: c.sums.__setitem__((5, 0), 0.0), "must be above 0"),
    "not a number": (lambda c: c.sums.__setitem__((5, 0), np.nan), "must be above 0"),
    "infinite": (lambda c: c.sums.__setitem__((5, 0), np.inf), "must be above 0"),
    "twice": (lambda c: c.sums[5].__imul__(2), "must add up"),
    "total": (lambda c: setattr(c, "squares", 1.5 * c.squares), "must add up"),
    "small": (lambda c: c.sums.__setitem__((5, slice(2)), [1e-9, c.sums[5, :2].sum()]), "in every cell"),
    "tiny": (lambda c: c.sums.__setitem__((5, slice(2)), [5e-324, c.sums[5, :2].sum()]), "in every cell"),
}  # fmt: skip


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("damage", SQUARES)
def test_squared_weights_that_no_rows_have_are_refused(folder, damage, notion):
    header, body = taken_apart(content(notion, weighted=True))
    cell, (change, reason) = Cell(body, 6), SQUARES[damage]
    change(cell)
    refused(folder, put_together(header, cell.body()), f"its squared weights {reason}|fit its weights")


def test_only_counts_may_leave_their_squares_out(folder):
    header, body = taken_apart(content(weighted=True))
    cell = Cell(body, 6)
    cell.sums = cell.sums[:5]
    refused(folder, put_together(header | {"sums": 5}, cell.body()), "squared weights must fit its weights")
    for sums in (4, 7, 6.0, None, "6", True):
        refused(folder, put_together(header | {"sums": sums}, body), "must have 5 or 6 sums")
    refused(folder, put_together(header | {"sums": 5}, body))
    plain, body = taken_apart(content())
    refused(folder, put_together(plain | {"sums": 6}, body), "ends too soon")


# Written by format 1: 60 rows, made without chance.
GOLDEN, K = Path(__file__).parents[1] / "golden", np.arange(60)
SCORE, LABEL, WEIGHT = (K * 37 % 60 + 0.3) / 61, (K * 7 % 5 < 2).astype(int), 2.0 ** (K % 7 - 3)


def of_format_1(name):
    data = (GOLDEN / f"format1_{name}.sketch").read_bytes()
    assert struct.unpack("<16sI", data[:20]) == (b"calibrant sketch", 1)
    return Sketch.load(GOLDEN / f"format1_{name}.sketch")


def test_counts_of_format_1_are_read_to_the_last_bit(folder):
    old, new = of_format_1("counts"), Sketch("class").update(LABEL, SCORE, counts=K % 4)
    same(old, new)
    assert old.totals.rows == (K % 4).sum()
    old.save(folder / "new.sketch")
    new.save(folder / "same.sketch")
    assert (folder / "new.sketch").read_bytes() == (folder / "same.sketch").read_bytes()


def test_importance_weights_of_format_1_share_the_sum_of_their_squares(folder):
    matrix = np.stack([SCORE / 2, 1 - SCORE, SCORE / 2], axis=1)
    for name, new in {
        "floats": Sketch("class").update(LABEL, SCORE, sample_weight=WEIGHT),
        "classes": Sketch("classwise").update(K % 3, matrix, sample_weight=WEIGHT),
    }.items():
        old = of_format_1(name)
        for mine, theirs in zip(old.evidence.sums.parts, new.evidence.sums.parts, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(old.evidence.squares, new.evidence.squares)
        share = (WEIGHT**2).sum() / WEIGHT.sum()
        np.testing.assert_allclose(old.evidence.spread, share * old.evidence.sums.w, rtol=1e-14)
        assert old.n == new.n
        for spec in ("uniform:10", "density:0.1", "adaptive"):
            assert old.ece(estimator=spec) == new.ece(estimator=spec)
        assert 0 <= old.estimate(rng=0).p_value <= 1
        # It is written as any other, and goes together with other weights, in whichever order.
        old.save(folder / "new.sketch")
        same(Sketch.load(folder / "new.sketch"), old)
        whole = old.evidence.spread + new.evidence.spread
        for some in itertools.permutations((old, new)):
            np.testing.assert_allclose(sum(some).evidence.spread, whole, rtol=1e-14)
            assert sum(some).evidence.squares == pytest.approx(2 * (WEIGHT**2).sum())


def test_format_1_is_checked_as_it_was(folder):
    data = (GOLDEN / "format1_floats.sketch").read_bytes()
    header, body = taken_apart(data)
    same(loaded(folder, put_together(header, body, version=1)), of_format_1("floats"))
    refused(folder, put_together(header, body), "its header must hold")
    refused(folder, put_together(header | {"sums": 5}, body, version=1), "its header must hold")
    refused(folder, put_together(header | {"sums": 5}, body), "squared weights must fit its weights")
    for change, reason in SUMS.values():
        cell = Cell(body)
        change(cell)
        refused(folder, put_together(header, cell.body(), version=1), reason)


def test_outcomes_must_be_those_of_the_totals(folder):
    for notion in ("classwise", "confidence"):
        header, body = taken_apart(content(notion))
        cell = Cell(body)
        cell.sums[2], cell.sums[3] = 0.0, 0.0
        refused(
            folder, put_together(header, cell.body()), "outcomes must be as many as its totals say|cells with"
        )


HEADERS = {
    "notion": ("calibrated", "its notion must be one of"),
    "labels": (["a", "a", "b"], "as many as its classes, and distinct"),
    "positive": (3, "it asks about no class"),
    "vector": (True, "a vector of scores is about two classes"),
    "n_classes": (10**9, "as many as its classes"),
    "given": ({}, "lacks what was given"),
    "cells": (720, "its cells differ"),
    "sums": (4, "must have 5 or 6 sums"),
    "totals": ({}, "its totals must be rows, weight"),
}


@pytest.mark.parametrize("key", HEADERS)
def test_a_header_that_does_not_fit_is_refused(folder, key):
    header, body = taken_apart(content("classwise"))
    wrong, reason = HEADERS[key]
    refused(folder, put_together(header | {key: wrong}, body), reason)
    for other in (None, 1.5, "x", [], [[[[[[1]]]]]], {"a": 1}, -1, True, 10**30, [1e999] * 3):
        data = put_together(header | {key: other}, body)
        if (key, other) not in (("positive", None), ("positive", True)):
            refused(folder, data)
    refused(folder, put_together({k: v for k, v in header.items() if k != key}, body), "its header must hold")


@pytest.mark.parametrize("name", ["rows", "weight", "right", "log_loss", "impossible", "brier"])
def test_totals_that_no_rows_have_are_refused(folder, name):
    header, body = taken_apart(content("confidence"))
    for wrong in (-1, -1.0, 1e9, 0 if name in ("rows", "weight") else -0.5, None, "x", [], 2**70, True):
        if (name, wrong) != ("rows", 1e9):
            forged = header | {"totals": header["totals"] | {name: wrong}}
            refused(folder, put_together(forged, body))
    raw = json.dumps(header | {"totals": header["totals"] | {name: "X"}}).encode()
    for wrong in (b"NaN", b"Infinity", b"1e999", b"9" * 5000):
        refused(folder, put_together(raw.replace(b'"X"', wrong), body))


def test_headers_that_are_no_json_are_refused(folder):
    _, body = taken_apart(content())
    for header in (b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000, '{"é":1}'.encode(), b"1e5"):
        refused(folder, put_together(header, body), "its header")


def test_later_formats_are_told_apart(folder):
    header, body = taken_apart(content())
    refused(folder, put_together(header, body, version=3), "it has format 3, .* a later calibrant wrote it")
    refused(folder, put_together(header, body, version=0), "it has format 0")


def test_nothing_may_follow_the_body(folder):
    header, body = taken_apart(content())
    refused(folder, put_together(header, body + b"\0"), "goes on after its end")
    refused(folder, put_together(header, b"", squeezed=zlib.compress(body) + b"\0"), "goes on after its end")
    refused(folder, put_together(header, b"", squeezed=zlib.compress(body)[:-1]), "does not end")
    refused(folder, put_together(header, b"", squeezed=zlib.compress(body)[:-9]))
    refused(folder, put_together(header, b"", squeezed=b""), "do not fit into its body|ends too soon")


def bombs():
    """Small files that declare, or inflate to, a great deal."""
    header, body = taken_apart(content("classwise"))
    squeeze = zlib.compressobj()
    zeros = b"".join([squeeze.compress(body[:12]), *(squeeze.compress(bytes(1 << 20)) for _ in range(64))])
    yield put_together(header, b"", squeezed=zeros + squeeze.flush())
    yield put_together(header, b"", squeezed=zlib.compress(body) + bytes(1 << 22))
    for classes in (50_000, 110_000):
        many = {"n_classes": classes, "labels": list(range(classes)), "cells": 720}
        yield put_together(header | many, body)
        if classes > 100_000:
            yield put_together(header | many, b"", squeezed=zlib.compress(body) + os.urandom(1 << 15))
    for header_size, body_size in ((2**32 - 1, 0), (0, 2**64 - 1), (2**31, 2**63)):
        yield signed(struct.pack("<16sIIQ", b"calibrant sketch", 2, header_size, body_size))


def test_no_file_takes_much_memory(folder):
    for data in bombs():
        path = folder / "some.sketch"
        path.write_bytes(data)
        tracemalloc.start()
        try:
            with pytest.raises(ValueError, match="cannot be read as a sketch"):
                Sketch.load(path)
            assert tracemalloc.get_traced_memory()[1] < 20 * len(data) + 4e6
        finally:
            tracemalloc.stop()


@pytest.mark.skipif(os.name == "nt", reason="sparse files as POSIX has them")
def test_a_file_with_an_enormous_hole_is_refused_at_once(folder):
    path = folder / "hole.sketch"
    path.write_bytes(struct.pack("<16sIIQ", b"calibrant sketch", 2, 2**32 - 1, 2**40))
    os.truncate(path, 64 + 2**32 - 1 + 2**40) if hasattr(os, "SEEK_HOLE") else None
    with pytest.raises(ValueError, match=r"its header must take at most|cut short"):
        Sketch.load(path)
    path.unlink()


def test_a_sketch_too_large_to_be_read_is_not_written(folder, monkeypatch):
    sketch = made("classwise", *matrix(10))
    monkeypatch.setattr(sketch_file, "MOST_SUMS", 1000)
    with pytest.raises(ValueError, match="a sketch of 4 classes is too large for a file"):
        sketch.save(folder / "large.sketch")
    with pytest.raises(ValueError, match="3 classes take too much memory"):
        loaded(folder, content("classwise"))
    monkeypatch.undo()
    monkeypatch.setattr(sketch_file, "MOST_HEADER", 100)
    with pytest.raises(ValueError, match="labels must take at most 100 bytes"):
        sketch.save(folder / "large.sketch")


def test_files_are_small(folder):
    path = folder / "small.sketch"
    for n, most in ((10, 1_000), (1000, 20_000), (100_000, 350_000)):
        Sketch("class").update(*binary(n)).save(path)
        assert path.stat().st_size < most
