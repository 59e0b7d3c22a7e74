"""Files of any size into sketches: the sums of the rows, however these are split or refused."""

import gzip
import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import csv, feather, parquet

import calibrant
from calibrant import Sketch
from calibrant.cli import main

ROOT = Path(__file__).parents[3]
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


def refusal(*args, **options):
    call = Sketch.from_files_by_group if "groups" in options else Sketch.from_files
    with pytest.raises((ValueError, OSError)) as caught:
        call(*args, **options)
    message = str(caught.value)
    assert message.isprintable(), message
    assert len(message) < 600
    return message


def test_the_answers_are_those_of_the_rows(tmp_path):
    found = Sketch.from_files(spread(tmp_path, MANY), batch_rows=64)
    for estimator in ("uniform:15", "adaptive-convex:10", "density", "auto"):
        expected = calibrant.ece(TRUTH, PROB, labels=NAMES, estimator=estimator)
        assert found.ece(estimator=estimator) == pytest.approx(expected, abs=1e-6)
    rows, sums = calibrant.estimate(TRUTH, PROB, labels=NAMES, rng=0), found.estimate(rng=0)
    assert (sums.low, sums.high) == pytest.approx((rows.low, rows.high), abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "values"), [("ints", [3, 1, 2]), ("floats", [0.5, 2.0, 1.5]), ("booleans", [True, False, True])]
)
def test_groups_may_be_of_any_kind(tmp_path, kind, values):
    group = [values[k % 3] for k in range(N)]
    found = Sketch.from_files_by_group(
        write(tmp_path / "a.parquet", ONE.append_column("g", [group])), groups="g"
    )
    assert list(found) == sorted(set(values))
    assert sum(sketch.n for sketch in found.values()) == N


def test_categories_without_rows_are_not_there(tmp_path):
    words = pa.DictionaryArray.from_arrays(pa.array(BINARY, pa.int8()), ["ham", "spam", "eggs", ""])
    table = pa.table({"label": words, "p": SCORE})
    for suffix in ("parquet", "feather"):
        found = Sketch.from_files(write(tmp_path / f"a.{suffix}", table), pos_label="spam", batch_rows=9)
        assert found.labels == ("ham", "spam")


def test_a_sketch_of_files_goes_on_with_rows(tmp_path):
    write(tmp_path / "a.csv", MANY)
    found = Sketch.from_files(tmp_path / "a.csv", scores="p_dog", pos_label="dog")
    both = Sketch("binary", pos_label="dog").update(TRUTH, PROB[:, 1])
    assert (found + both).n == 2 * N
    assert found.update(TRUTH, PROB[:, 1]).n == 2 * N


def test_paths_that_mean_nothing_are_refused(tmp_path):
    assert "at least one file" in refusal([])
    assert "No such file" in refusal(tmp_path / "none.parquet")
    assert "no file matches" in refusal(str(tmp_path / "*.parquet"))
    assert "holds no CSV, Parquet or Arrow files" in refusal(tmp_path)
    path = write(tmp_path / "a.parquet", ONE)
    assert "is meant twice" in refusal([path, tmp_path])


def test_a_format_can_be_said(tmp_path):
    write(tmp_path / "a.csv", ONE).rename(tmp_path / "a.data")
    assert Sketch.from_files(tmp_path / "a.data").n == N
    assert Sketch.from_files(tmp_path, format="csv").n == N
    write(tmp_path / "a.parquet", ONE).rename(tmp_path / "b.csv")
    assert "b.csv: format must be parquet, as its first bytes are, got 'csv'" in refusal(tmp_path / "b.csv")


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "a.csv", ONE)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'calibrant\[files\]'"):
        Sketch.from_files(path)


def test_an_empty_file_adds_nothing_and_nothing_else_is_an_error(tmp_path):
    spread(tmp_path, ONE, (0, 100, 100))
    assert Sketch.from_files(tmp_path).n == N
    write(tmp_path / "none.csv", ONE.slice(0, 0))
    assert "has no rows" in refusal(tmp_path / "none.csv")
    (tmp_path / "none.csv").write_text("label,p")
    assert "has no rows" in refusal(tmp_path / "none.csv")
    (tmp_path / "part-1.parquet").write_bytes(b"")
    assert "part-1.parquet: is empty" in refusal(str(tmp_path / "*.parquet"))


