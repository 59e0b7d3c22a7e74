"""The action and the pre-commit hook run the commands that they contain."""

import os
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "name" in step}


@pytest.fixture
def predictions(tmp_path):
    """Write calibrated and overconfident predictions, few and many."""
    rng = np.random.default_rng(0)
    for name, power, rows in (("good", 1, 4000), ("bad", 3, 4000), ("few", 1, 40)):
        p = rng.random(rows)
        frame = pd.DataFrame({"y": (rng.random(rows) < p**power).astype(int), "p": p})
        frame.to_csv(tmp_path / f"{name}-predictions.csv", index=False)
    return tmp_path


def shell(folder, script, **inputs):
    """Run a step of the action as the runner does, with `calibrant` of this interpreter on the path."""
    program = folder / "bin" / "calibrant"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m calibrant "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    files = {name: str(folder / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        cwd=folder,
        env=os.environ | files | {"PATH": path} | inputs,
        capture_output=True,
        text=True,
        check=False,
    )


def check(folder, name, **changes):
    defaults = {
        key.upper().replace("-", "_"): str(value.get("default", ""))
        for key, value in ACTION["inputs"].items()
    }
    inputs = defaults | {"PREDICTIONS": name, "OPTIONS": "--label y --scores p"} | changes
    return shell(folder, STEPS["Check"]["run"], **inputs), inputs


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "changes", "result", "code"),
    [
        ("good-predictions.csv", {}, "PASS", 0),
        ("bad-predictions.csv", {}, "FAIL", 1),
        ("few-predictions.csv", {}, "INCONCLUSIVE", 3),
        ("few-predictions.csv", {"INCONCLUSIVE": "pass"}, "INCONCLUSIVE", 0),
        ("good-predictions.csv", {"OPTIONS": "--label y --scores missing_*"}, "ERROR", 2),
    ],
)
def test_the_action_reports_the_result(predictions, name, changes, result, code):
    ran, _ = check(predictions, name, **changes)
    assert ran.returncode == code, ran.stderr
    assert (predictions / "github_output").read_text() == f"result={result}\n"
    if result != "ERROR":
        assert result in (predictions / "github_step_summary").read_text().upper()


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "result"),
    [
        ({"CHECK_OPTIONS": "--baseline bad-predictions.csv --max-worse 0.1"}, "PASS"),
        (
            {"CHECK_OPTIONS": "--baseline bad-predictions.csv --max-worse 0.1", "MAX_ECE": "0.0001"},
            "INCONCLUSIVE",
        ),
        ({"OPTIONS": "--label y --scores p --max-oe 1.2"}, "PASS"),
    ],
)
def test_the_action_has_a_default_limit_only_if_there_is_no_other(predictions, options, result):
    ran, _ = check(predictions, "good-predictions.csv", **options)
    assert (predictions / "github_output").read_text() == f"result={result}\n", ran.stderr
    summary = (predictions / "github_step_summary").read_text()
    assert "0.05" not in summary.split("|---")[-1]
    assert ("ECE |" in summary) == ("MAX_ECE" in options)


@pytest.mark.full
def test_the_action_stores_a_report(predictions):
    ran = shell(
        predictions,
        STEPS["Report"]["run"],
        PREDICTIONS="good-predictions.csv",
        OPTIONS="--label y --scores p",
        REPORT="r.html",
    )
    assert ran.returncode == 0, ran.stderr
    assert (predictions / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_every_input_of_the_action_is_used():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name in ACTION["inputs"]:
        assert f"${{{{ inputs.{name} }}}}" in text


@pytest.mark.full
def test_the_hook_runs_a_gate(predictions):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    for name, code in (("good-predictions.csv", 0), ("bad-predictions.csv", 1)):
        ran = shell(predictions, shlex.join([*shlex.split(hook["entry"]), *hook["args"], name]))
        assert ran.returncode == code, ran.stderr


def test_the_configuration_is_valid():
    for path in [
        *ROOT.glob(".github/**/*.yml"),
        ROOT / ".readthedocs.yaml",
        ROOT / ".pre-commit-config.yaml",
    ]:
        assert yaml.safe_load(path.read_text(encoding="utf-8")), path
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    import calibrant

    assert citation["version"] == calibrant.__version__
