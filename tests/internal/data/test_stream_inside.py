"""Files of any size into sketches: the sums of the rows, however these are split or refused."""

import gzip
import json
import os
import random
import shutil
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, parquet

import calibrant
from calibrant import Sketch, inputs
from calibrant.cli import main
from calibrant.data import ColumnRequest, pipeline, stream
from calibrant.data import rows as loading
from calibrant.data.files import expanded
from calibrant.data.readers import batches, described
from calibrant.inputs import clusters
from reading import load

N = 300
RNG = np.random.default_rng(0)
NAMES = ("cat", "dog", "eel")
PROB = RNG.dirichlet(np.ones(3), N)
CODE = np.array([RNG.choice(3, p=(row + 1 / 3) / 2) for row in PROB])
TRUTH = np.array(NAMES, dtype=object)[CODE]
SCORE, BINARY = PROB[:, 0], (CODE == 0).astype(np.int64)
COUNT, WEIGHT = RNG.integers(0, 4, N), RNG.random(N) + 0.1
GROUP = np.array(["no", "se", "dk"], dtype=object)[np.arange(N) % 3]
MATRIX = {f"p_{name}": PROB[:, k] for k, name in enumerate(NAMES)}
ONE = pa.table({"id": [f"row {k}" for k in range(N)], "label": BINARY, "p": SCORE, "n": COUNT, "w": WEIGHT})
MANY = pa.table({"label": TRUTH.tolist(), **MATRIX, "country": GROUP.tolist(), "n": COUNT, "w": WEIGHT})
SUFFIXES = ("parquet", "feather", "arrow", "csv", "tsv", "csv.gz")


def write(path, table, rows=None):
    """A file of the format that its suffix says, in batches of so many rows."""
    path, rows = Path(path), rows or max(1, len(table))
    suffix = path.name.partition(".")[2]
    if suffix == "parquet":
        parquet.write_table(table, path, row_group_size=rows)
    elif suffix == "feather":
        feather.write_feather(table, path, chunksize=rows)
    elif suffix == "arrow":
        with pa.ipc.new_stream(path, table.schema) as file:
            file.write_table(table, max_chunksize=rows)
    else:
        options = csv.WriteOptions(delimiter="\t" if suffix == "tsv" else ",")
        plain = path.with_name("plain")
        csv.write_csv(table, plain, options)
        content = plain.read_bytes()
        path.write_bytes(gzip.compress(content) if suffix == "csv.gz" else content)
        plain.unlink()
    return path


def spread(folder, table, cuts=(90, 200), suffix="parquet", rows=40):
    """A folder with the rows of a table in several files."""
    ends = [0, *cuts, len(table)]
    for k, (a, b) in enumerate(pairwise(ends)):
        write(folder / f"part-{k}.{suffix}", table.slice(a, b - a), rows)
    return folder