# What is refused


def changed(name, row, value, table=ONE):
    column = table[name].to_pylist()
    column[row] = value
    return table.set_column(table.column_names.index(name), name, [column])


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("p", 1.5, "scores must lie in [0, 1], got 1.5 at row 48"),
        ("p", float("nan"), "scores must be finite and have no missing values, got nan at row 48"),
        ("p", None, "column 'p' must have no missing values, got 1, the first at row 48"),
        ("label", None, "column 'label' must have no missing values, got 1, the first at row 48"),
        ("label", 2, "label must hold 0 and 1, -1 and 1 or booleans, got"),
        ("n", None, "column 'n' must have no missing values, got 1, the first at row 48"),
        ("n", -1, "sample_weight must be finite, at least 0 and below"),
    ],
)
def test_a_bad_row_is_named_with_its_file_and_its_row(tmp_path, suffix, name, value, words):
    spread(tmp_path, changed(name, 137, value), suffix=suffix)
    message = refusal(tmp_path, sample_weight="n", batch_rows=20)
    assert "part-1." in message
    assert words in message


def test_a_bad_score_of_a_matrix_is_named_with_its_column(tmp_path):
    spread(tmp_path, changed("p_dog", 250, 1.25, MANY))
    message = refusal(tmp_path, batch_rows=20)
    assert (
        message
        == f"{tmp_path / 'part-2.parquet'}: scores must lie in [0, 1], got 1.25 at row 51, column 'p_dog'"
    )
    spread(tmp_path, changed("p_dog", 250, 0.0, MANY))
    assert "scores must sum to 1 within 1e-06 in every row" in refusal(tmp_path, batch_rows=20)
    spread(tmp_path, changed("label", 250, "cow", MANY))
    message = refusal(tmp_path, batch_rows=20)
    assert (
        "part-2.parquet: label must hold only the labels 'cat', 'dog', 'eel', got 'cow' at row 51" in message
    )


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("label", [["a", "b"][v] for v in BINARY], "column 'label' must hold numbers as in the first rows"),
        ("label", BINARY.astype(bool), "column 'label' must hold numbers as in {first}, got the type bool"),
        ("p", [[v] for v in SCORE], "column 'p' must hold numbers, got the type list"),
        ("p", SCORE > 0.5, "column 'p' must hold numbers, got the type bool"),
        ("n", COUNT > 1, "column 'n' must hold numbers, got the type bool"),
        ("g", np.arange(N), "column 'g' must hold text as in {first}, got the type int64"),
    ],
)
def test_types_may_not_drift_from_file_to_file(tmp_path, column, values, words):
    table = ONE.append_column("g", [GROUP.tolist()])
    write(tmp_path / "a.parquet", table)
    other = table.set_column(table.column_names.index(column), column, [values])
    write(tmp_path / "b.parquet", other)
    message = refusal(tmp_path, sample_weight="n", groups="g")
    assert message.startswith(f"{tmp_path / 'b.parquet'}: ")
    assert words.format(first=tmp_path / "a.parquet") in message


def test_what_does_not_matter_may_differ(tmp_path):
    write(tmp_path / "a.parquet", ONE)
    other = pa.table({"p": SCORE.astype(np.float32), "extra": BINARY, "label": BINARY.astype(np.int8)})
    write(tmp_path / "b.parquet", other)
    other = pa.table({"label": [str(v) for v in BINARY], "p": pa.array(SCORE).dictionary_encode()})
    write(tmp_path / "c.parquet", other)
    assert Sketch.from_files(tmp_path).n == 3 * N


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"label": BINARY, "score": SCORE}, "scores must be 'p' as in {first}, got 'score'"),
        ({"label": BINARY}, "scores must name the column: none is obvious, got the columns 'label'"),
        ({"p": SCORE}, "label must name the column: none is obvious, got the columns 'p'"),
        (
            {"label": BINARY, "y": BINARY, "p": SCORE},
            "label must name the column: several may be it, got 'label', 'y'",
        ),
    ],
)
def test_files_must_have_the_same_columns(tmp_path, columns, words):
    write(tmp_path / "a.parquet", ONE)
    write(tmp_path / "b.parquet", pa.table(columns))
    message = refusal(tmp_path)
    assert message.startswith(f"{tmp_path / 'b.parquet'}: ")
    assert words.format(first=tmp_path / "a.parquet") in message


