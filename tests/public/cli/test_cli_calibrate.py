"""Maps from the command line: fitted, applied to new files, compared."""

import csv
import json
import re
import shlex

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Calibrator, Sketch, cli
from shortcuts import read_as_sums

RNG = np.random.default_rng(11)
N = 600
SCORE = RNG.random(N)
OUTCOME = (RNG.random(N) < SCORE**2).astype(int)
NAMES = ("cat", "dog", "eel")
MATRIX = RNG.dirichlet([1, 1, 1], N)
LABEL = [NAMES[k] for k in (RNG.random((N, 1)) > (0.5 * MATRIX + 1 / 6).cumsum(axis=1)).sum(axis=1)]


def write_csv(path, columns):
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))


def read_csv(path, delimiter=","):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_csv("one.csv", {"y": OUTCOME, "score": SCORE, "note": ['a "b", c'] * N, "empty": [""] * N})
    write_csv("many.csv", {"label": LABEL} | {f"p_{n}": MATRIX[:, k] for k, n in enumerate(NAMES)})
    table = {"y": OUTCOME, "p": SCORE, "when": np.arange(N).astype("M8[D]"), "tags": [["a", "b"]] * N}
    pq.write_table(pa.table(table), "one.parquet", row_group_size=100)
    return tmp_path


def run(*words, code=0):
    result = CliRunner().invoke(cli.main, ["calibrate", *words])
    assert result.exit_code == code, result.output
    if code:
        assert len(result.output.splitlines()) == 1, result.output
    return result.output


def test_a_map_is_fitted_and_applied_to_csv(here):
    output = run("fit", "one.csv", "-o", "map.json")
    assert output.splitlines() == [
        "auto map of the score of class 1, from 600 rows",
        f"map: {here / 'map.json'}",
    ]
    fitted = Calibrator.load("map.json")
    expected = Calibrator().fit(SCORE, OUTCOME)
    np.testing.assert_allclose(fitted.predict_proba(SCORE), expected.predict_proba(SCORE), atol=1e-12)
    assert run("apply", "map.json", "one.csv", "-o", "out.csv").splitlines() == [
        "600 rows of one.csv mapped by map.json",
        "to measure the calibrated probabilities, give --scores calibrated",
        f"rows: {here / 'out.csv'}",
    ]
    before, after = read_csv("one.csv"), read_csv("out.csv")
    assert list(after[0]) == ["y", "score", "note", "empty", "calibrated"]
    assert [{k: v for k, v in row.items() if k != "calibrated"} for row in after] == before
    mapped = [float(row["calibrated"]) for row in after]
    np.testing.assert_array_equal(mapped, fitted.predict_proba(SCORE))


@pytest.mark.parametrize(
    ("file", "interval", "before", "after"),
    [
        ("one.csv", (), "score", "calibrated"),
        ("one.csv", ("--interval",), "score", "calibrated"),
        ("many.csv", (), "p_*", "calibrated_*"),
        ("many.csv", ("--interval",), "p_*", "calibrated_cat,calibrated_dog,calibrated_eel"),
    ],
)
def test_scores_before_and_after_recalibration_are_not_mixed_up(here, file, interval, before, after):
    run("fit", file, "--method", "temperature", "-q", "-o", "map.json")
    told = run("apply", "map.json", file, *interval, "-o", "out.csv").splitlines()[1]
    assert told.endswith(f"give --scores {shlex.quote(after)}")
    for command in (["ece"], ["check", "--max-ece", "0.1"], ["report"], ["sketch", "make", "-o", "s.npz"]):
        result = CliRunner().invoke(cli.main, [*command, "out.csv"])
        assert result.exit_code == 2
        assert (
            f"out.csv: --scores must be '{after}' or '{before}': there are scores from before and after "
            "recalibration"
        ) in result.output
    frame = pd.read_csv("out.csv")
    labels, options = [*frame.columns[frame.columns.isin(["y", "label"])]], {"notion": "confidence"}
    new = frame.filter(regex=r"^calibrated(?!.*(low|high)$)").to_numpy().squeeze()
    value = calibrant.ece(frame[labels[0]], new, **options)
    result = CliRunner().invoke(
        cli.main, ["ece", "out.csv", "--scores", after, "--json", "--notion", "confidence"]
    )
    assert json.loads(result.output)["value"] == pytest.approx(value, abs=1e-9)


