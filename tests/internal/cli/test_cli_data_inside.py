"""The commands that read a file, as a person or a build uses them."""

import csv
import errno
import json
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from io import StringIO

import matplotlib
import numpy as np
import pytest
from click.testing import CliRunner
from tests.reports import error_verdict

import calibrant
from calibrant import data as io
from calibrant.assessment.gates import Gate
from calibrant.cli import main, progress
from calibrant.cli import options as shared
from calibrant.cli import output as printed
from calibrant.cli.check import junit
from calibrant.inputs.wording import number, with_ends, with_interval
from reading import load

matplotlib.use("Agg")
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


@pytest.fixture(scope="module")
def confidence():
    return calibrant.estimate(TRUTH, PROB, rng=0, **LABELLED)


@pytest.mark.parametrize("options", [["--norm", "max"], ["--estimator", "smooth"], ["--estimator", "kuiper"]])
def test_what_has_no_interval_is_a_plain_number(folder, options):
    given = dict(zip([options[0].strip("-")], options[1:], strict=True))
    wanted = calibrant.ece(TRUTH, PROB, **given, **LABELLED)
    assert told("ece", folder / "data.csv", *options) == f"{number(wanted)}\n"
    found = as_json("ece", folder / "data.csv", *options)
    assert found["value"] == wanted
    assert found["notion"] == "confidence"
    assert found["rows"] == N


# Curve


def test_curve_says_what_a_score_means(folder):
    curve = calibrant.reliability_curve(TRUTH, PROB, **LABELLED)
    point = curve.at(0.83)
    assert told("curve", folder / "data.csv", "--at", "0.83") == (
        f"score 0.83: observed frequency {with_interval(point.value, point.low, point.high, 0.95)}, "
        f"effective local sample size {point.n_eff:.0f} (confidence)\n"
    )
    found = as_json("curve", folder / "data.csv", "--at", "0.83")
    assert [found[name] for name in ("value", "low", "high", "n_eff", "score")] == [
        *(point.value, point.low, point.high, point.n_eff),
        0.83,
    ]
    assert "points" not in found


def test_curve_prints_its_table(folder):
    curve = calibrant.reliability_curve(TRUTH, PROB, **LABELLED)
    assert told("curve", folder / "data.csv") == f"{curve}\n"
    assert as_json("curve", folder / "data.csv")["score"] == curve._thinned().score.tolist()
    by_class = told("curve", folder / "data.csv", "--notion", "classwise")
    assert [f"classwise, class {name}\n" in by_class for name in CLASSES] == [True] * 3
    assert len(as_json("curve", folder / "data.csv", "--notion", "classwise")["curves"]) == 3
    rows = list(csv.DictReader(told("curve", folder / "data.csv", "--csv").splitlines()))
    assert [float(row["score"]) for row in rows] == curve.score.tolist()
    assert "--csv prints the whole curve" in refused("curve", folder / "data.csv", "--csv", "--json")


# Compare


def test_compare_files_and_models(folder):
    other = load(str(folder / "other.csv"))
    assert other.labels == ("eel", "dog", "cat")  # columns in another order
    sharper = other.y_prob[:, ::-1]
    wanted = calibrant.compare(TRUTH, {"data": PROB, "other": sharper}, rng=0, **LABELLED)
    assert told("compare", folder / "data.csv", folder / "other.csv") == f"{wanted}\n"
    found = as_json("compare", folder / "data.csv", folder / "other.csv")
    assert found["value"] == wanted.differences["other"].value
    assert found["sources"] == ["data.csv", "other.csv"]
    assert {name: found[name] for name in wanted.to_dict()} == json.loads(wanted.to_json())
    models = ["--model", "data=old_*", "--model", "other=new_*"]
    assert told("compare", folder / "both.csv", *models) == f"{wanted}\n"
    turned = as_json("compare", folder / "both.csv", *models, "--baseline", "other")
    assert turned["value"] == -wanted.differences["other"].value


# Check