def assert_same(one, other):
    """Both hold the same sums, to rounding."""
    assert (one.notion, one.labels, one.positive) == (other.notion, other.labels, other.positive)
    assert one.n == pytest.approx(other.n, rel=1e-12)
    for a, b in zip(one._score_data.arrays, other._score_data.arrays, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    for name in ("rows", "weight", "right", "log_loss", "impossible", "brier"):
        assert getattr(one.totals, name) == pytest.approx(getattr(other.totals, name), rel=1e-11)


def refusal(*args, **options):
    call = Sketch.from_files_by_group if "groups" in options else Sketch.from_files
    with pytest.raises((ValueError, OSError)) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 600
    return message


# The sums of the rows


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("notion", ["binary", "classwise", "confidence"])
@pytest.mark.parametrize("weight", [None, "n", "w"])
def test_every_format_gives_the_sums_of_the_rows(tmp_path, suffix, notion, weight):
    weights = {None: None, "n": COUNT, "w": WEIGHT}[weight]
    kind = "counts" if weight == "n" else "sample_weight"
    options, given = {"notion": notion, kind: weight, "batch_rows": 37}, {kind: weights}
    one = Sketch.from_files(write(tmp_path / f"one.{suffix}", ONE, 50), **options)
    assert_same(one, Sketch(notion).update(BINARY, SCORE, **given))
    about = {"labels": NAMES, "pos_label": "dog" if notion == "binary" else None}
    found = Sketch.from_files(write(tmp_path / f"many.{suffix}", MANY, 50), **options, **about)
    assert_same(found, Sketch(notion, **about).update(TRUTH, PROB, **given))
    del about["labels"]  # the columns say so
    assert Sketch.from_files(tmp_path / f"many.{suffix}", **options, **about).digest == found.digest


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 120),
    cuts=st.lists(st.integers(0, 120), max_size=4),
    batch=st.integers(1, 60),
    group=st.integers(1, 50),
    suffix=st.sampled_from(SUFFIXES),
    matrix=st.booleans(),
)
def test_splits_into_files_and_batches_change_nothing(tmp_path, rows, cuts, batch, group, suffix, matrix):
    folder = tmp_path / "split"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    table = (MANY if matrix else ONE).slice(0, rows)
    spread(folder, table, sorted(min(cut, rows) for cut in cuts), suffix, group)
    options = {"labels": NAMES} if matrix else {}
    found = Sketch.from_files(folder, batch_rows=batch, **options)
    truth, score = (TRUTH, PROB) if matrix else (BINARY, SCORE)
    assert_same(found, Sketch(found.notion, **options).update(truth[:rows], score[:rows]))


