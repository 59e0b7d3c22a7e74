"""Columns of numbers that the compiled loop reads from Parquet files are those that pyarrow reads."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from calibrant import Sketch
from calibrant.data import chunks
from calibrant.data.row_groups import RowGroups
from plainly import needs_loops, plain

ROWS = 3001
KINDS = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")
# A dictionary of many entries that gives up on the way, one that does not, and none.
DICTIONARIES = ({"dictionary_pagesize_limit": 2000}, {}, {"use_dictionary": False})
WRITERS = (
    {"compression": "snappy"},
    {"compression": "none"},
    {"compression": "snappy", "data_page_version": "2.0"},
    {"compression": "none", "data_page_version": "2.0"},
)
OTHERS = (
    {"compression": "zstd"},
    {"compression": "gzip"},
    {"use_dictionary": False, "column_encoding": "BYTE_STREAM_SPLIT"},
)


def values(kind, few):
    rng = np.random.default_rng(0)
    if kind == "?":
        return rng.random(ROWS) < 0.3
    if kind[0] == "f":
        return (rng.integers(0, 7, ROWS) / 8 if few else rng.random(ROWS)).astype(kind)
    ends = np.iinfo(kind)
    return rng.integers(0, 2, ROWS).astype(kind) if few else rng.integers(ends.min, ends.max, ROWS, kind)


def tables(path):
    """What the compiled loop reads, and what pyarrow reads."""
    groups = RowGroups(lambda: pa.OSFile(str(path)), ["x"], [])
    with groups._opened() as file:
        about, numbers = file.metadata, chunks.numbers_in(file, ["x"])
        span = range(about.num_row_groups)
        with groups.open() as opened:
            own = numbers["x"].read(opened, [about.row_group(k) for k in span], about.num_rows)
        return own, groups._read(about, {}, *span).combine_chunks()["x"].chunk(0)


@needs_loops
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("writer", WRITERS)
def test_numbers_are_those_that_pyarrow_reads(tmp_path, kind, writer):
    for few in (False, True):
        for dictionary in DICTIONARIES:
            for nullable in (True, False):
                schema = pa.schema([pa.field("x", pa.from_numpy_dtype(np.dtype(kind)), nullable=nullable)])
                table = pa.table([values(kind, few)], schema=schema)
                options = {"row_group_size": 1400, "data_page_size": 900, **writer, **dictionary}
                parquet.write_table(table, tmp_path / "x.parquet", **options)
                own, expected = tables(tmp_path / "x.parquet")
                assert own is not None
                assert own.type == expected.type
                assert own.equals(expected)


@needs_loops
@pytest.mark.parametrize("step", [1, 2, 3, 7, 8, 9, 15, 16, 17, 40, 1000])
def test_what_repeats_is_unpacked(tmp_path, step):
    pattern = np.random.default_rng(step).integers(0, 256, step, "u1")
    data = np.resize(pattern, 8 * ROWS)
    data[::997] += 1  # which ends a repetition
    table = pa.table({"x": data.view("i8")})
    parquet.write_table(table, tmp_path / "x.parquet", use_dictionary=False)
    own, expected = tables(tmp_path / "x.parquet")
    assert own.equals(expected)


@needs_loops
@pytest.mark.parametrize("distinct", [1, 2, 3, 5, 100, 300, 2000])
def test_runs_of_equal_values_and_numbers_of_any_width(tmp_path, distinct):
    rng = np.random.default_rng(distinct)
    column = np.repeat(rng.integers(0, distinct, 400), rng.integers(1, 30, 400)) / 4096
    parquet.write_table(pa.table({"x": column}), tmp_path / "x.parquet", row_group_size=2500)
    own, expected = tables(tmp_path / "x.parquet")
    assert own.equals(expected)


@needs_loops
@pytest.mark.parametrize("writer", OTHERS)
def test_what_the_loop_does_not_know_is_left_to_pyarrow(tmp_path, writer):
    score = values("f8", False)
    table = pa.table({"label": (score > 0.4).astype("i1"), "x": score})
    if "column_encoding" in writer:
        writer = {**writer, "column_encoding": {"x": writer["column_encoding"], "label": "PLAIN"}}
    parquet.write_table(table, tmp_path / "x.parquet", **writer)
    parquet.write_table(table, tmp_path / "usual.parquet")
    assert tables(tmp_path / "x.parquet")[0] is None
    paths = [tmp_path / "x.parquet", tmp_path / "usual.parquet"]
    assert len({Sketch.from_files(path, scores="x").digest for path in paths}) == 1


@needs_loops
@pytest.mark.parametrize("writer", WRITERS)
def test_missing_values_are_left_to_pyarrow(tmp_path, writer):
    for at in (0, ROWS - 1):
        table = pa.table({"x": pa.array(values("f8", False), mask=np.arange(ROWS) == at)})
        parquet.write_table(table, tmp_path / "x.parquet", data_page_size=900, **writer)
        own, expected = tables(tmp_path / "x.parquet")
        assert own is None
        assert expected.null_count == 1


@needs_loops
def test_columns_that_are_no_plain_numbers_are_not_asked_for(tmp_path):
    table = pa.table(
        {
            "text": ["a", "b"],
            "day": pa.array([1, 2], pa.date32()),
            "half": pa.array(np.zeros(2, "f2")),
            "list": [[0.5], [0.5]],
            "inner": [{"q": 0.5}, {"q": 0.5}],
            "p": [0.5, 0.5],
        }
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    with parquet.ParquetFile(tmp_path / "x.parquet") as file:
        assert set(chunks.numbers_in(file, table.column_names)) == {"p"}
        with plain():
            assert not chunks.numbers_in(file, ["p"])


def test_files_are_the_same_without_the_loops(tmp_path):
    score = values("f4", False)
    table = pa.table({"label": score > 0.4, "p": score})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    found = Sketch.from_files(tmp_path / "x.parquet", batch_rows=1000)
    with plain():
        expected = Sketch.from_files(tmp_path / "x.parquet", batch_rows=1000)
    assert found.totals.rows == expected.totals.rows == ROWS
    assert np.array_equal(found.evidence.sums.w, expected.evidence.sums.w)
    assert np.allclose(found.evidence.sums.ws, expected.evidence.sums.ws, rtol=1e-12, atol=0)


@needs_loops
@pytest.mark.parametrize("kind", ["f8", "i1", "?"])
@pytest.mark.parametrize("writer", WRITERS)
def test_damaged_pages_end_in_numbers_or_in_a_no(tmp_path, kind, writer):
    path, rng = tmp_path / "x.parquet", np.random.default_rng(0)
    parquet.write_table(pa.table({"x": values(kind, True)}), path, data_page_size=900, **writer)
    about = parquet.read_metadata(path).row_group(0)
    sound, length = path.read_bytes(), about.column(0).total_compressed_size
    for _ in range(60):
        data = bytearray(sound)
        for at in 4 + rng.integers(0, length if rng.random() < 0.5 else min(60, length), rng.integers(1, 4)):
            data[at] = rng.integers(256)
        path.write_bytes(data)
        # Amid memory that nobody may write to.
        memory = np.full(ROWS + 128, 7, kind)
        stored = {"f8": 8, "i1": 4, "?": 0}[kind]
        with open(path, "rb") as file:
            part = file.fileno(), 4, int(rng.choice([length, length // 2, 0, 10 * length]))
            answer = chunks.compiled.loops.read_pages(
                *part, stored, writer["compression"] == "snappy", True, memory[64 : 64 + ROWS]
            )
        assert answer in (True, False)
        assert np.all(memory[:64] == memory[0])
        assert np.all(memory[64 + ROWS :] == memory[-1])


@needs_loops
def test_parts_of_files_that_are_none_are_refused():
    loops, out = chunks.compiled.loops, np.zeros(3)
    assert loops.read_pages(10**6, 0, 100, 8, True, True, out) is False
    for part in ((-1, 0, 1), (2**31, 0, 1), (0, -1, 1), (0, 0, -1)):
        with pytest.raises(ValueError, match="no such part"):
            loops.read_pages(*part, 8, True, True, out)
    for stored in (0, 1, 4, -8):
        with pytest.raises(TypeError, match="not larger"):
            loops.read_pages(0, 0, 1, stored, True, True, out)
