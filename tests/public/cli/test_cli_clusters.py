"""Clusters in files, by the command line and by `calibrant.data`."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli
from shortcuts import read_as_sums


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    cluster = np.repeat(np.arange(40), 6)
    p = rng.uniform(0.05, 0.95, 40)[cluster].round(3)
    y = rng.random(240) < rng.beta(2 * p, 2 - 2 * p)[6 * cluster]
    # Identifiers that begin as numbers and go on as text.
    patient = [str(k) if k < 30 else f"x{k}" for k in cluster]
    return pd.DataFrame(
        {"y": y.astype(int), "p": p, "q": (p**1.5).round(3), "patient": patient, "no": cluster}
    )


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def path(request, frame, tmp_path):
    at = tmp_path / f"rows.{request.param}"
    if request.param == "csv":
        frame.to_csv(at, index=False)
    elif request.param == "jsonl":
        frame.to_json(at, orient="records", lines=True)
    else:
        frame.to_parquet(at)
    return at


def run(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("column", ["patient", "no"])
def test_ece_reads_the_column(frame, path, column):
    result = run("ece", path, "--scores", "p", "--cluster", column, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    wanted = calibrant.estimate(frame.y, frame.p.to_numpy(), cluster=frame[column], rng=0)
    assert found["clusters"] == 40
    assert found["value"] == pytest.approx(wanted.value, abs=1e-12)
    assert (found["low"], found["high"], found["p_value"]) == pytest.approx(
        (wanted.low, wanted.high, wanted.p_value)
    )
    plain = json.loads(run("ece", path, "--scores", "p", "--json").stdout)
    assert plain["clusters"] is None
    assert plain["value"] > found["value"]


def test_a_gate_allows_for_clusters(path):
    options = ("--scores", "p", "--max-ece", "0.03")
    assert run("check", path, *options).exit_code == 1
    result = run("check", path, *options, "--cluster", "patient")
    assert result.exit_code == 3
    assert "; 240 rows in 40 clusters;" in result.output


def test_compare_takes_clusters_of_one_file_or_of_the_first(frame, tmp_path):
    both, old, new = (tmp_path / name for name in ("both.csv", "old.csv", "new.csv"))
    frame.to_csv(both, index=False)
    frame[["y", "p", "patient"]].to_csv(old, index=False)
    frame[["y", "q"]].rename(columns={"q": "p"}).to_csv(new, index=False)
    models = "--model", "old=p", "--model", "new=q"
    one = json.loads(run("compare", both, *models, "--cluster", "patient", "--json").stdout)
    other = json.loads(run("compare", old, new, "--cluster", "patient", "--json").stdout)
    assert one["differences"] == other["differences"]
    assert one["estimates"]["new"]["clusters"] == 40
    plain = json.loads(run("compare", both, *models, "--json").stdout)
    width = [each["differences"]["new"]["high"] - each["differences"]["new"]["low"] for each in (one, plain)]
    assert width[0] > width[1]


@pytest.mark.full
def test_a_report_says_how_many_clusters_there_are(path, tmp_path):
    page, numbers = tmp_path / "report.html", tmp_path / "report.json"
    result = run("report", path, "--scores", "p", "--cluster", "patient", "-o", page, "--json", numbers)
    assert result.exit_code == 0, result.output
    assert "240 rows in 40 clusters" in page.read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert json.loads(numbers.read_text())["estimates"]["binary"]["clusters"] == 40


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--cluster", "nobody"), "--cluster must be a column of the file, got 'nobody'"),
        (("--cluster", "hole"), "column 'hole' must have no missing values, got 1, the first at row 3"),
        (("--cluster", "one"), "--cluster must hold at least two clusters"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(frame, tmp_path, options, error):
    at = tmp_path / "rows.csv"
    frame.assign(hole=["a", "b"] + [None] + ["c"] * 237, one="a").to_csv(at, index=False)
    result = run("ece", at, "--scores", "p", *options)
    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1
    import re

    assert re.search(error, result.output), result.output


def test_a_large_file_with_clusters_stays_rows(path, monkeypatch):
    read_as_sums(monkeypatch)
    found = json.loads(run("ece", path, "--scores", "p", "--cluster", "patient", "--json", "-q").stdout)
    assert found["read"] == "rows"
    assert json.loads(run("ece", path, "--scores", "p", "--json", "-q").stdout)["read"] == "sums"


def test_the_commands_that_know_clusters_say_so():
    for command in ("ece", "check", "compare", "report", "curve", "calibrate fit", "calibrate compare"):
        assert "--cluster" in run(*command.split(), "--help").output
    assert "--cluster" not in run("sketch", "make", "--help").output