def test_parquet_keeps_its_types_and_has_an_interval(here):
    run("fit", "one.parquet", "-q", "-o", "map.json")
    run("apply", "map.json", "one.parquet", "--interval", "--level", "0.8", "-o", "out.parquet")
    before, after = pq.read_table("one.parquet"), pq.read_table("out.parquet")
    assert after.column_names == [*before.column_names, "calibrated", "calibrated_low", "calibrated_high"]
    assert after.select(before.column_names).equals(before)
    low, middle, high = (after[f"calibrated{end}"].to_numpy() for end in ("_low", "", "_high"))
    assert ((low <= middle) & (middle <= high)).all()
    fitted = Calibrator.load("map.json")
    np.testing.assert_array_equal(np.stack(fitted.predict_interval(SCORE, 0.8)), np.stack([low, high]))


def test_one_format_is_written_as_another(here):
    run("fit", "one.csv", "-o", "map.json")
    run("apply", "map.json", "one.csv", "-o", "out.parquet")
    run("apply", "map.json", "out.parquet", "--name", "again", "-o", "out.csv", "--scores", "score")
    run("apply", "map.json", "out.parquet", "--name", "again", "-o", "out.arrow", "--scores", "score")
    rows = read_csv("out.csv")
    assert [row["again"] for row in rows] == [row["calibrated"] for row in rows]
    assert pa.ipc.open_file("out.arrow").read_all()["again"].to_pylist() == [float(r["again"]) for r in rows]


CELLS = (
    "a\rb",
    "a\nb",
    "a\r\nb",
    "\r",
    'a"b',
    '"',
    '""',
    "a,b",
    "a;b",
    "a\tb",
    " a",
    "a ",
    " ",
    "\u00e9\r",
    "plain",
)


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_cells_of_text_are_read_back_by_every_reader(here, suffix):
    cells = [CELLS[k % len(CELLS)] for k in range(N)]
    pq.write_table(pa.table({"y": OUTCOME, "score": SCORE, "no\rte": cells}), "cells.parquet")
    run("fit", "cells.parquet", "-o", "map.json")
    out, delimiter = f"out.{suffix}", "\t" if suffix == "tsv" else ","
    run("apply", "map.json", "cells.parquet", "-o", out)
    rows = read_csv(out, delimiter)
    assert list(rows[0]) == ["y", "score", "no\rte", "calibrated"]
    assert [row["no\rte"] for row in rows] == cells
    assert pd.read_csv(out, sep=delimiter, keep_default_na=False)["no\rte"].tolist() == cells
    assert pl.read_csv(out, separator=delimiter)["no\rte"].to_list() == cells
    options = pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    assert pacsv.read_csv(out, parse_options=options)["no\rte"].to_pylist() == cells
    # And by the program itself, from CSV to CSV.
    run("apply", "map.json", out, "--scores", "score", "--name", "again", "-o", f"again.{suffix}")
    assert [row["no\rte"] for row in read_csv(f"again.{suffix}", delimiter)] == cells


def test_the_table_of_a_curve_quotes_its_labels(here):
    names = [f"{name}\rx" for name in LABEL]
    columns = {f"p_{name}\rx": MATRIX[:, k] for k, name in enumerate(NAMES)}
    pq.write_table(pa.table({"label": names, **columns}), "many.parquet")
    words = ["curve", "many.parquet", "--notion", "classwise", "-o", "curve.csv"]
    result = CliRunner().invoke(cli.main, words)
    assert result.exit_code == 0, result.output
    assert {row["label"] for row in read_csv("curve.csv")} == set(names)


def test_all_classes_are_mapped_whatever_the_order_of_the_columns(here):
    run("fit", "many.csv", "-o", "map.json")
    turned = {f"p_{n}": MATRIX[:, k] for k, n in reversed(list(enumerate(NAMES)))}
    write_csv("turned.csv", turned)
    run("apply", "map.json", "many.csv", "-o", "out.csv")
    run("apply", "map.json", "turned.csv", "-o", "turned-out.csv")
    names = [f"calibrated_{name}" for name in NAMES]
    mapped, again = (
        [[float(row[n]) for n in names] for row in read_csv(f)] for f in ("out.csv", "turned-out.csv")
    )
    np.testing.assert_array_equal(mapped, again)
    expected = Calibrator(labels=NAMES).fit(MATRIX, LABEL).predict_proba(MATRIX)
    np.testing.assert_allclose(mapped, expected, atol=1e-7)


