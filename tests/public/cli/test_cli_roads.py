"""Commands that know their own files, refuse what they do not write, and name what they cannot know."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from calibrant import Sketch
from calibrant.cli import main

RNG = np.random.default_rng(0)
P = RNG.random(60)
Y = (RNG.random(60) < P).astype(int)


def run(*words):
    done = CliRunner().invoke(main, [*map(str, words)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"y": Y, "p": P, "day": Y, "country": "no"}).to_csv("a.csv", index=False)
    Sketch("binary").update(Y, P).save("a.sketch")
    return tmp_path


@pytest.mark.full
@pytest.mark.parametrize("name", ["a.sketch", "a.parquet", "a"])
def test_a_sketch_is_known_by_its_content(folder, name):
    os.replace("a.sketch", name)
    found = json.loads(run("ece", name, "--json").stdout)
    rows = json.loads(run("ece", "a.csv", "--json").stdout)
    assert found["value"] == pytest.approx(rows["value"], abs=1e-6)
    assert (found["read"], found["rows"], found["source"]) == ("sums", 60, name)
    assert run("check", name, "--max-ece", "0.9").exit_code == 0
    assert run("curve", name, "--at", "0.5").exit_code == 0
    assert run("report", name, "-q", "-o", "page.html").exit_code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["ece", "a.sketch", "--label", "y"], "which has no columns; leave out --label"),
        (["report", "a.sketch", "--groups", "day"], "leave out --groups"),
        (["ece", "a.sketch", "--notion", "classwise"], "is a sketch of --notion binary"),
        (["compare", "a.sketch", "a.csv", "--cluster", "day"], "a sketch has no clusters"),
        (["recommend", "a.sketch"], "got a sketch, which holds sums; calibrant ece, curve, compare"),
        (["ece", "empty.sketch"], "is a sketch of no rows"),
        (["ece", "cut.sketch"], "cut.sketch: sketch must be a whole file"),
    ],
)
def test_what_a_sketch_cannot_answer_is_refused(folder, words, text):
    Sketch("binary").save("empty.sketch")
    (folder / "cut.sketch").write_bytes((folder / "a.sketch").read_bytes()[:-9])
    done = run(*words)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.parametrize(
    "words", [["curve", "a.csv"], ["demo"], ["experiment", "figure1"]], ids=lambda words: words[-1]
)
def test_other_outputs_in_other_formats_are_refused(folder, words):
    done = run(*words, "-o", "out.xls")
    assert done.exit_code == 2
    assert "out.xls ends in none of" in done.stderr


@pytest.mark.full
def test_reports_without_a_suffix_are_written(folder):
    assert run("report", "a.csv", "-q", "-o", "page").exit_code == 0
    assert run("report", "a.csv", "-q", "-o", "page.HTM").exit_code == 0


def test_a_column_is_named_once(folder):
    done = run("report", "a.csv", "--groups", "day", "--groups", "country")
    assert done.exit_code == 2
    assert "it names one column, got day, country; for groups of several columns join them" in done.stderr
    done = run("report", "a.csv", "--groups", "day,country")
    assert done.exit_code == 2
    assert "groups of several columns need one column that joins them" in done.stderr
    assert run("ece", "a.csv", "--label", "y", "--label", "day").exit_code == 2


def test_the_class_of_two_named_columns_is_asked_for(folder):
    frame = pd.DataFrame({"y": np.where(Y, "yes", "no"), "p_yes": P, "p_no": 1 - P})
    frame.to_csv("b.csv", index=False)
    for command in (["ece", "b.csv"], ["recommend", "b.csv"], ["compare", "b.csv", "b.csv"]):
        done = run(*command, "--notion", "binary")
        assert done.exit_code == 2
        assert "--pos-label must name one of ['yes', 'no']" in done.stderr
    done = run("ece", "b.csv", "--notion", "binary", "--pos-label", "yes", "--json")
    assert json.loads(done.stdout)["label"] == "yes"


def test_predicted_labels_are_told_by_the_command_line(folder):
    pd.DataFrame({"y_true": Y, "y_pred": Y}).to_csv("c.csv", index=False)
    done = run("ece", "c.csv")
    assert done.exit_code == 2
    assert "got 0 and 1 alone; these may be predicted labels: name the scores by --scores" in done.stderr


@pytest.mark.skipif(os.name == "nt" or os.uname().sysname == "Darwin", reason="names are Unicode there")
def test_commands_print_names_that_are_not_utf8(folder):
    os.replace("a.csv", "a\udcff.csv")
    name = "a\udcff.csv"
    assert json.loads(run("ece", name, "--json").stdout)["source"] == "a\\udcff.csv"
    done = run("report", name, "-q")
    assert "a\\udcff-report.html" in done.stdout
    assert "a\\udcff.csv" in (folder / "a\udcff-report.html").read_text()
    assert run("check", name, "--max-ece", "0.9", "--junit", "j\udcff.xml").exit_code == 0
    assert "a\\udcff.csv" in (folder / "j\udcff.xml").read_text()
    assert "a\\udcff" in run("compare", name, name).stdout
    assert "no\\udcff.csv" in run("ece", "no\udcff.csv").stderr
    assert "\\udcff" in run("curve", name, "--at", "0.5", "-o", "c\udcff.csv").stdout