ODD = (
    "0",
    "1",
    "1.0",
    " 1",
    "true",
    "False",
    "-1",
    "a",
    "b ",
    "nan",
    "1e0",
    "+1",
    "0x1",
    "1_0",
    "",
    "2",
    "null",
)
NUMBERS = (
    "0.5",
    "0",
    "1",
    " 0.25",
    "+.5",
    "5e-1",
    "nan",
    "",
    "half",
    "1_0",
    "1.5",
    "-0.0",
    "1e-320",
    "2",
    "9" * 25,
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    labels=st.lists(st.sampled_from(ODD), min_size=1, max_size=3),
    scores=st.one_of(st.just(["0.5", "0.25"]), st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3)),
    weights=st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=3),
    header=st.sampled_from(["label,p,w", "label,p_a,w", "label,p_1,w"]),
    asked=st.sampled_from(
        [{}, {"positive": "a"}, {"positive": "1"}, {"sample_weight": "w"}, {"counts": "w"}]
    ),
    suffix=st.sampled_from(["csv", "parquet"]),
)
def test_text_means_in_pieces_what_it_means_in_memory(
    tmp_path, labels, scores, weights, header, asked, suffix
):
    rows = [[values[k % len(values)] for values in (labels, scores, weights)] for k in range(4)]
    path = tmp_path / f"odd.{suffix}"
    if suffix == "csv":
        path.write_text("\n".join([header, *map(",".join, rows)]))
    else:
        columns = dict(zip(header.split(","), map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pa.table(columns), path)

    def in_memory():
        data = load(str(path), ColumnRequest(**asked))
        sketch = Sketch("binary", pos_label=data.pos_label)
        return sketch.update(data.y_true, data.y_prob, sample_weight=data.sample_weight, counts=data.counts)

    found = []
    for read in (in_memory, lambda: stream(str(path), ColumnRequest(**asked)).sketches[None]):
        try:
            found.append(read())
        except (ValueError, TypeError) as error:
            found.append(error)
    if isinstance(found[0], Exception):
        assert isinstance(found[1], Exception), found
    else:
        assert_same(found[1], found[0])


def test_neither_the_order_of_paths_nor_threads_change_a_bit(tmp_path, monkeypatch):
    spread(tmp_path, ONE)
    files = sorted(tmp_path.glob("*.parquet"))
    expected = Sketch.from_files(tmp_path, batch_rows=32).digest
    for paths in (str(tmp_path / "*.parquet"), files[::-1], [str(files[1]), files[2], files[0]]):
        assert Sketch.from_files(paths, batch_rows=32).digest == expected
    for threads in (1, 3):
        monkeypatch.setattr(pipeline, "THREADS", threads)
        assert Sketch.from_files(tmp_path, batch_rows=32).digest == expected


def test_groups_are_sketches_of_their_own(tmp_path):
    spread(tmp_path, MANY, suffix="csv")
    found = Sketch.from_files_by_group(
        tmp_path, groups="country", counts="n", notion="classwise", batch_rows=50
    )
    assert list(found) == ["dk", "no", "se"]
    for name, sketch in found.items():
        own = np.equal(GROUP, name)
        expected = Sketch("classwise", labels=NAMES).update(TRUTH[own], PROB[own], counts=COUNT[own])
        assert_same(sketch, expected)


@pytest.mark.parametrize(
    ("labels", "options", "classes"),
    [
        (BINARY.astype(bool), {}, (0, 1)),
        (BINARY.astype(np.float32), {}, (0, 1)),
        (2 * BINARY - 1, {}, (-1, 1)),
        ([str(v) for v in BINARY], {}, (0, 1)),
        ([str(bool(v)) for v in BINARY], {}, (0, 1)),
        ([["ham", "spam"][v] for v in BINARY], {"pos_label": "spam"}, ("ham", "spam")),
        (pa.array([["ham", "spam"][v] for v in BINARY]).dictionary_encode(), {"pos_label": "spam"}, None),
        (BINARY + 5, {"pos_label": 6}, (5, 6)),
        (BINARY, {"labels": [0, 1]}, (0, 1)),
        (pa.array(BINARY).cast(pa.decimal128(21, 2)), {}, (0, 1)),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_labels_of_any_kind_mean_what_they_mean_in_memory(tmp_path, labels, options, classes, suffix):
    table = pa.table({"label": labels, "p": SCORE})
    if suffix == "csv":
        table = table.set_column(0, "label", table["label"].cast(pa.string()))
    # In order, so that the first pieces hold one label alone.
    table = table.take(pa.array(np.argsort(BINARY, kind="stable")))
    found = Sketch.from_files(write(tmp_path / f"a.{suffix}", table, 40), batch_rows=30, **options)
    assert found.labels == (classes or ("ham", "spam"))
    expected = Sketch("binary").update(BINARY, SCORE)
    np.testing.assert_allclose(found._score_data.sums.wy, expected._score_data.sums.wy)
    assert found.totals.log_loss == pytest.approx(expected.totals.log_loss)


def test_labels_of_many_classes_are_one_against_the_others(tmp_path):
    write(tmp_path / "a.csv", MANY)
    found = Sketch.from_files(tmp_path / "a.csv", scores="p_dog", pos_label="dog", batch_rows=7)
    assert_same(found, Sketch("binary", pos_label="dog").update(TRUTH, PROB[:, 1]))
    assert found.labels == (("cat", "eel"), "dog")


def test_integer_labels_are_columns_and_others_are_sorted(tmp_path):
    columns = {f"c{k}": PROB[:, k] for k in range(3)}
    write(tmp_path / "a.parquet", pa.table({"y": CODE, **columns}))
    scores = ["c0", "c1", "c2"]
    assert_same(
        Sketch.from_files(tmp_path / "a.parquet", scores=scores, notion="classwise", batch_rows=50),
        Sketch("classwise").update(CODE, PROB),
    )
    labels = np.array([3.5, 1.5, 2.5])[CODE]
    columns = {f"x{k}": PROB[:, k] for k in (2, 0, 1)}
    write(tmp_path / "b.parquet", pa.table({"y": labels, **columns}))
    with pytest.raises(ValueError, match="scores must have columns named after the labels"):
        Sketch.from_files(tmp_path / "b.parquet", scores=["x2", "x0", "x1"])
    found = Sketch.from_files(tmp_path / "b.parquet", scores=["x0", "x1", "x2"], labels=[3.5, 1.5, 2.5])
    assert_same(found, Sketch("confidence", labels=[3.5, 1.5, 2.5]).update(labels, PROB))


def test_single_precision_and_text_scores_are_read(tmp_path):
    single = pa.table({"label": BINARY, "p": SCORE.astype(np.float32)})
    found = Sketch.from_files(write(tmp_path / "a.parquet", single))
    assert_same(found, Sketch("binary").update(BINARY, SCORE.astype(np.float32)))
    text = pa.table({"label": BINARY, "p": [f" +{v!r}" for v in SCORE.tolist()]})
    assert_same(
        Sketch.from_files(write(tmp_path / "b.parquet", text)), Sketch("binary").update(BINARY, SCORE)
    )


def test_a_piece_without_weight_is_no_piece(tmp_path):
    weight = np.where(np.arange(N) < 100, 0, COUNT)
    table = ONE.set_column(3, "n", [weight])
    found = Sketch.from_files(write(tmp_path / "a.parquet", table), counts="n", batch_rows=20)
    assert_same(found, Sketch("binary").update(BINARY, SCORE, counts=weight))
    write(tmp_path / "a.parquet", ONE.set_column(3, "n", [np.zeros(N, int)]))
    assert "no rows with a weight above 0" in refusal(
        tmp_path / "a.parquet", sample_weight="n", batch_rows=20
    )


def test_only_what_is_needed_is_read(tmp_path):
    for suffix in SUFFIXES:
        source = described(str(write(tmp_path / f"a.{suffix}", ONE)))
        first, table, share = next(batches(source, ["p"], ["label"], 1000))
        assert set(table.column_names) == {"p", "label"}
        assert (first, share) == (0, 1.0)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("rows", [1, 7, 25, 40, 50, 70, 100, 300])
def test_pieces_are_the_same_however_a_file_was_written(tmp_path, suffix, rows):
    source = described(str(write(tmp_path / f"a.{suffix}", ONE, rows)))
    found = list(batches(source, ["p"], ["label"], 50))
    assert [first for first, _, _ in found] == list(range(0, N, 50))
    for first, table, _ in found:
        assert [float(score) for score in table["p"].to_pylist()] == SCORE[first : first + 50].tolist()
    assert found[-1][2] == pytest.approx(1.0, abs=1e-3)


def test_a_file_that_changes_between_its_pieces_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet", ONE, 50)
    for change in (partial(write, path, ONE.slice(0, 200), 50), partial(os.utime, path, ns=(1, 1))):
        pieces = batches(described(str(path)), ["p"], ["label"], 50)
        next(pieces)
        change()
        with pytest.raises(ValueError, match=r"has changed while it was read|cannot be read"):
            list(pieces)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
def test_folders_tell_columns_as_spark_writes_them(tmp_path, suffix):
    for k, day in enumerate(["2026-05-04", "2026-05-05", "a%2Fb"]):
        folder = tmp_path / f"day={day}" / f"part={k}"
        folder.mkdir(parents=True)
        write(folder / f"a.{suffix}", ONE.slice(100 * k, 100), 40)
    days = Sketch.from_files_by_group(tmp_path, groups="day", batch_rows=30)
    assert {day: one.n for day, one in days.items()} == {"2026-05-04": 100, "2026-05-05": 100, "a/b": 100}
    assert list(Sketch.from_files_by_group(tmp_path, groups="part")) == [0, 1, 2]
    assert Sketch.from_files(tmp_path).digest == Sketch.from_files(sorted(tmp_path.glob("*/*/*"))).digest
    data = load(str(tmp_path), ColumnRequest(groups="day"))
    assert data.groups.tolist() == ["2026-05-04"] * 100 + ["2026-05-05"] * 100 + ["a/b"] * 100


def test_a_folder_of_rows_without_a_value_is_refused(tmp_path):
    (tmp_path / "day=__HIVE_DEFAULT_PARTITION__").mkdir()
    write(tmp_path / "day=__HIVE_DEFAULT_PARTITION__" / "a.parquet", ONE)
    for call in (
        Sketch.from_files_by_group,
        lambda path, groups: load(str(path), ColumnRequest(groups=groups)),
    ):
        with pytest.raises(ValueError, match=r"column 'day' must have no missing values"):
            call(tmp_path, groups="day")


WRONG = {
    "estimator": ["ece", "--estimator", "foo"],
    "bins": ["ece", "--estimator", "uniform:0"],
    "cells": ["ece", "--estimator", "uniform:20000"],
    "norm": ["ece", "--estimator", "ks", "--norm", "l2"],
    "level": ["ece", "--level", "2"],
    "interval": ["check", "--max-ece", "0.1", "--estimator", "smooth"],
    "bandwidth": ["curve", "--at", "0.5", "--bandwidth", "foo"],
    "level of a report": ["report", "--level", "0"],
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG)
def test_a_wrong_option_is_told_before_a_long_reading(tmp_path, monkeypatch, call):
    monkeypatch.setattr(loading, "MANY_ROWS", 100)
    monkeypatch.setattr(pipeline, "labelled_batches", lambda *_: pytest.fail("read"))
    path = write(tmp_path / "a.parquet", ONE)
    found = CliRunner().invoke(main, [call[0], str(path), *call[1:]])
    assert found.exit_code == 2
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("Error: ")
    assert path.name not in found.stderr


# Which files


def test_a_folder_holds_its_files_and_those_of_its_folders(tmp_path):
    (tmp_path / "day=1" / "_temporary").mkdir(parents=True)
    for name in ("day=1/a.parquet", "b.pq", "day=1/_temporary/c.parquet", ".d.parquet", "_e.parquet"):
        write(tmp_path / "x.parquet", ONE).rename(tmp_path / name)
    (tmp_path / "readme.md").write_text("no data")
    assert expanded(tmp_path) == [str(tmp_path / name) for name in ("b.pq", "day=1/a.parquet")]
    assert expanded(str(tmp_path / "day*" / "*.parquet")) == [str(tmp_path / "day=1/a.parquet")]
    assert Sketch.from_files(tmp_path).n == 2 * N
    (tmp_path / "day=1" / "f.csv").write_text("label,p\n0,0.5\n")
    assert "holds files of several formats, csv, parquet" in refusal(tmp_path)


# What is refused


def changed(name, row, value, table=ONE):
    column = table[name].to_pylist()
    column[row] = value
    return table.set_column(table.column_names.index(name), name, [column])


def test_groups_are_few(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", ONE)
    monkeypatch.setattr(clusters, "MOST_GROUPS", 200)
    assert "groups must have at most 200 distinct values, got 300" in refusal(path, groups="id")
    assert "groups must have at most 200 distinct values, got 2" in refusal(path, groups="id", batch_rows=10)
    monkeypatch.setattr(pipeline, "MOST_SUMS", 1 << 20)
    path = write(tmp_path / "b.parquet", MANY)
    assert "the sums of 3 groups take more than" in refusal(path, groups="country")


# Progress


def test_progress_says_how_far_it_is(tmp_path):
    spread(tmp_path, ONE)
    seen = []
    Sketch.from_files(tmp_path, batch_rows=50, progress=seen.append)
    assert [one.rows for one in seen] == [50, 90, 140, 190, 200, 250, 300, 300]
    assert {one.total for one in seen} == {N}
    assert seen[-1].files == seen[-1].all_files == 3
    assert seen[-1].share == 1
    assert all(a.share <= b.share for a, b in pairwise(seen))
    assert all(one.rate > 0 for one in seen)
    assert "of 300 rows, 3 of 3 files" in str(seen[-1])
    late = [str(pipeline.ReadProgress(1, None, 0, 1, 0.1, 1.0, left)) for left in (float("nan"), 700, 12345)]
    words = ["1 rows/s", "about 12 min left", "about 3.4 h left"]
    assert [text.rpartition(", ")[2] for text in late] == words
    for suffix in ("csv", "feather", "arrow", "csv.gz"):
        seen.clear()
        Sketch.from_files(write(tmp_path / f"a.{suffix}", ONE), batch_rows=50, progress=seen.append)
        assert (seen[-1].rows, seen[-1].share, seen[-1].total) == (N, 1.0, None)


# Rows of several files in memory


def test_a_folder_of_few_rows_is_read_as_rows(tmp_path):
    for suffix in SUFFIXES:
        folder = tmp_path / suffix
        folder.mkdir()
        found = load(
            str(spread(folder, MANY, suffix=suffix)), ColumnRequest(sample_weight="n", groups="country")
        )
        assert found.y_true.tolist() == TRUTH.tolist()
        np.testing.assert_array_equal(found.y_prob, PROB)
        assert found.labels == NAMES
        assert found.sample_weight.tolist() == COUNT.tolist()
    path = tmp_path / "csv" / "part-1.csv"
    path.write_text("label,p_cat,p_dog,p_eel\n1,0.5,0.5,0\n")
    with pytest.raises(ValueError, match=r"named after the labels '1', 'cat', 'dog', 'eel', got 'p_cat'"):
        load(str(tmp_path / "csv"))
    path.write_text("label,p_cat,p_dog,p_eel\n")
    assert len(load(str(tmp_path / "csv")).y_prob) == 190
    path.write_text("label,p_cat,p_dog\ncat,0.5,0.5\n")
    with pytest.raises(ValueError, match=r"part-1.csv: scores must be 'p_cat', 'p_dog', 'p_eel' as in "):
        load(str(tmp_path / "csv"))


# The command line


def call(*args, **options):
    result = CliRunner().invoke(main, [str(arg) for arg in args], **options)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def told(*args, lines=1):
    result = call(*args)
    assert result.exit_code == 0, result.output
    assert len(result.stderr.splitlines()) == lines, result.stderr
    return result.stdout


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(loading, "MANY_ROWS", 250)
    monkeypatch.setattr(loading, "MANY_TEXT", 5000)


def test_large_files_are_read_as_sums_and_small_ones_as_rows(tmp_path, large):
    folder = spread(tmp_path, MANY)
    result = call("ece", folder, "--json")
    assert result.stderr == "300 rows: read as sums, not rows; memory does not grow with them\n"
    found = json.loads(result.stdout)
    rows = calibrant.estimate(TRUTH, PROB, labels=NAMES, rng=0).to_dict()
    assert (found["rows"], found["read"], found["source"]) == (N, "sums", tmp_path.name)
    for key in ("value", "low", "high", "p_value"):
        assert found[key] == pytest.approx(rows[key], abs=1e-6)
    small = json.loads(told("ece", folder / "part-1.parquet", "--json", lines=0))
    assert (small["rows"], small["read"]) == (110, "rows")
    for name in ("part-[01].parquet", "*-0.parquet"):
        assert json.loads(told("ece", folder / name, "--json", lines=0))["read"] == "rows"
    write(tmp_path / "a.csv", MANY)
    assert "MB: read as sums" in call("ece", tmp_path / "a.csv").stderr
    assert call("ece", tmp_path / "a.csv", "--quiet").stderr == ""


def test_every_command_takes_sums(tmp_path, large, monkeypatch):
    folder = tmp_path / "data"
    folder.mkdir()
    spread(folder, MANY)
    monkeypatch.chdir(tmp_path)
    for args in (["--norm", "max"], ["--estimator", "ks"], ["--notion", "binary", "--pos-label", "dog"]):
        sums = json.loads(told("ece", "data", *args, "--json"))["value"]
        write(tmp_path / "all.csv", MANY)
        monkeypatch.setattr(loading, "MANY_TEXT", 1 << 20)
        assert sums == pytest.approx(json.loads(told("ece", "all.csv", *args, "--json", lines=0))["value"])
    assert "score 0.83: observed frequency 0." in told("curve", "data", "--at", "0.83")
    assert "within 0.9" in told("check", "data", "--max-ece", "0.9")
    assert call("check", "data", "--max-ece", "0.001").exit_code == 1
    out = told("report", "data", "--groups", "country", "--json", "numbers.json")
    assert "report: " in out
    assert (tmp_path / "data-report.html").stat().st_size > 10_000
    numbers = json.loads((tmp_path / "numbers.json").read_text())
    assert numbers["rows"] == N
    assert numbers["command"] == "calibrant report data --groups country --json numbers.json"
    assert {row["name"]: row["rows"] for row in numbers["by_group"]} == {"no": 100, "se": 100, "dk": 100}
    expected = calibrant.assess(TRUTH, PROB, labels=NAMES, groups=GROUP, rng=0)
    for row, other in zip(numbers["by_group"], expected.by_group, strict=True):
        assert (row["name"], row["observed"]) == (other.name, pytest.approx(other.observed))
        assert row["estimate"]["value"] == pytest.approx(other.estimate.value, abs=1e-6)


def test_what_sums_cannot_tell_is_refused_with_the_reason(tmp_path, large):
    spread(tmp_path, ONE)
    result = call("ece", tmp_path, "--estimator", "uniform:20000", "-q")
    assert result.exit_code == 2
    assert "asks for 20000 bins, but a sketch keeps 14400 cells" in result.stderr
    write(tmp_path / "part-1.parquet", changed("p", 7, 1.5))
    result = call("ece", tmp_path, "-q")
    assert result.exit_code == 2
    assert result.stderr == f"Error: {tmp_path}/part-1.parquet: scores must lie in [0, 1], got 1.5 at row 8\n"
    result = call("ece", tmp_path, "--label", "lable", "-q")
    assert "part-0.parquet: --label must be a column of the file, got 'lable'; did you mean" in result.stderr


def test_streams_are_what_sketches_are_made_of(tmp_path):
    found = stream(spread(tmp_path, MANY), ColumnRequest(positive="dog", notion="binary"))
    assert found.rows == N
    assert found.columns == {"label": ("label",), "scores": tuple(MATRIX)}
    assert found.source == f"{tmp_path / 'part-0.parquet'} and 2 more"
    assert_same(found.sketches[None], Sketch("binary", labels=NAMES, pos_label="dog").update(TRUTH, PROB))


def test_shuffled_files_have_the_sums_of_all(tmp_path):
    order = list(range(N))
    random.Random(0).shuffle(order)
    spread(tmp_path, ONE.take(pa.array(order)), range(30, 300, 30))
    assert_same(Sketch.from_files(tmp_path, batch_rows=11), Sketch("binary").update(BINARY, SCORE))


@pytest.mark.parametrize("name", ["p_x=0.5", "label=v2", "score=3"])
def test_folders_tell_only_what_is_asked_for(tmp_path, name):
    (tmp_path / name).mkdir()
    write(tmp_path / name / "a.parquet", MANY)
    assert Sketch.from_files(tmp_path, label="label" if "label" in name else None).n == N
    assert load(str(tmp_path)).y_prob.shape == (N, 3)


@pytest.mark.parametrize("suffix", ["jsonl", "json", "npz"])
def test_json_and_arrays_are_sketched_too(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    if suffix == "npz":
        np.savez(path, label=TRUTH.astype(str), y_prob=PROB)
    else:
        rows = MANY.to_pylist()
        path.write_text(json.dumps(rows) if suffix == "json" else "\n".join(map(json.dumps, rows)))
    found = Sketch.from_files(path, notion="classwise", batch_rows=50)
    assert_same(found, Sketch("classwise", labels=NAMES).update(TRUTH, PROB))


def test_an_error_about_a_value_tells_its_parts(tmp_path):
    write(tmp_path / "a.parquet", changed("p_dog", 70, 1.25, MANY))
    with pytest.raises(inputs.InputError) as caught:
        Sketch.from_files(tmp_path / "a.parquet", batch_rows=50)
    error = caught.value
    assert (error.argument, error.rule, error.value) == ("y_prob", "lie in [0, 1]", 1.25)
    assert (error.row, error.column, error.about) == (70, "p_dog", str(tmp_path / "a.parquet"))