def test_a_folder_is_written_as_one_file(here):
    (here / "new").mkdir()
    for k in range(2):
        write_csv(here / "new" / f"{k}.csv", {"score": SCORE[k::2]})
    run("fit", "one.csv", "-o", "map.json")
    run("apply", "map.json", "new", "-o", "out.csv")
    scores = [float(row["score"]) for row in read_csv("out.csv")]
    assert scores == [*SCORE[::2], *SCORE[1::2]]


@pytest.mark.full
def test_sums_fit_what_rows_fit(here, monkeypatch):
    run("fit", "one.csv", "-o", "rows.json")
    read_as_sums(monkeypatch)
    assert "read as sums" in run("fit", "one.csv", "-o", "sums.json")
    rows, sums = (Calibrator.load(f"{how}.json") for how in ("rows", "sums"))
    np.testing.assert_allclose(rows.predict_proba(SCORE), sums.predict_proba(SCORE), atol=1e-9)
    # All classes together need rows; each by itself, or the largest score, do not.
    assert "read as sums" not in run("fit", "many.csv", "-o", "many.json")
    assert "read as sums" in run("fit", "many.csv", "--notion", "classwise", "-o", "each.json")
    assert not Calibrator.load("each.json").is_vector
    assert "of the confidence" in run("fit", "many.csv", "--notion", "confidence", "-o", "top.json")


def test_pairs_have_a_map(here):
    write_csv("pairs.csv", {"is_right": OUTCOME, "conf": SCORE})
    columns = ("--correct", "is_right", "--confidence", "conf")
    assert "map of the confidence" in run("fit", "pairs.csv", *columns, "-o", "map.json")
    run("apply", "map.json", "pairs.csv", "--scores", "conf", "-o", "out.csv")


@pytest.mark.full
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fit", "one.csv", "-o", "one.csv"), "cannot write one.csv: it is an input"),
        (("apply", "map.json", "one.csv", "-o", "one.csv"), "cannot write one.csv: it is an input"),
        (
            ("fit", "one.csv", "--groups", "note", "-o", "x.json"),
            "for groups write the rows of each to a file",
        ),
        (("apply", "map.json", "one.csv", "-o", "map.json"), "cannot write map.json: it is an input"),
        (("fit", "one.csv", "--method", "temperatur", "-o", "m.json"), "did you mean 'temperature'?"),
        (("fit", "one.csv", "--method", "vector", "-o", "m.json"), "--method must be a map of one score"),
        (("apply", "one.csv", "one.csv", "-o", "out.csv"), "one.csv: saved_calibrator must be JSON"),
        (("apply", "none.json", "one.csv", "-o", "out.csv"), "none.json"),
        (("apply", "map.json", "many.csv", "-o", "out.csv"), "--scores must name the one column"),
        (("apply", "map.json", "one.csv", "-o", "out.xlsx"), "-o must end in .csv, .tsv, .parquet or .arrow"),
        (("apply", "map.json", "one.csv", "--name", "note", "-o", "out.csv"), "--name must be new"),
        (
            ("apply", "map.json", "bad.csv", "-o", "out.csv"),
            "bad.csv: scores must lie in [0, 1], got 1.5 at row 3",
        ),
        (("apply", "map.json", "other.csv", "-o", "out.csv"), "--scores must be of the class 1"),
        (
            ("apply", "map.json", "one.csv", "--interval", "--level", "0.7", "-o", "out.csv"),
            "--level must be one that was saved with the map",
        ),
        (("compare", "one.csv", "--method", "x"), "--method must be one of"),
    ],
)
def test_what_cannot_be_done_is_one_line(here, words, message):
    Calibrator("temperature").fit(SCORE, OUTCOME).save("map.json")
    write_csv("bad.csv", {"score": [0.1, 0.2, 1.5]})
    write_csv("other.csv", {"p_0": [0.1, 0.2, 0.5]})
    assert message in run(*words, code=2)
    assert not (here / "out.csv").exists()


