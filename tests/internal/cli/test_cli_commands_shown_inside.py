"""Commands that pages show: each runs, and the one that made a page writes the same page again."""

import html
import json
import re
import shlex
import sys

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli

pytestmark = [pytest.mark.usefixtures("without_reference_estimators"), pytest.mark.no_cover]
N = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files of several shapes, whose scores are far off, so that recalibrating is advised."""
    where, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    outcome = rng.random(N) < 0.5
    score = np.clip(np.where(outcome, 0.35, 0.2) + rng.normal(0, 0.1, N), 0.01, 0.99).round(4)
    more = {
        "n": rng.integers(1, 4, N),
        "w": rng.random(N).round(3) + 0.5,
        "patient": np.arange(N) // 2,
        "site of care": np.where(np.arange(N) % 3 == 0, "a", "b"),
    }
    pd.DataFrame({"y": outcome.astype(int), "score": score} | more).to_csv(where / "bin.csv", index=False)
    pd.DataFrame({"y": outcome.astype(int), "score": 100 * score}).to_csv(where / "percent.csv", index=False)
    pd.DataFrame({"right": outcome, "sure it is": score}).to_csv(where / "pairs.csv", index=False)
    pd.DataFrame({"y": outcome.astype(int), "score": score}).to_json(
        where / "rows.txt", orient="records", lines=True
    )
    p = rng.dirichlet([1, 1, 1], N).round(3)
    p[:, 2] = 1 - p[:, 0] - p[:, 1]
    label = np.array(["cat", "dog", "eel"])[rng.integers(0, 3, N)]
    matrix = pd.DataFrame(p.round(3), columns=["p_cat", "p_dog", "p_eel"])
    matrix.assign(label=label).to_csv(where / "many.csv", index=False)
    (where / "costs.csv").write_text("class,act,leave\n0,1,0\n1,0,9\n")
    (where / "names.txt").write_text("Katze\nHund\nAal\n")
    return where


def invoke(words, **options):
    result = CliRunner().invoke(cli.main, words, **options)
    assert result.exit_code == 0, (words, result.output)
    return result.output


def shown(page):
    """Return the commands of a page, as lists of words without the program's name."""
    page = page.replace("<wbr/>", "")
    codes = [html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", page, re.DOTALL)]
    lines = [line for code in codes for line in code.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("calibrant ")]
    return [words for _, *words in commands]


def test_the_map_that_the_advice_is_about_is_the_one_that_is_fitted(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("calibrant.assessment.recalibration.MOST_CLASSES", 2)
    invoke(["report", "many.csv", "-o", "page.html", "--json", "numbers.json"])
    command = json.loads((folder / "numbers.json").read_text())["recalibration"]["command"]
    assert command == "calibrant calibrate fit many.csv --method temperature -o map.json"
    invoke(shlex.split(command)[1:])
    assert calibrant.Calibrator.load("map.json").method == "temperature"


def test_the_page_of_the_demonstration_names_its_seed(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.dirichlet([1, 1, 1], 60)
    module = sys.modules["calibrant.cli.demo"]
    monkeypatch.setattr(module, "digits", lambda: (rng.integers(0, 3, 60), score))
    monkeypatch.chdir(tmp_path)
    invoke(["demo", "--seed", "3", "-o", "page.html", "-q"])
    assert shown((tmp_path / "page.html").read_text()) == [["demo", "--seed", "3"]]
