"""Row groups of Parquet files are read once each, whatever their sizes, and give the same sums."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from calibrant import Sketch
from calibrant.data import row_groups


@pytest.fixture
def read(monkeypatch):
    """The row groups that are read, in any order."""
    own, groups = row_groups.RowGroups._read, []

    def watched(self, about, numbers, *span):
        groups.extend(span)
        return own(self, about, numbers, *span)

    monkeypatch.setattr(row_groups.RowGroups, "_read", watched)
    return groups


def write(path, size):
    rng = np.random.default_rng(0)
    score, text = rng.random(100), rng.choice(["fr", "nl", "de"], 100)
    table = pa.table({"y": (rng.random(100) < score).astype(np.int8), "p": score, "g": text})
    parquet.write_table(table, path, row_group_size=size)
    return path


@pytest.mark.parametrize("size", [10, 7, 3, 25, 100])
def test_row_groups_are_read_once_and_sums_are_the_same(tmp_path, read, size):
    path, even = write(tmp_path / "odd.parquet", size), write(tmp_path / "even.parquet", 25)
    found = Sketch.from_files_by_group(path, groups="g", batch_rows=25)
    assert sorted(read) == list(range(-(-100 // size)))
    expected = Sketch.from_files_by_group(even, groups="g", batch_rows=25)
    assert {key: one.digest for key, one in found.items()} == {
        key: one.digest for key, one in expected.items()
    }


def test_a_checkpoint_within_row_groups_reads_on(tmp_path, read):
    path = write(tmp_path / "rows.parquet", 30)
    pieces = row_groups.RowGroups(lambda: pa.OSFile(str(path)), ["p"], []).apart(25, 50)
    assert [(first, take().num_rows) for first, take, _ in pieces] == [(50, 25), (75, 25)]
    assert sorted(read) == [1, 2, 3]


def test_large_row_groups_are_not_kept(tmp_path, monkeypatch, read):
    path = write(tmp_path / "rows.parquet", 30)
    expected = Sketch.from_files(path, label="y", scores="p", batch_rows=10).digest
    monkeypatch.setattr(row_groups, "KEPT", 10)
    monkeypatch.setattr(row_groups._Shared, "taken", None)
    assert Sketch.from_files(path, label="y", scores="p", batch_rows=10).digest == expected
