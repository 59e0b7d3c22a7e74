"""The commands that read a file, as a person or a build uses them."""

import csv
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main

matplotlib.use("Agg")
ROOT = Path(__file__).parents[3]
N = 150
RNG = np.random.default_rng(0)
CLASSES = ("cat", "dog", "eel")
PROB = RNG.dirichlet(np.ones(3), N)
# The model is overconfident: labels come from half its scores, half chance.
CODE = np.array([RNG.choice(3, p=(row + 1 / 3) / 2) for row in PROB])
TRUTH = np.array(CLASSES, dtype=object)[CODE]
SCORE, BINARY = PROB[:, 0], (CODE == 0).astype(int)
LABELLED = {"labels": CLASSES}


def call(*args, stdin=None):
    result = CliRunner().invoke(main, [str(arg) for arg in args], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def told(*args, **options):
    result = call(*args, **options)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def as_json(*args, **options):
    return json.loads(told(*args, "--json", **options))


def refused(*args, **options):
    """The one line that a mistake is told in."""
    result = call(*args, **options)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    return line


def program(*args, **options):
    """The program itself, in a process of its own."""
    command = [sys.executable, "-m", "calibrant", *map(str, args)]
    options = {"capture_output": True, "text": True, "check": False, "timeout": 60} | options
    return subprocess.run(command, **options)


def write_csv(path, columns, delimiter=","):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, delimiter=delimiter)
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    return path


