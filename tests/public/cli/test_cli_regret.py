"""`calibrant regret` at thresholds of the caller: net benefits with intervals, and what is refused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Sketch, cli

RNG = np.random.default_rng(0)
SCORE = RNG.beta(1, 4, 400).round(3)
ILL = (RNG.random(400) < SCORE).astype(int)
PATIENT = np.arange(400) // 2


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "patients.csv"
    rows = [f"{y},{p},{c}" for y, p, c in zip(ILL, SCORE, PATIENT, strict=True)]
    path.write_text("\n".join(["y,score,patient", *rows]) + "\n")
    return str(path)


def run(*words):
    return CliRunner().invoke(cli.main, ["regret", *words])


@pytest.mark.parametrize(
    ("text", "thresholds"),
    [
        ("0.05,0.1,0.2", [0.05, 0.1, 0.2]),
        ("0.1:0.3:0.1", [0.1, 0.2, 0.3]),
        ("0.05,0.1:0.25:0.1", [0.05, 0.1, 0.2]),
        ("0.3", [0.3]),
    ],
)
def test_the_command_takes_a_list_or_a_range(file, text, thresholds):
    result = run(file, "--thresholds", text, "--cluster", "patient")
    assert result.exit_code == 0, result.output
    options = {"cluster": PATIENT}
    curve = calibrant.regret_curve(ILL, SCORE, thresholds=thresholds, **options)
    assert result.stdout == f"{curve}\n\n{calibrant.net_benefit(ILL, SCORE, thresholds, **options)}\n"


def test_json_holds_the_curve_and_the_table(file, tmp_path):
    Sketch().update(ILL, SCORE).save(tmp_path / "s.npz")
    for source in (file, str(tmp_path / "s.npz")):
        result = run(source, "--thresholds", "0.1,0.2", "--json", "--level", "0.9")
        values = json.loads(result.stdout)
        assert values["thresholds"] == [0.1, 0.2]
        table = calibrant.NetBenefit.from_dict(values["net_benefit_table"])
        expected = calibrant.net_benefit(ILL, SCORE, [0.1, 0.2], level=0.9)
        np.testing.assert_allclose(np.array(table.minus_all), np.array(expected.minus_all), atol=1e-9)
    assert "net_benefit_table" not in json.loads(run(file, "--json").stdout)


def test_a_picture_of_the_thresholds_is_drawn(file, tmp_path):
    result = run(file, "--thresholds", "0.05:0.3:0.01", "-o", str(tmp_path / "decisions.svg"))
    assert result.exit_code == 0, result.output
    assert (tmp_path / "decisions.svg").read_text().count("<svg") == 1


@pytest.mark.parametrize(
    "text", ["", "x", "0.1,", "0.3:0.1:0.1", "0.1:0.3:0", "0.1:0.3", "nan:1:1", "0.1:inf:1"]
)
def test_what_is_no_list_of_thresholds_is_refused(file, text):
    result = run(file, "--thresholds", text)
    assert result.exit_code == 2
    assert f"{text!r} is neither a list such as 0.05,0.1 nor a range such as 0.05:0.3:0.01" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--thresholds", "0.1,1.5"), "--thresholds must lie in [0, 1], got 1.5"),
        (("--thresholds", "0,0.5"), "--thresholds must be one or more numbers strictly between 0 and 1"),
        (("--thresholds", "0.1:0.9:0.0001"), "--thresholds must be at most 1000, got 1001"),
        (("--thresholds", "0.1", "--cost", "1:9"), "--thresholds goes without --cost"),
    ],
)
def test_thresholds_out_of_range_are_refused(file, words, message):
    result = run(file, *words)
    assert result.exit_code == 2
    assert message in result.output