def test_an_output_that_fails_leaves_the_old_one(here):
    Calibrator("temperature").fit(SCORE, OUTCOME).save("map.json")
    write_csv("bad.csv", {"score": [*SCORE, 1.5]})
    (here / "out.csv").write_text("old")
    run("apply", "map.json", "bad.csv", "-o", "out.csv", code=2)
    assert (here / "out.csv").read_text() == "old"
    assert {path.name for path in here.iterdir()} == {
        *("one.csv", "many.csv", "one.parquet", "map.json", "bad.csv", "out.csv")
    }


def test_classes_have_the_given_names(here):
    names = ("--class-names", "well,ill")
    assert "map of the score of class ill" in run("fit", "one.csv", *names, "-o", "map.json")
    assert Calibrator.load("map.json").class_names_ == ("well", "ill")
    sketch = Sketch("binary").update(OUTCOME, SCORE)
    sketch.save("one.sketch")
    run("fit", "one.sketch", *names, "-o", "again.json")
    assert Calibrator.load("again.json").class_names_ == ("well", "ill")
    assert "class ill\n" in run("compare", "one.csv", "--method", "temperature", *names)
    assert "2 classes" in run("fit", "one.csv", "--class-names", "a,b,c", "-o", "map.json", code=2)


def test_maps_are_compared(here):
    words = ("compare", "one.csv", "--method", "temperature", "--method", "logistic", "--folds", "4")
    output = run(*words)
    assert output.startswith("best: logistic, with a significantly lower log loss than all others")
    for title in ("log loss", "Brier score", "ECE"):
        assert f"  {title}" in output
    assert "notion of the ECE  binary, class 1\n" in output
    assert "data               600 rows in 4 folds, seed 0\n" in output
    values = json.loads(run(*words, "--json"))
    assert values["value"] == values["best"] == "logistic"
    assert values["best_group"] == ["logistic"]
    losses = {row["method"]: row["log_loss"]["value"] for row in values["table"]}
    assert set(losses) == {"logistic", "temperature", "identity"}
    assert list(losses.values()) == sorted(losses.values())
    assert values["source"] == "one.csv"


@pytest.mark.full
@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"correct": OUTCOME, "confidence": SCORE}, ()),
        ({"target": OUTCOME, "risk": SCORE, "age": OUTCOME}, ("--label", "target", "--scores", "risk")),
        ({"y": OUTCOME, "p_true": 1 - SCORE, "score": SCORE}, ("--scores", "score")),
        ({"score_class": OUTCOME, "p": SCORE}, ("--label", "score_class")),
        ({"yes": OUTCOME, "how": SCORE}, ("--correct", "yes", "--confidence", "how")),
    ],
)
def test_apply_takes_the_column_that_fit_took(here, monkeypatch, columns, options, sums):
    if sums:
        read_as_sums(monkeypatch)
    write_csv("in.csv", columns)
    run("fit", "in.csv", *options, "-q", "-o", "map.json")
    run("apply", "map.json", "in.csv", "-o", "out.csv")
    fitted = Calibrator.load("map.json")
    assert np.array_equal(
        [float(row["calibrated"]) for row in read_csv("out.csv")], fitted.predict_proba(SCORE)
    )


@pytest.mark.full
@pytest.mark.parametrize("sums", [False, True])
@pytest.mark.parametrize(
    ("names", "options", "taken"),
    [
        (("eel", "cat", "dog"), ("--scores", "eel,cat,dog"), None),
        (("p_dog", "p_cat", "p_eel"), ("--notion", "classwise"), None),
        (("p_dog", "p_cat", "p_eel"), ("--notion", "binary", "--pos-label", "eel"), 2),
    ],
)
def test_apply_takes_the_columns_that_fit_took(here, monkeypatch, names, options, taken, sums):
    if sums and "--notion" in options:
        read_as_sums(monkeypatch)
    own = [NAMES.index(name.removeprefix("p_")) for name in names]
    write_csv("in.csv", {"label": LABEL} | {n: MATRIX[:, k] for n, k in zip(names, own, strict=True)})
    run("fit", "in.csv", *options, "-q", "-o", "map.json")
    run("apply", "map.json", "in.csv", "-o", "out.csv")
    fitted, rows = Calibrator.load("map.json"), read_csv("out.csv")
    if taken is not None:
        assert fitted.classes_ == (("dog", "cat"), "eel")
        assert fitted.columns_ == ("p_eel",)
        found = [float(row["calibrated"]) for row in rows]
        assert np.array_equal(found, fitted.predict_proba(MATRIX[:, taken]))
        return
    assert fitted.columns_ == names
    found = [[float(row[f"calibrated_{name}"]) for name in fitted.classes_] for row in rows]
    order = [NAMES.index(name) for name in fitted.classes_]
    assert np.array_equal(found, fitted.predict_proba(MATRIX[:, order]))


