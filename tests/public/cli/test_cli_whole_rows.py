"""The canonical notion on the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from tests.reports import whole_rows

import calibrant
from calibrant import cli

LABELS = np.array(["wolf", "cat", "dog"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 90).round(4)
    p[:, 2] = (1 - p[:, 0] - p[:, 1]).round(4).clip(0)
    return LABELS[rng.integers(0, 3, 90)], p


@pytest.fixture(scope="module")
def path(rows, tmp_path_factory):
    at = tmp_path_factory.mktemp("rows") / "rows.csv"
    lines = [",".join([label, *map(str, row)]) for label, row in zip(*rows, strict=True)]
    at.write_text("\n".join(["label,p_wolf,p_cat,p_dog", *lines]) + "\n")
    return at


def run(*arguments):
    return CliRunner().invoke(cli.main, [str(argument) for argument in arguments])


@pytest.mark.parametrize("norm", ["l1", "mul"])
def test_ece_is_that_of_the_library(rows, path, norm):
    result = run("ece", path, "--notion", "canonical", "--norm", norm, "--json")
    assert result.exit_code == 0, result.output
    wanted = calibrant.estimate(*rows, notion="canonical", norm=norm, labels=LABELS, rng=0)
    found = json.loads(result.stdout)
    assert found["value"] == pytest.approx(wanted.value, abs=1e-12)
    assert (found["low"], found["high"], found["at_least"]) == (wanted.low, wanted.high, wanted.at_least)
    assert found["read"] == "rows"


def test_other_estimators_have_an_interval_and_other_measures_print_the_number_alone(rows, path):
    about = {"notion": "canonical", "labels": LABELS}
    result = run("ece", path, "--notion", "canonical", "--estimator", "variational:temperature")
    wanted = calibrant.estimate(*rows, estimator="variational:temperature", rng=0, **about)
    assert result.stdout == f"{wanted}\n"
    result = run("ece", path, "--notion", "canonical", "--estimator", "skce")
    assert result.stdout == f"{calibrant.ece(*rows, estimator='skce', **about):.4f}\n"
    refused = run("check", path, "--max-ece", "1", "--notion", "canonical", "--estimator", "skce")
    assert refused.exit_code == 2
    assert "estimate the ECE" in refused.output
    other = run("ece", path, "--notion", "canonical", "--estimator", "uniform:15")
    assert "'softmax', 'dirichlet', 'variational', 'skce'" in other.output


def test_models_are_compared_by_whole_rows(path):
    result = run("compare", path, path, "--notion", "canonical", "--norm", "mul", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {one["norm"] for one in found["estimates"].values()} == {"mul"}
    assert found["value"] == 0


def test_a_report_of_whole_rows(path, tmp_path, monkeypatch):
    asked, made = {}, whole_rows()

    def assess(*_, **options):
        asked.update(options)
        return made

    monkeypatch.setattr(calibrant, "assess", assess)
    out = tmp_path / "out.html"
    result = run("report", path, "--notion", "canonical", "-o", out)
    assert result.exit_code == 0, result.output
    assert asked["notion"] == "canonical"
    assert "wolf receives" in result.stdout
    assert "Probability transfer between classes" in out.read_text()


NOWHERE = {
    "curve": ("curve", "nowhere.csv", "--at", ".5"),
    "recommend": ("recommend", "nowhere.csv"),
    "map": ("calibrate", "fit", "nowhere.csv", "-o", "map.json"),
}


@pytest.mark.parametrize("command", NOWHERE.values(), ids=NOWHERE)
def test_what_looks_at_one_score_refuses_before_reading(command):
    result = run(*command, "--notion", "canonical")
    assert result.exit_code == 2
    assert "--notion must compare one score at a time here, got 'canonical'" in result.output
    assert "calibrant ece, compare, check and report measure canonical calibration" in result.output


WRONG = {
    "norm": (("ece", "nowhere.csv", "--norm", "max"), "--norm must be one of 'l1', 'l2', 'mul', got 'max'"),
    "cluster": (("ece", "nowhere.csv", "--cluster", "x"), "--cluster must go with one score at a time"),
    "limit": (("check", "nowhere.csv", "--max-ece", "5"), "5 does not lie in (0, 2]; write 0.05"),
    "limit of mul": (
        ("check", "nowhere.csv", "--max-ece", "1.5", "--norm", "mul"),
        "1.5 does not lie in (0, 1]; write 0.015",
    ),
}


@pytest.mark.parametrize(("command", "message"), WRONG.values(), ids=WRONG)
def test_options_that_do_not_go_with_it_are_refused_before_reading(command, message):
    result = run(*command, "--notion", "canonical")
    assert result.exit_code == 2
    assert message in result.output