def matrix(prob, stem="p_"):
    return {f"{stem}{name}": prob[:, k].tolist() for k, name in enumerate(CLASSES)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same predictions in every format."""
    import pyarrow as pa
    from pyarrow import feather, parquet

    where = tmp_path_factory.mktemp("data")
    country = ["no" if k % 3 else "yes" for k in range(N)]
    weight = (1 + np.arange(N) % 3).tolist()
    columns = {"label": TRUTH.tolist(), **matrix(PROB), "country": country, "n": weight}
    write_csv(where / "data.csv", columns)
    write_csv(where / "data.tsv", columns, "\t")
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (where / "data.jsonl").write_text("\n".join(map(json.dumps, rows)))
    parquet.write_table(pa.table(columns), where / "data.parquet")
    feather.write_feather(pa.table(columns), where / "data.feather")
    with pa.ipc.new_file(where / "data.arrow", pa.table(columns).schema) as file:
        file.write_table(pa.table(columns))
    np.savez(where / "data.npz", y_true=TRUTH.astype(str), y_prob=PROB)
    write_csv(where / "binary.csv", {"y": BINARY.tolist(), "score": SCORE.tolist(), "n": weight})
    sharper = PROB**2 / (PROB**2).sum(axis=1, keepdims=True)
    write_csv(where / "other.csv", {**dict(reversed(matrix(sharper).items())), "label": TRUTH.tolist()})
    both = {"label": TRUTH.tolist(), **matrix(PROB, "old_"), **matrix(sharper, "new_")}
    write_csv(where / "both.csv", both)
    return where


@pytest.fixture
def here(folder, monkeypatch, tmp_path):
    """An empty directory to work in, with the data beside it."""
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture(scope="module")
def confidence():
    return calibrant.estimate(TRUTH, PROB, rng=0, **LABELLED)


# Numbers


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet", "feather", "arrow", "npz"])
def test_every_format_gives_the_estimate_of_the_arrays(folder, confidence, suffix):
    path = folder / f"data.{suffix}"
    found = as_json("ece", path)
    assert found.pop("source") == f"data.{suffix}"
    assert found.pop("rows") == N
    assert found.pop("read") == "rows"
    assert found.pop("dropped") == 0
    assert found == json.loads(confidence.to_json())
    assert as_json("ece", "-", stdin=path.read_bytes())["value"] == confidence.value


def test_ece_prints_the_estimate(folder, confidence):
    assert told("ece", folder / "data.csv") == f"{confidence}\n"
    options = ["--notion", "binary", "--pos-label", "dog", "--estimator", "uniform:10", "--norm", "l2"]
    options += ["--level", "0.9", "--seed", "3", "--counts", "n"]
    wanted = calibrant.estimate(
        TRUTH,
        PROB,
        notion="binary",
        pos_label="dog",
        estimator="uniform:10",
        norm="l2",
        level=0.9,
        rng=3,
        counts=1 + np.arange(N) % 3,
        **LABELLED,
    )
    assert told("ece", folder / "data.csv", *options) == f"{wanted}\n"


def test_python_and_the_command_line_have_one_default_seed(folder):
    found = calibrant.estimate(BINARY, SCORE)
    assert as_json("ece", folder / "binary.csv").items() >= found.to_dict().items()
    assert told("ece", folder / "binary.csv").startswith(str(found).splitlines()[0])
    fresh = [calibrant.estimate(BINARY, SCORE, rng=None).seed for _ in range(2)]
    assert fresh[0] != fresh[1]


def test_every_public_function_and_option_has_the_same_seed():
    from calibrant.sklearn import ReliabilityDisplay

    public = [getattr(calibrant, name) for name in calibrant.__all__]
    public += [ReliabilityDisplay.from_predictions, ReliabilityDisplay.from_estimator]
    public += [getattr(calibrant.Sketch, name) for name in dir(calibrant.Sketch) if name[0] != "_"]
    parameters = [inspect.signature(each).parameters for each in public if inspect.isroutine(each)]
    seeds = [each["rng"].default for each in parameters if "rng" in each]
    assert len(seeds) >= 11
    assert {*seeds} == {0}
    options = [option for command in main.commands.values() for option in command.params]
    assert {option.default for option in options if option.name == "seed"} == {0}


def test_ece_by_class(folder):
    found = as_json("ece", folder / "data.csv", "--notion", "classwise", "--estimator", "l:5")
    wanted = calibrant.ece(TRUTH, PROB, notion="classwise", estimator="l:5", **LABELLED)
    assert found["value"] == wanted
    assert [one["label"] for one in found["by_class"]] == list(CLASSES)


def test_a_vector_of_scores(folder):
    wanted = calibrant.estimate(BINARY, SCORE, rng=0)
    assert told("ece", folder / "binary.csv") == f"{wanted}\n"
    texts = f"label,p\n{''.join(f'{t},{p!r}' + chr(10) for t, p in zip(TRUTH, SCORE.tolist(), strict=True))}"
    assert as_json("ece", "-", "--pos-label", "cat", stdin=texts)["value"] == wanted.value


def test_curve_at_several_scores(folder):
    for at in (["--at", "0.5,0.9"], ["--at", "0.5", "--at", ".9"]):
        found = as_json("curve", folder / "data.csv", *at)
        assert [point["score"] for point in found["points"]] == [0.5, 0.9]
        assert found["value"] == found["points"][0]["value"]
    assert told("curve", folder / "data.csv", "--at", "0.5,0.9").count("observed frequency") == 2


def test_curve_by_class(folder):
    lines = told("curve", folder / "data.csv", "--at", "0.4", "--notion", "classwise").splitlines()
    assert [line.rpartition(" ")[2] for line in lines] == ["cat)", "dog)", "eel)"]
    assert all(line.startswith("score 0.4: observed frequency ") for line in lines)
    points = as_json("curve", folder / "data.csv", "--at", "0.4", "--notion", "classwise")["points"]
    assert [point["label"] for point in points] == list(CLASSES)


def test_a_score_without_rows_is_told(folder):
    assert told("curve", folder / "data.csv", "--at", "0.1") == "score 0.1: has no rows nearby (confidence)\n"
    assert as_json("curve", folder / "data.csv", "--at", "0.1")["value"] is None


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "start", "notion"),
    [("a.png", b"\x89PNG", "confidence"), ("b.SVG", b"<?xml", "classwise"), ("c.pdf", b"%PDF", "confidence")],
)
def test_curve_is_drawn(here, name, start, notion):
    out = told("curve", here / "data.csv", "--notion", notion, "-o", name)
    assert out == f"picture: {Path(name).resolve()}\n"
    assert Path(name).read_bytes().startswith(start)


def test_curve_is_written_as_a_table(here):
    result = call("curve", here / "data.csv", "-o", "curve.csv", "--at", "0.5", "--json")
    assert json.loads(result.stdout)["score"] == 0.5
    assert result.stderr == f"table: {Path('curve.csv').resolve()}\n"
    curve = calibrant.reliability_curve(TRUTH, PROB, **LABELLED)
    with open("curve.csv") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["score"]) for row in rows] == curve.score.tolist()
    np.testing.assert_array_equal([float(row["low"] or "nan") for row in rows], curve.low)
    told("curve", here / "data.csv", "-o", "classes.csv", "--notion", "classwise")
    with open("classes.csv") as file:
        assert {row["label"] for row in csv.DictReader(file)} == set(CLASSES)


def test_a_curve_is_the_posterior_or_a_ratio_of_densities(folder):
    by_posterior, by_score = (
        calibrant.reliability_curve(TRUTH, PROB, method=method, rng=0, **LABELLED).at(0.7).value
        for method in ("bayes", "density")
    )
    for options, value in (
        ([], by_posterior),
        (["--method", "bayes"], by_posterior),
        (["--method", "density"], by_score),
        (["--bandwidth", "silverman"], by_score),
    ):
        assert as_json("curve", folder / "data.csv", "--at", "0.7", *options)["value"] == value
    both = ["--method", "bayes", "--bandwidth", "0.1"]
    assert "goes with --method density" in refused("curve", folder / "data.csv", "--at", "0.7", *both)


def test_a_curve_has_a_simultaneous_band_on_request(folder):
    asked = "curve", folder / "data.csv", "--at", "0.7"
    single, whole = as_json(*asked), as_json(*asked, "--simultaneous")
    assert whole["value"] == single["value"]
    assert whole["low"] < single["low"]
    assert whole["high"] > single["high"]
    assert "--method bayes" in refused(*asked, "--simultaneous", "--method", "density")


def test_a_curve_of_few_scores_and_of_few_rows_says_so(here):
    rows = [f"{score},{int(k % 10 < 10 * score)}" for score in (0.2, 0.6) for k in range(50)]
    Path("few.csv").write_text("\n".join(["score,label", *rows]))
    occurs, between = told("curve", "few.csv", "--at", "0.2,0.4").splitlines()
    assert occurs.startswith("score 0.2: observed frequency 0.2")
    assert "50 rows (binary, class 1)" in occurs
    assert between == "score 0.4: does not occur (binary, class 1)"
    scores = [0.1 + 0.3 * k / 200 for k in range(200)]
    rows = [f"{score},{int(k % 3 == 0)}" for k, score in enumerate([*scores, 0.9])]
    Path("lonely.csv").write_text("\n".join(["score,label", *rows]))
    assert "effective local sample size 1, too few to tell (binary, class 1)" in told(
        "curve", "lonely.csv", "--at", "0.9"
    )


def test_compare_names_files_of_one_name(folder):
    found = as_json("compare", folder / "data.csv", folder / "data.npz", folder / "other.csv")
    assert list(found["estimates"]) == ["data", "data-2", "other"]
    assert found["estimates"]["data"] == found["estimates"]["data-2"]  # whose classes have no names


def test_compare_needs_the_same_labels(folder, tmp_path):
    changed = TRUTH.copy()
    changed[[4, 7]] = ["eel" if changed[4] != "eel" else "cat", "eel" if changed[7] != "eel" else "cat"]
    write_csv(tmp_path / "changed.csv", {"label": changed.tolist(), **matrix(PROB)})
    line = refused("compare", folder / "data.csv", tmp_path / "changed.csv")
    assert f"got {TRUTH[4]!r} of 'data' and {changed[4]!r} of 'changed' at row 5" in line
    assert "differ in 2 rows" in line
    write_csv(tmp_path / "short.csv", {"label": TRUTH[:9].tolist(), **matrix(PROB[:9])})
    assert "same rows, got 150 of 'data' and 9 of 'short'" in refused(
        "compare", folder / "data.csv", tmp_path / "short.csv"
    )


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["data.csv"], ["--model NAME=SPEC"]),
        (["both.csv", "--model", "a=old_*"], ["at least twice"]),
        (["both.csv", "--model", "a"], ["'a' is not NAME=SPEC"]),
        (["both.csv", "--model", "a=old_*", "--model", "a=new_*"], ["'a' is given twice"]),
        (["data.csv", "other.csv", "--model", "a=p_*"], ["--model is for the models of one file"]),
        (
            ["both.csv", "--model", "a=x", "--model", "b=new_*"],
            ["--scores must be a column of the file, got 'x'"],
        ),
        (["data.csv", "other.csv", "--baseline", "x"], ["--baseline must be one of 'data', 'other'"]),
        (["-", "-"], ["only once"]),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_clear_line(folder, args, words):
    line = refused("compare", *(folder / arg if arg.endswith(".csv") else arg for arg in args))
    for word in words:
        assert word in line


def test_compare_is_about_one_class_and_the_same_classes(tmp_path):
    write_csv(tmp_path / "a.csv", {"y": BINARY.tolist(), "p_0": (1 - SCORE).tolist()})
    write_csv(tmp_path / "b.csv", {"y": BINARY.tolist(), "p_1": SCORE.tolist()})
    assert "the same class, got 0 for 'a' and 1 for 'b'" in refused(
        "compare", tmp_path / "a.csv", tmp_path / "b.csv"
    )
    write_csv(tmp_path / "c.csv", {"y": TRUTH.tolist(), **matrix(PROB)})
    write_csv(tmp_path / "d.csv", {"y": TRUTH.tolist(), **matrix(PROB), "p_fox": [0.0] * N})
    assert "the same classes" in refused("compare", tmp_path / "c.csv", tmp_path / "d.csv")
    bad = np.where(PROB[1, 2] == PROB, 1.5, PROB)
    write_csv(tmp_path / "e.csv", {"y": TRUTH.tolist(), **matrix(bad)})
    line = refused("compare", tmp_path / "c.csv", tmp_path / "e.csv")
    assert "e.csv: scores must lie in [0, 1], got 1.5 at row 2, column 'p_eel'" in line


# Recommend


@pytest.mark.full
def test_recommend_ranks_without_labels(folder, tmp_path):
    write_csv(tmp_path / "scores.csv", matrix(PROB))
    options = ["--estimator", "auto", "--estimator", "l:15", "--n", "60", "--seed", "1"]
    wanted = calibrant.recommend(PROB, estimators=["auto", "l:15"], n=60, rng=1)
    assert told("recommend", tmp_path / "scores.csv", *options) == f"{wanted}\n"
    found = as_json("recommend", folder / "data.csv", *options)
    assert found["value"] == wanted.best
    assert found["n"] == 60
    assert found["rows"] == N
    by_class = as_json(
        "recommend", folder / "data.csv", *options[:6], "--notion", "binary", "--pos-label", "dog"
    )
    assert by_class["label"] == "dog"


def test_check_writes_json_and_junit(here, confidence):
    for limit, code, status in ((0.99, 0, "pass"), (confidence.value, 3, "inconclusive"), (1e-9, 1, "fail")):
        result = call("check", here / "data.csv", "--max-ece", limit, "--json", "--junit", "report.xml")
        found = json.loads(result.stdout)
        assert result.exit_code == found["exit_code"] == code
        assert (found["status"], found["limit"], found["source"]) == (status, limit, "data.csv")
        assert found["estimate"] == json.loads(confidence.to_json())
        suite = ET.parse("report.xml").getroot()
        failures = suite.findall("testcase/failure")
        assert suite.attrib["tests"] == "1"
        assert int(suite.attrib["failures"]) == len(failures) == (code != 0)
        assert all(failure.attrib["type"] == status for failure in failures)
        assert suite.find("testcase").attrib["classname"] == "data.csv"
    call(
        "check",
        here / "data.csv",
        "--max-ece",
        confidence.value,
        "--inconclusive",
        "pass",
        "--junit",
        "report.xml",
    )
    assert ET.parse("report.xml").getroot().attrib["failures"] == "0"


@pytest.mark.parametrize(
    ("limit", "words"),
    [("5", "write 0.05"), ("0", "(0, 1]"), ("-1", "(0, 1]"), ("nan", "(0, 1]"), ("x", "valid float")],
)
def test_a_limit_lies_between_0_and_1(folder, limit, words):
    line = refused("check", folder / "data.csv", "--max-ece", limit)
    assert "--max-ece" in line
    assert words in line


def test_check_needs_an_interval(folder):
    line = refused("check", folder / "data.csv", "--max-ece", "0.1", "--estimator", "ks")
    assert "calibrant ece prints it" in line


# Report


@dataclass
class Assessed:
    """What the command needs of an assessment; its page says what it is grouped by."""

    verdict: str = "Fine \x1b[31mthroughout.\nNothing to add."
    recalibration: None = None
    grouped_by: str | None = None

    def to_html(self, path):
        Path(path).write_text(f"<html>{self.grouped_by}")

    def to_json(self):
        return '{"value": 1}'


@pytest.fixture
def assessed(monkeypatch):
    """An assessment that remembers what it was asked."""
    asked = []

    def assess(y_true, y_prob, **options):
        options["progress"](1, 2)
        asked.append((y_true, y_prob, options))
        return Assessed()

    monkeypatch.setattr(calibrant, "assess", assess, raising=False)
    return asked


def test_report_writes_and_says_where(here, assessed):
    assert told("report", here / "data.csv").splitlines() == [
        r"Fine \x1b[31mthroughout.",
        "Nothing to add.",
        f"report: {Path('data-report.html').resolve()}",
    ]
    y_true, y_prob, options = assessed[0]
    assert y_true.tolist() == TRUTH.tolist()
    np.testing.assert_array_equal(y_prob, PROB)
    assert options.pop("progress")
    assert options == {
        "notion": "confidence",
        "groups": None,
        "class_names": None,
        "name": "data.csv",
        "level": 0.95,
        "rng": 0,
        "n_resamples": None,
        "sample_weight": None,
        "counts": None,
        "labels": CLASSES,
        "pos_label": None,
        "cost": None,
        "tolerance": None,
        "missing": "raise",
        "command": "calibrant report data.csv",
    }


def test_report_passes_on_what_it_is_told(here, assessed):
    Path("names.txt").write_text("Katze\nHund\n\nAal\n", encoding="utf-8")
    args = [
        "--label",
        "label",
        "--scores",
        "p_*",
        "--groups",
        "country",
        "--sample-weight",
        "n",
        "--name",
        "May, 'all'",
    ]
    args += ["--class-names", Path("names.txt").resolve(), "--level", "0.9", "--seed", "2"]
    args += ["-o", Path("out.html").resolve(), "--json", "out.json", "-q"]
    out = told("report", here / "data.csv", *args).splitlines()
    assert out == [f"report: {Path('out.html').resolve()}", f"numbers: {Path('out.json').resolve()}"]
    options = assessed[0][2]
    assert options["groups"].tolist()[:3] == ["yes", "no", "no"]
    assert options["sample_weight"].tolist()[:3] == [1, 2, 3]
    assert options["class_names"] == ["Katze", "Hund", "Aal"]
    assert (options["name"], options["level"], options["rng"]) == ("May, 'all'", 0.9, 2)
    words = shlex.split(options["command"])
    assert words[:3] == ["calibrant", "report", "data.csv"]
    assert words[words.index("--class-names") + 1] == "names.txt"
    assert words[words.index("--out") + 1] == "out.html"
    assert words[words.index("--scores") + 1] == "p_*"
    assert not any(word.startswith("/") for word in words)
    assert json.loads(Path("out.json").read_text()) == {"value": 1}
    assert Path("out.html").read_text() == "<html>country"
    told("report", here / "data.csv", "--class-names", "a, b,c", "-o", "out.html")
    assert assessed[1][2]["class_names"] == ["a", "b", "c"]


@pytest.mark.full
def test_a_report_is_one_page_without_folders(here):
    out = told("report", here / "data.csv", "--groups", "country", "--name", "Spam & eggs", "-o", "page.html")
    assert out.splitlines()[-1] == f"report: {Path('page.html').resolve()}"
    page = Path("page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert "Spam &amp; eggs" in page
    assert "calibrant report data.csv --groups country" in page
    assert str(here) not in page


def test_report_of_standard_input(here, assessed):
    told("report", "-", stdin=(here / "data.csv").read_bytes())
    assert Path("stdin-report.html").exists()
    assert assessed[0][2]["command"] == "calibrant report -"


def test_a_report_that_cannot_be_written_is_one_clear_line(here, assessed, monkeypatch):
    assert "cannot write missing/x.html" in refused("report", here / "data.csv", "-o", "missing/x.html")
    assert assessed == []  # and nothing was computed for it

    def full(self, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Assessed, "to_html", full)
    line = refused("report", here / "data.csv", "-o", "x.html")
    assert line == "Error: cannot write x.html: No space left on device"
    for command in (
        ["check", "--max-ece", "1", "--junit", "missing/x.xml"],
        ["curve", "-o", "missing/x.png"],
    ):
        assert "cannot write missing/x" in refused(command[0], here / "data.csv", *command[1:])


# Pairs


def test_a_pair_of_columns_takes_the_place_of_label_and_scores(tmp_path):
    right, sure = (PROB.argmax(axis=1) == CODE).astype(int), PROB.max(axis=1)
    file = write_csv(tmp_path / "pairs.csv", {"hit": right.tolist(), "how_sure": sure.tolist()})
    pair = ["--correct", "hit", "--confidence", "how_sure"]
    found = as_json("ece", file, *pair, "--estimator", "l:10")
    assert found["value"] == calibrant.ece(right, sure, notion="correctness", estimator="l:10")
    assert found["notion"] == "correctness"
    assert "are no columns of --notion binary" in refused("ece", file, *pair, "--notion", "binary")
    plain = write_csv(tmp_path / "plain.csv", {"correct": right.tolist(), "confidence": sure.tolist()})
    assert as_json("ece", plain, "--estimator", "l:10")["notion"] == "correctness"
    assert "go together" in refused("ece", file, "--correct", "hit")
    assert "go together" in refused("ece", file, "--confidence", "how_sure")
    assert "take the place of --label and --scores" in refused("ece", file, *pair, "--label", "hit")


@pytest.mark.parametrize("command", [["ece"], ["check", "--max-ece", "0.1"], ["curve", "--at", "0.5"]])
def test_mistakes_in_a_pair_of_columns_are_told_by_the_options_that_named_them(tmp_path, command):
    columns = {"hit": [0, 1, 1], "three": [0, 1, 2], "sure": [0.2, 0.4, 0.9], "far": [0.2, 1.4, 0.9]}
    name, *options = command
    start = [name, write_csv(tmp_path / "pairs.csv", columns), *options]
    for correct, confidence, line in (
        ("three", "sure", "--correct must hold 0 and 1"),
        ("hit", "far", "--confidence must lie in [0, 1], got 1.4"),
        ("miss", "sure", "--correct must be a column of the file, got 'miss'"),
        ("hit", "miss", "--confidence must be a column of the file, got 'miss'"),
    ):
        assert line in refused(*start, "--correct", correct, "--confidence", confidence)
    assert "--label must be a column of the file" in refused(*start, "--label", "miss", "--scores", "sure")
    assert "scores must lie in [0, 1]" in refused(*start, "--label", "hit", "--scores", "far")


def test_a_notion_is_checked_before_anything_is_read():
    for command in ("ece", "curve --at 0.5", "check --max-ece 1", "report", "recommend"):
        name, *options = command.split()
        line = refused(name, "missing.csv", *options, "--notion", "confidense")
        assert "--notion must be one of" in line
        assert "did you mean 'confidence'" in line


# Mistakes


def columns_of(text):
    return f"label,p_0,p_1\n{text}\n"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            columns_of("0,0.5,0.5\n1,0.5,0.6"),
            [],
            ["scores must sum to 1 within 1e-06 in every row, got 1.1 at row 2"],
        ),
        (
            columns_of("0,0.5,0.5\n1,-0.5,1.5"),
            [],
            ["scores must lie in [0, 1], got -0.5 at row 2, column 'p_0'"],
        ),
        (
            columns_of("0,0.5,0.5\n1,0.5,n/a"),
            [],
            ["column 'p_1' must hold finite numbers, got 'n/a' at row 2"],
        ),
        (columns_of("0,0.5,0.5\n2,0.5,0.5"), [], ["labels must hold only the labels 0, 1, got 2 at row 2"]),
        (
            columns_of("0,0.5,0.5"),
            ["--label", "x"],
            ["--label must be a column of the file, got 'x'", "'p_0', 'p_1'"],
        ),
        (
            columns_of("0,0.5,0.5"),
            ["--scores", "q_*"],
            ["--scores must match columns of the file, got 'q_*'"],
        ),
        (
            columns_of("0,0.5,0.5"),
            ["--sample-weight", "w"],
            ["--sample-weight must be a column of the file, got 'w'"],
        ),
        (columns_of("0,0.5,0.5"), ["--counts", "w"], ["--counts must be a column of the file, got 'w'"]),
        (
            "label,p,w\n0,0.5,1.5\n",
            ["--counts", "w"],
            ["--counts must be whole numbers, got 1.5 at row 1", "give --sample-weight"],
        ),
        (
            "label,p,w\n0,0.5,1\n",
            ["--counts", "w", "--sample-weight", "w"],
            ["--sample-weight and --counts must not be given together"],
        ),
        (columns_of("0,0.5,0.5"), ["--level", "95"], ["--level must be", "write 0.95"]),
        (
            columns_of("0,0.5,0.5"),
            ["--estimator", "unifrom"],
            ["--estimator must be", "did you mean 'uniform'"],
        ),
        (columns_of("0,0.5,0.5"), ["--notion", "joint"], ["--notion", "'classwise'"]),
        (
            columns_of("0,0.5,0.5"),
            ["--notion", "binary", "--pos-label", "7"],
            ["--pos-label must be one of 0, 1, got 7"],
        ),
        (columns_of("0,0.5,0.5"), ["--format", "xls"], ["--format", "'parquet'"]),
        (columns_of("0,0.5,0.5"), ["--format", "parquet"], ["cannot be read"]),
        (
            "label,p,w\n0,0.5,-1\n",
            ["--sample-weight", "w"],
            ["--sample-weight must be finite, at least 0", "got -1.0 at row 1"],
        ),
        ("label,p\nyes,0.5\nno,0.5\n", [], ["'no', 'yes'", "--pos"]),
        ("", [], ["is empty"]),
    ],
)
def test_bad_data_is_one_clear_line(text, options, words):
    line = refused("ece", "-", *options, stdin=text)
    for word in words:
        assert word in line


def test_the_class_of_a_matrix_is_asked_for(folder):
    line = refused("ece", folder / "data.csv", "--notion", "binary")
    assert "--pos-label must name one of ['cat', 'dog', 'eel']" in line
    assert "--notion classwise" in line


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["ece"], "Missing argument 'PATH...'. (see main ece -h)"),
        (["ece", "missing.csv"], "cannot read missing.csv: No such file or directory"),
        (["ecee", "data.csv"], "No such command 'ecee'"),
        (["curve", "data.csv", "--csv", "--at", "0.83"], "--csv prints the whole curve"),
        (["curve", "data.csv", "--at", "1.5"], "'--at': 1.5 is no list of scores in [0, 1]"),
        (["curve", "data.csv", "--at", "a,b"], "a,b is no list of scores"),
        (["curve", "data.csv", "-o", "curve.xls"], "curve.xls ends in none of .png"),
        (["recommend", "data.csv", "--n", "0"], "--n"),
        (["check", "data.csv"], "give a limit: --max-ece, --max-regret with --cost, --max-oe,"),
    ],
)
def test_a_usage_that_is_wrong_is_one_clear_line(args, words):
    assert words in refused(*args)


def test_an_unknown_option_is_named():
    assert re.search("No such option:? '?--colour", refused("--colour"))  # click 8.2, or a later version


def test_text_of_a_file_cannot_command_the_terminal():
    rows = "".join(f"{'ab'[k % 2]}\x1b]0;owned\x07,0.{k}\n" for k in range(1, 9))
    out = told("ece", "-", "--pos-label", "a\x1b]0;owned\x07", stdin=f"label,p\n{rows}")
    assert r"class a\x1b]0;owned\x07" in out
    assert "\x1b" not in out
    refused("ece", "-", stdin=f"label,p\n{rows}")
    refused("ece", "-", stdin=f"label,\x1b]0;owned\x07\n{rows}")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("junk.csv", bytes(range(256)) * 10),
        ("text.csv", b"label,p\n" + b"0,0.5\n" * 16 + b"1,n/a\n"),
        ("pickle.npz", None),
        ("truncated.parquet", b"PAR1" + bytes(100)),
        ("deep.jsonl", b'{"label": ' + b"[" * 100_000),
    ],
)
def test_a_bad_file_ends_the_program_with_one_line(tmp_path, name, content):
    path = tmp_path / name
    if content is None:
        np.savez(path, y_true=np.array([{}, 1], dtype=object), y_prob=np.array([0.5, 0.5]))
    else:
        path.write_bytes(content)
    done = program("ece", path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"Error: {path}: ")


def test_a_missing_extra_is_named(here, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        assert "pip install 'calibrant[files]'" in refused("ece", here / "data.parquet")
        assert "pip install 'calibrant[files]'" in refused("ece", here / "data.csv")
        told("ece", here / "data.npz")
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'calibrant[plot]'" in refused("curve", here / "data.csv", "-o", "x.png")
    asked = ("regret", here / "data.csv", "--notion", "binary", "--pos-label", "cat", "-o", "x.png")
    assert "pip install 'calibrant[plot]'" in refused(*asked)
    # Before anything is read: this file is refused for other reasons.
    (here / "broken.csv").write_text("label,score\n1,x\n")
    for command in ("curve", "regret"):
        assert "pip install 'calibrant[plot]'" in refused(command, here / "broken.csv", "-o", "x.png")
    assert "'x'" in refused("curve", here / "broken.csv", "-o", "x.csv")


# Manners


@pytest.mark.full
def test_the_module_is_a_program(folder, confidence):
    done = program("ece", folder / "data.csv")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{confidence}\n"


@pytest.mark.full
def test_a_closed_pipe_is_silent(folder):
    words = [sys.executable, "-m", "calibrant", "ece", str(folder / "data.csv"), "--json"]
    command = f"{shlex.join(words)} | true"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.full
def test_a_full_disk_is_one_line(folder):
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        done = program("ece", folder / "data.csv", capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr.splitlines() == ["Error: [Errno 28] No space left on device"]


def test_ctrl_c_is_one_line(monkeypatch, folder):
    def stopped(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrant, "estimate", stopped)
    result = call("ece", folder / "data.csv")
    assert result.exit_code == 130
    assert result.stderr == "Error: stopped\n"


def test_ctrl_c_ends_the_program(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    command = [sys.executable, "-m", "calibrant", "ece", str(tmp_path / "pipe"), "--format", "csv"]
    # The pipe opens once the program opens it too, and then waits for rows.
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running,
        open(tmp_path / "pipe", "w"),
    ):
        time.sleep(0.1)
        running.send_signal(signal.SIGINT)
        _, error = running.communicate(timeout=60)
    assert running.returncode == 130
    assert error == "Error: stopped\n"


COMMANDS = ("ece", "curve", "compare", "recommend", "regret", "check", "report")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_teaches(name):
    for flag in ("-h", "--help"):
        out = told(name, flag)
        assert out.startswith("Usage: ")
        assert 2 <= len(re.findall(rf"^ +(?:cat .* \| )?calibrant {name} ", out, flags=re.M)) <= 3
        assert "Exit codes: 0" in out


def test_help_tells_the_exit_codes_and_imports_little():
    code = (
        "import sys; from calibrant.cli import main\n"
        "for args in (['--help'], *([name, '-h'] for name in sys.argv[1:])):\n"
        "    try: main(args)\n"
        "    except SystemExit: pass\n"
        "heavy = {'matplotlib', 'pyarrow', 'pandas', 'sklearn', 'scipy.stats', 'scipy.fft'}\n"
        "heavy = heavy & set(sys.modules) | {m for m in sys.modules if m.startswith('calibrant.data')}\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *COMMANDS], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    for word in ("Exit codes:", "3    check, compare, audit: inconclusive", *COMMANDS):
        assert word in done.stdout


# The document

NUMBER = re.compile(r"\d+(?:\.\d+)?")


@pytest.mark.full
def test_the_document_shows_what_the_commands_print(tmp_path, monkeypatch):
    text = (ROOT / "docs/command-line.md").read_text()
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    exec(compile(code, "docs/command-line.md", "exec"), {})
    blocks = re.findall(r"^```console\n(.*?)^```$", text, flags=re.M | re.S)
    assert len(blocks) >= 8
    for block in blocks:
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.M):
            program, *args = shlex.split(command)
            assert program == "calibrant"
            printed = call(*args).output
            assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown), command
            # The last digit may depend on the versions of what computes it.
            found, wanted = (np.array(NUMBER.findall(one), dtype=float) for one in (printed, shown))
            np.testing.assert_allclose(found, wanted, rtol=0.02, atol=0.002, err_msg=command)


def test_the_document_names_commands_and_options_that_are():
    text = (ROOT / "docs/command-line.md").read_text()
    names = (*COMMANDS, "audit", "monitor")
    commands = [main, *map(main.commands.get, names), *main.commands["calibrate"].commands.values()]
    known = {option for command in commands for param in command.params for option in param.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)) <= known
    for name in COMMANDS:
        assert f"`calibrant {name} " in text


def test_a_report_of_an_earlier_check_does_not_outlive_a_refusal(tmp_path):
    out = tmp_path / "old.xml"
    out.write_text("<testsuite/>")
    bad = tmp_path / "bad.csv"
    bad.write_text("label,score\n1,high\n")
    command = [sys.executable, "-m", "calibrant", "check", str(bad), "--max-ece", "0.1", "--junit", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    (case,) = ET.parse(out).getroot().findall("testcase")
    assert case.find("error").attrib["message"] in done.stderr


def test_a_closed_standard_input_is_refused():
    code = "import sys; sys.stdin = None; from calibrant.cli import main; main()"
    command = [sys.executable, "-c", code, "ece", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "is closed" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("command", [["ece"], ["curve", "--at", "0.5"], ["check", "--max-ece", "0.5"]])
def test_a_positive_class_that_nothing_asks_about_is_refused(tmp_path, command):
    file = tmp_path / "data.csv"
    file.write_text("label,p_cat,p_dog,p_eel\ncat,0.5,0.3,0.2\ndog,0.1,0.6,0.3\neel,0.1,0.2,0.7\n")
    done = CliRunner().invoke(main, [command[0], str(file), *command[1:], "--pos-label", "cat"])
    assert done.exit_code == 2
    assert "add --notion binary" in done.output


@pytest.mark.parametrize("way", ["same", "dots", "link", "hard link", "within a folder", "pattern"])
@pytest.mark.parametrize(
    "command",
    [
        ("check", "--max-ece", "0.9", "--junit"),
        ("report", "-o"),
        ("report", "--json"),
        ("curve", "--at", "0.5", "-o"),
    ],
    ids=" ".join,
)
def test_an_output_that_is_an_input_is_refused_and_nothing_is_lost(tmp_path, monkeypatch, command, way):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in"
    folder.mkdir()
    source = folder / "in.csv"
    source.write_text("y,p\n" + "".join(f"{k % 2},0.{k % 9}5\n" for k in range(40)))
    before, given, output = source.read_bytes(), str(source), str(source)
    if way == "dots":
        output = str(folder / ".." / "in" / "in.csv")
    elif way == "link":
        (tmp_path / "out.csv").symlink_to(source)
        output = str(tmp_path / "out.csv")
    elif way == "hard link":
        os.link(source, tmp_path / "out.csv")
        output = str(tmp_path / "out.csv")
    elif way == "within a folder":
        given = str(folder)
    elif way == "pattern":
        given = str(folder / "*.csv")
    name, *options = command
    text = refused(name, given, *options, output)
    assert "is an input" in text
    assert source.read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == ["in.csv"]


def test_a_report_refuses_one_file_for_two_outputs_and_the_file_of_class_names(tmp_path):
    source, names = tmp_path / "in.csv", tmp_path / "names.txt"
    source.write_text("y,p\n0,0.2\n1,0.7\n")
    names.write_text("no\nyes\n")
    assert "two files" in refused("report", source, "-o", tmp_path / "a", "--json", tmp_path / "a")
    assert "is an input" in refused("report", source, "--class-names", names, "--json", names)
    assert names.read_text() == "no\nyes\n"