def test_apply_finds_the_column_of_a_file_that_has_not_the_one_of_the_fit(here):
    write_csv("in.csv", {"target": OUTCOME, "risk": SCORE})
    run("fit", "in.csv", "--label", "target", "--scores", "risk", "-q", "-o", "map.json")
    run("apply", "map.json", "one.csv", "-o", "out.csv")
    mapped = [float(row["calibrated"]) for row in read_csv("out.csv")]
    np.testing.assert_array_equal(mapped, Calibrator.load("map.json").predict_proba(SCORE))


def test_methods_that_tie_are_told_as_a_group(here):
    words = ("compare", "one.csv", "--method", "platt", "--method", "logistic", "--folds", "4")
    assert run(*words).startswith("no single best method: 2 do not differ significantly in log loss\n")
    values = json.loads(run(*words, "--json"))
    assert values["value"] is values["best"] is None
    assert sorted(values["best_group"]) == ["logistic", "sigmoid"]


def test_the_report_says_what_to_do_and_the_command_does_it(here):
    result = CliRunner().invoke(
        cli.main, ["report", "one.csv", "--label", "y", "-o", "r.html", "--json", "r.json"]
    )
    assessment = calibrant.Assessment.from_json((here / "r.json").read_text())
    told = " ".join(result.output.split())
    action = r"action Recalibrate, fitting on these rows: cuts the error from \S+ to \S+ points"
    assert re.search(action, told)
    assert f"command {assessment.recalibration.command} " in told
    assert assessment.recalibration.command == "calibrant calibrate fit one.csv --label y -o map.json"
    assert assessment.recalibration.command in (here / "r.html").read_text()
    _, *words = shlex.split(assessment.recalibration.command)
    assert CliRunner().invoke(cli.main, words).exit_code == 0
    assert Calibrator.load("map.json").n_ == N


@pytest.mark.full
def test_the_report_of_one_class_of_many_names_a_command_that_runs(here):
    words = [
        "report",
        "many.csv",
        "--notion",
        "binary",
        "--pos-label",
        "dog",
        "-o",
        "r.html",
        "--json",
        "r.json",
    ]
    assert CliRunner().invoke(cli.main, words).exit_code == 0
    assessment = calibrant.Assessment.from_json((here / "r.json").read_text())
    _, *words = shlex.split(assessment.recalibration.command)
    assert CliRunner().invoke(cli.main, words).exit_code == 0


def test_a_sketch_is_enough(here):
    calibrant.Sketch("binary").update(OUTCOME, SCORE).save("day.sketch")
    assert "from 600 rows" in run("fit", "day.sketch", "-o", "map.json")
    mapped = Calibrator.load("map.json").predict_proba(SCORE)
    np.testing.assert_allclose(mapped, Calibrator().fit(SCORE, OUTCOME).predict_proba(SCORE), atol=1e-9)


def test_percentages_are_mapped_as_shares(here):
    write_csv("percent.csv", {"y": OUTCOME, "score": 100 * SCORE})
    run("fit", "one.csv", "-o", "shares.json")
    run("fit", "percent.csv", "--percent", "-o", "map.json")
    run("apply", "map.json", "percent.csv", "--percent", "-o", "out.csv")
    mapped = [float(row["calibrated"]) for row in read_csv("out.csv")]
    np.testing.assert_allclose(mapped, Calibrator.load("shares.json").predict_proba(SCORE), atol=1e-9)