def test_labels_may_not_change_their_meaning(tmp_path):
    write(tmp_path / "a.parquet", ONE)
    write(tmp_path / "b.parquet", ONE.set_column(1, "label", [2 * BINARY - 1]))
    assert "b.parquet: label must hold 0 and 1, -1 and 1 or booleans, got -1, 0, 1" in refusal(tmp_path)
    assert "pos_label must be one of 0, 1, got 7" in refusal(tmp_path / "a.parquet", pos_label=7)


def test_a_damaged_file_among_many_is_named_before_any_work(tmp_path):
    spread(tmp_path, ONE)
    path = tmp_path / "part-2.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    seen = []
    assert f"{path}: cannot be read" in refusal(tmp_path, progress=seen.append)
    assert not seen
    for suffix in ("feather", "arrow"):
        path = write(tmp_path / f"x.{suffix}", ONE, 20)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        assert f"{path}" in refusal(path)


def test_csv_files_are_checked_to_the_end(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("label,p,note\n0,0.5,x\n1,0.25\n")
    assert refusal(path) == f"{path}: row 2 has 2 fields where the header has 3"
    path.write_text('label,p,note\n0,0.5,"x\n1,0.25,y\n')
    assert "is a quote left open?" in refusal(path)
    path.write_text('label,p,note\n\n0,0.5,5"\n\n1,0.25,"a\nb"\n')
    assert Sketch.from_files(path).n == 2
    path.write_text("label,p\n0,0.5\n1,half\n")
    assert "column 'p' must hold finite numbers, got 'half' at row 2" in refusal(path, batch_rows=1)
    path.write_bytes(b"label,p\n0,0.5\n1,\xff\n")
    assert "UTF-8" in refusal(path)
    path.write_text("label,p\n0,0.5\n" + "1,0.25\n" * 20 + "cat,0.5\n")
    assert "must hold numbers as in the first rows, got 'cat' at row 22" in refusal(path, batch_rows=4)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = write(tmp_path / "a.parquet", ONE)
    message = refusal(path, batch_rows=10, progress=lambda _: os.utime(path, (1, 1)))
    assert message == f"{path}: has changed while it was read"


def test_options_are_checked(tmp_path):
    path = write(tmp_path / "a.parquet", ONE)
    assert "notion must be one of" in refusal(path, notion="clas")
    assert "batch_rows must be an integer of at least 1" in refusal(path, batch_rows=0)
    assert "did you mean 'label'?" in refusal(path, label="lable")
    with pytest.raises(TypeError, match="unexpected keyword"):
        Sketch.from_files(path, chunk=3)


# Memory

PEAK = """
import sys
from pathlib import Path
from calibrant import Sketch
found = Sketch.from_files(sys.argv[1])
status = Path("/proc/self/status").read_text()
print(int(found.n), next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM")))
"""


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("group", [1 << 20, 3_000_000])
def test_memory_does_not_grow_with_the_rows(tmp_path, group):
    rows, rng = 3_000_000, np.random.default_rng(0)
    score = rng.random(rows)
    columns = {"label": (rng.random(rows) < score).astype(np.int8), "p": score}
    columns["other"] = rng.random(rows)
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=group)
    command = [sys.executable, "-c", PEAK, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    n, peak = map(int, done.stdout.split())
    assert n == rows
    assert peak < 400 * 1024


# The command line


def call(*args, **options):
    result = CliRunner().invoke(main, [str(arg) for arg in args], **options)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_bad_row_of_a_small_folder_is_named_with_its_file(tmp_path):
    spread(tmp_path, changed("p", 137, 1.5))
    result = call("ece", tmp_path)
    assert result.exit_code == 2
    assert (
        result.stderr == f"Error: {tmp_path}/part-1.parquet: scores must lie in [0, 1], got 1.5 at row 48\n"
    )


def test_the_page_shows_what_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/data.md").read_text()
    section = re.search(r"^## Files\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S)[1]
    code, kept = re.findall(r"^```python\n(.*?)^```$", section, flags=re.M | re.S)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "predictions").mkdir()
    spread(tmp_path / "predictions", ONE)
    write("2026-05-01.parquet", MANY)
    table = MANY.rename_columns(["target", *MANY.column_names[1:]])
    for name in ("a.csv", "b.csv.gz"):
        write(name, table)
    space = {"calibrant": calibrant}
    exec(compile(code, "docs/data.md", "exec"), space)
    assert space["sketch"].n == N
    assert list(space["groups"]) == ["dk", "no", "se"]
    assert "300 of 300 rows" in capsys.readouterr().err
    exec(compile(kept, "docs/data.md", "exec"), space)
    assert space["sketch"].totals.rows == N


@pytest.mark.full
def test_the_benchmark_runs(tmp_path):
    sizes = ["--rows", "3000", "--csv", "3000", "--wide", "50", "--classes", "30", "--rounds", "1"]
    command = [sys.executable, str(ROOT / "benchmarks/files.py"), *sizes, "--folder", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.count("Sketch.from_files") == 4
    assert done.stdout.count("pyarrow, bare reading") == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "double-1000",
        "double-3000",
        "text-1000",
        "text-3000",
        "wide-100x30",
        "wide-50x30",
    ]


@pytest.mark.full
def test_the_benchmark_of_engines_runs(tmp_path):
    options = ["--rows", "3000", "--rounds", "1", "--engines", "polars", "duckdb", "--folder", str(tmp_path)]
    command = [sys.executable, str(ROOT / "benchmarks/engines.py"), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert [line.split(" ")[:2] for line in done.stdout.splitlines()[1:]] == [
        ["polars,", "plain"],
        ["polars,", "sketch"],
        ["duckdb,", "plain"],
        ["duckdb,", "sketch"],
    ]


@pytest.mark.parametrize("spellings", [["no", " no", "se"], ["1", "1.0", "01"]])
def test_spellings_of_one_group_are_one_group(tmp_path, spellings):
    rows = "".join(f"{k % 2},{k % 10 / 10},{spellings[k % 3]}\n" for k in range(30))
    (tmp_path / "a.csv").write_text("label,score,g\n" + rows)
    found = Sketch.from_files_by_group(tmp_path / "a.csv", groups="g")
    assert sum(one.totals.rows for one in found.values()) == 30
    assert len(found) == len({text.strip() for text in spellings} - {"1.0", "01"})


def test_labels_follow_the_order_of_columns(tmp_path):
    write(tmp_path / "a.parquet", MANY.select(["label", "p_eel", "p_cat", "p_dog"]))
    by_name = Sketch.from_files(tmp_path / "a.parquet", notion="classwise")
    labels = ("eel", "cat", "dog")
    given = Sketch.from_files(tmp_path / "a.parquet", notion="classwise", labels=labels)
    assert by_name.labels == given.labels == labels
    assert by_name.digest == given.digest
    expected = calibrant.ece(TRUTH, PROB, notion="classwise", labels=NAMES, estimator="l:10")
    assert given.ece(estimator="l:10") == pytest.approx(expected, abs=1e-12)


def test_a_positive_class_that_never_occurs_is_refused_at_the_end(tmp_path):
    write(tmp_path / "a.parquet", MANY)
    message = refusal(tmp_path / "a.parquet", scores="p_dog", pos_label="fox", batch_rows=50)
    assert message == f"{tmp_path / 'a.parquet'}: pos_label must be one of 'cat', 'dog', 'eel', got 'fox'"
    order = pa.array(np.argsort(TRUTH == "dog", kind="stable"))
    write(tmp_path / "a.parquet", MANY.take(order))
    assert Sketch.from_files(tmp_path / "a.parquet", scores="p_dog", pos_label="dog", batch_rows=50).n == N
