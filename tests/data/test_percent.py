"""Scores that are percentages, by every road of files: the numbers of shares, to the last bit."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli


@pytest.fixture(scope="module")
def answers():
    rng = np.random.default_rng(0)
    said = rng.choice([29, 57, 58, 80, 90, 95, 100], 600)
    return pd.DataFrame({"correct": (rng.random(600) < 0.008 * said).astype(int), "confidence": said})


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def paths(request, answers, tmp_path):
    """Files of percentages and of shares."""
    frames = {"percent": answers, "share": answers.assign(confidence=answers["confidence"] / 100)}
    for name, frame in frames.items():
        path = tmp_path / f"{name}.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        elif request.param == "jsonl":
            frame.to_json(path, orient="records", lines=True)
        else:
            frame.to_parquet(path)
    return tuple(str(tmp_path / f"{name}.{request.param}") for name in frames)


def asked(*arguments):
    done = CliRunner().invoke(cli.main, [*arguments, "-q", "--json"])
    assert done.exit_code == 0, done.output
    return {key: value for key, value in json.loads(done.output).items() if key != "source"}


@pytest.mark.parametrize(
    "command", [["ece"], ["ece", "--estimator", "uniform:100"], ["curve", "--at", "1,0.57"]]
)
def test_percentages_are_shares_on_the_command_line(paths, command, tmp_path):
    percent, share = paths
    rows = asked(command[0], share, *command[1:])
    assert asked(command[0], percent, *command[1:], "--percent") == rows
    kept = ["--checkpoint", str(tmp_path / "kept")]
    sums = asked(command[0], percent, *command[1:], "--percent", *kept)
    assert sums["value"] == pytest.approx(rows["value"], abs=1e-9)


def test_percentages_are_shares_in_sketches(paths, answers):
    percent, share = paths
    sketch = calibrant.Sketch.from_files(percent, percent=True)
    assert sketch.digest == calibrant.Sketch.from_files(share).digest
    assert sketch.notion == "correctness"
    value = calibrant.ece(answers["correct"], answers["confidence"] / 100, notion="correctness")
    assert sketch.ece() == pytest.approx(value, abs=1e-9)


def test_percentages_that_nobody_spoke_of_are_refused_with_the_way_out(paths):
    done = CliRunner().invoke(cli.main, ["ece", paths[0]])
    assert done.exit_code == 2
    assert "these look like percentages" in done.output
    assert "--percent" in done.output
    with pytest.raises(calibrant.InputError, match="percent=True"):
        calibrant.Sketch.from_files(paths[0])


def test_shares_that_are_called_percentages_are_refused(paths):
    done = CliRunner().invoke(cli.main, ["ece", paths[1], "--percent"])
    assert done.exit_code == 2
    assert "--percent must go with scores up to 100, got none above 1" in done.output
    with pytest.raises(calibrant.InputError, match="percent must go with scores up to 100"):
        calibrant.Sketch.from_files(paths[1], percent=True)


def test_a_report_of_levels_shows_them_and_repeats_its_command(paths, tmp_path):
    out = tmp_path / "page.html"
    command = ["report", paths[0], "--percent", "-o", str(out)]
    assert CliRunner().invoke(cli.main, command).exit_code == 0
    page = out.read_text()
    assert "--percent -o page.html" in page or "--percent --out page.html" in page
    for level in ("0.29", "0.57", "0.58", "0.80", "0.90", "0.95", "1.00"):
        assert f'<th scope="row">{level}</th>' in page
