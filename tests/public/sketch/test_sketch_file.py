"""A sketch on disk: what was written comes back to the last bit, and everything else is refused."""

import copy
import io
import math
import os
import struct
import tempfile
import zipfile
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from test_registry import NOTIONS
from test_sketch import binary, made, matrix

import calibrant
from calibrant import Sketch


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


@pytest.mark.usefixtures("few_reference_estimators")
def test_saved_sketches_give_the_same_answers(folder):
    y, p = matrix(80, classes=3)
    for notion in NOTIONS:
        sketch = made(notion, y, p)
        sketch.save(folder / "answers.sketch")
        again = Sketch.load(folder / "answers.sketch")
        assert again.estimate(rng=0) == sketch.estimate(rng=0)
    assert again.assess(rng=0).to_json() == sketch.assess(rng=0).to_json()


def test_a_digest_is_of_the_content():
    y, p = binary()
    one = Sketch("binary").update(y, p)
    assert one.digest == Sketch("binary").update(y, p).digest
    assert one.digest != Sketch("binary").update(y, p[::-1]).digest
    assert one.digest != Sketch("confidence").update(y, p).digest


DATES = (date(2026, 5, 1), datetime(2026, 5, 1), np.datetime64("2026-05-01"))
OTHERS = (b"a", Decimal(1), Fraction(1, 2), frozenset([1]), 1j, math.inf, math.nan, (1, b"a"), int)


@pytest.mark.parametrize("label", DATES + OTHERS, ids=lambda label: type(label).__name__)
def test_a_label_that_a_file_cannot_keep_is_refused(folder, label):
    path = folder / "refused.sketch"
    with pytest.raises(ValueError, match=r"given_pos_label(\[1\])? must be") as caught:
        Sketch("binary", pos_label=label).save(path)
    assert len(str(caught.value)) < 300
    assert not path.exists()


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path, (y, p) = tmp_path / "day.sketch", binary(50)
    sketch = Sketch("binary").update(y, p)
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


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04" + bytes(100), b"calib", bytes(7), bytes(70)])
def test_files_of_another_kind_are_refused(folder, data):
    refused(folder, data, "must be a file that Sketch.save wrote, got a file of another kind")


@pytest.mark.full
@pytest.mark.parametrize("notion", NOTIONS)
def test_every_truncation_is_refused(folder, notion):
    data = content(notion, weighted=notion == "binary")
    for size in range(len(data)):
        refused(folder, data[:size], "must be a whole file|another kind")
    refused(folder, data + b"\0", "must be a whole file")


def test_sums_that_are_damaged_are_noticed(folder):
    data = content()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        info = archive.getinfo("sums.npy")
    start = info.header_offset + 30 + len("sums.npy") + 20
    expected, noticed = loaded(folder, data).digest, 0
    for where in range(start, start + info.compress_size):
        forged = data[:where] + bytes([data[where] ^ 1]) + data[where + 1 :]
        try:
            assert loaded(folder, forged).digest == expected  # a bit that says nothing
        except calibrant.InputError:
            noticed += 1
    assert noticed >= info.compress_size - 3


def test_the_same_content_gives_the_same_bytes():
    content.cache_clear()
    before = content()
    content.cache_clear()
    assert content() == before


@pytest.mark.skipif(os.name == "nt", reason="sparse files as POSIX has them")
def test_a_file_with_an_enormous_hole_is_refused_at_once(folder):
    path = folder / "hole.sketch"
    path.write_bytes(content()[:64])
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, 2**32 - 1, 0, 0)
    os.truncate(path, 2**40)
    with open(path, "ab") as file:
        file.write(end)
    with pytest.raises(calibrant.InputError, match="must be a whole file"):
        Sketch.load(path)
    path.unlink()


def test_files_are_small(folder):
    path = folder / "small.sketch"
    for n, most in ((10, 2_000), (1000, 20_000), (100_000, 350_000)):
        Sketch("binary").update(*binary(n)).save(path)
        assert path.stat().st_size < most