def test_check_says_by_its_exit_code_where_the_interval_lies(folder, confidence):
    low, high = confidence.low, confidence.high
    numbers = f"calibration error (confidence) {with_interval(confidence.value, low, high, 0.95)} "
    cases = [
        (high + 0.01, 0, f"PASS: {numbers}is within {high + 0.01:g}; 150 rows\n"),
        (high, 0, None),
        (low - 0.01, 1, f"FAIL: {numbers}is above {low - 0.01:g}; 150 rows\n"),
        (low, 3, None),
        ((low + high) / 2, 3, None),
    ]
    for limit, code, text in cases:
        result = call("check", folder / "data.csv", "--max-ece", repr(float(limit)))
        assert result.exit_code == code, result.output
        assert len(result.output.splitlines()) == 1
        assert text is None or result.output == text
    for choice, code in (("pass", 0), ("fail", 1)):
        result = call("check", folder / "data.csv", "--max-ece", high - 0.001, "--inconclusive", choice)
        assert result.exit_code == code
        assert result.output.startswith("INCONCLUSIVE: ")
        assert result.output.endswith(f", counted as {choice}\n")


def test_the_decision_of_check_does_not_depend_on_the_estimator(folder, confidence):
    for name in ("uniform:15", "density"):
        named = calibrant.estimate(TRUTH, PROB, estimator=name, rng=0, **LABELLED)
        # A limit on different sides of the two upper ends, so that the named interval would decide otherwise.
        limit = (confidence.high + named.high) / 2
        command = ("check", folder / "data.csv", "--max-ece", repr(float(limit)))
        plain, other = call(*command), call(*command, "--estimator", name)
        assert error_verdict(named, limit).exit_code != plain.exit_code == other.exit_code
        beside = f"{named.estimator}: {number(named.value)} (the default interval decides)"
        assert other.output == f"{plain.output.rstrip()}; {beside}\n"
        found = json.loads(call(*command, "--estimator", name, "--json").stdout)
        assert found["estimate"] == json.loads(confidence.to_json())
        assert found["named_estimate"] == json.loads(named.to_json())
    assert "always uses the interval of the default estimator" in " ".join(call("check", "-h").output.split())


def test_check_tells_how_many_rows_would_decide(confidence):
    for limit in (confidence.value + 0.02, confidence.value - 0.02):
        verdict = error_verdict(confidence, limit)
        assert verdict.status == "inconclusive"
        arm = (
            confidence.high - confidence.value
            if limit > confidence.value
            else confidence.value - confidence.low
        )
        assert verdict.rows == pytest.approx(N * (arm / 0.02) ** 2)
        (rows,) = re.findall(r"roughly ([\d,]+) rows would decide if the estimate stayed$", verdict.sentence)
        assert verdict.rows <= int(rows.replace(",", "")) <= 2 * verdict.rows
        assert re.fullmatch(r"[1-9]0*(?:,000)*", rows)
    # An interval that is cut off at 0 does not show how narrow it is.
    cut = replace(confidence, low=0.0)
    below = cut.value / 2
    assert error_verdict(cut, below).rows == pytest.approx(N * ((cut.high - cut.value) / below) ** 2)
    near = error_verdict(confidence, confidence.value)
    assert "more rows would hardly decide" in near.sentence


def test_junit_holds_no_character_that_xml_cannot(confidence):
    label = 'a<b>&"\x1b\x00\ufffe\ud800é'
    odd = error_verdict(replace(confidence, notion="binary", label=label), 0.5)
    text = junit(Gate((odd,)), 'x"<\x07>.csv')
    suite = ET.fromstring(text)
    assert suite.find("testcase").attrib["classname"] == 'x"<>.csv'
    assert '(class a<b>&"é)' in suite.find("testcase/system-out").text


def test_no_progress_where_there_is_no_terminal(folder, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0.001)
    told("recommend", folder / "data.csv", "--estimator", "auto", "--n", "50")


class Terminal(StringIO):
    """A terminal, and the lines that were drawn on it."""

    def isatty(self):
        return True

    def lines(self):
        return [re.sub(r"\x1b\[\?25[lh]", "", part).strip() for part in self.getvalue().split("\r")[1:]]


def terminal_of(monkeypatch, patience=0.0):
    """Make standard error a terminal."""
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


def test_progress_on_a_terminal(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress.Bar("working", quiet=False) as bar:
        for done in range(3):
            bar(done, 2)
    bars = ["-" * 36, "#" * 18 + "-" * 18, "#" * 36]
    assert terminal.lines()[-3:] == [
        f"working  [{full}]  {share:3}%" for full, share in zip(bars, (0, 50, 100), strict=True)
    ]
    before = terminal.getvalue()
    with progress.Bar("working", quiet=True) as bar:
        bar(1, 2)
    assert terminal.getvalue() == before


def test_progress_of_what_was_begun_before_and_of_files(monkeypatch):
    terminal = terminal_of(monkeypatch)
    with progress.Bar("models", quiet=False, resumed=True) as bar:
        bar(4, 10)
        bar(7, 10)
    assert terminal.lines()[-1].startswith("models (4 done before)  [" + "#" * 18 + "-")
    with progress.Bar("reading", quiet=False) as bar:
        bar.reading(io.ReadProgress(10, 40, 0, 1, 0.25, 1e6, 90.0))
    assert terminal.lines()[-1] == f"reading  [{'#' * 9}{'-' * 27}]   25%  1,000,000 rows/s"


def test_progress_appears_after_a_while(monkeypatch):
    terminal = terminal_of(monkeypatch, patience=60.0)
    with progress.Bar("working", quiet=False) as bar:
        bar(1, 2)
    assert terminal.getvalue() == ""


def test_progress_on_a_terminal_that_is_gone(monkeypatch):
    terminal = terminal_of(monkeypatch)

    def gone(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(terminal, "write", gone)
    with progress.Bar("working", quiet=False) as bar:
        bar(0, 2)
        bar(2, 2)


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert printed.coloured()
    monkeypatch.setenv("NO_COLOR", "1")
    assert not printed.coloured()
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert not printed.coloured()


def test_choices_are_those_of_the_library():
    assert shared.FORMATS == io.FORMATS


@pytest.mark.parametrize(
    ("command", "sizes"), [(["ece"], (3, 14)), (["check", "--max-ece", "0.9"], (3,))], ids=["ece", "check"]
)
def test_a_class_wise_answer_shows_the_classes_the_worst_first(tmp_path, command, sizes):
    rng = np.random.default_rng(0)
    for classes in sizes:
        names = [f"k{k}" for k in range(classes)]
        scores = rng.dirichlet(np.ones(classes), 100)
        label = rng.integers(0, classes, 100)
        file = tmp_path / f"{classes}.csv"
        rows = [[names[k], *map(repr, map(float, row))] for k, row in zip(label, scores, strict=True)]
        file.write_text("\n".join(map(",".join, [["label", *(f"p_{name}" for name in names)], *rows])))
        done = CliRunner().invoke(main, [command[0], str(file), *command[1:], "--notion", "classwise"])
        lines = done.stdout.splitlines()
        shown = [
            re.fullmatch(r"(k\d+) +([\d.]+) +([\d.]+) to ([\d.]+) +[\d.]+ +(?:<= )?[\d.]+", line)
            for line in lines[1:]
        ]
        shown = [line for line in shown if line]
        errors = [float(line[2]) for line in shown]
        assert errors == sorted(errors, reverse=True)
        assert len(errors) == min(classes, 12)
        assert ("2 classes with smaller errors are not shown." in lines) == (classes == 14)
        truth = [names[k] for k in label]
        expected = calibrant.estimate(truth, scores, notion="classwise", rng=0, labels=names)
        worst = max(expected.by_class.items(), key=lambda item: item[1].value)
        ends = with_ends(worst[1].value, worst[1].low, worst[1].high)
        assert shown[0].groups() == (worst[0], *ends)
