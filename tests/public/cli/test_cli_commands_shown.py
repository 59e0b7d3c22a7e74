"""Commands that pages show: each runs, and the one that made a page writes the same page again."""

import html
import re
import shlex

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from calibrant import cli

pytestmark = [pytest.mark.usefixtures("without_reference_estimators"), pytest.mark.full, pytest.mark.no_cover]
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


CASES = {
    "one score": "bin.csv",
    "ratio of costs": "bin.csv --cost 1:9",
    "costs with a comma": "bin.csv --cost 2,9.5",
    "threshold": "bin.csv --cost 0.2",
    "file of costs": "{folder}/bin.csv --cost {folder}/costs.csv",
    "matrix": "many.csv",
    "one class of many": "many.csv --notion binary --pos-label dog",
    "class-wise": "many.csv --notion classwise",
    "canonical": "many.csv --notion canonical",
    "names in a file": "many.csv --class-names {folder}/names.txt --name 'Cats & \"dogs\"'",
    "several patterns of scores": "many.csv --scores p_cat,p_dog --scores p_eel --label label",
    "groups": "bin.csv --groups 'site of care'",
    "clusters": "bin.csv --cluster patient --level 0.9 --seed 3",
    "counts": "bin.csv --counts n",
    "weights": "bin.csv --sample-weight w",
    "notion": "bin.csv --notion confidence --label y --scores score",
    "percentages": "percent.csv --percent",
    "pairs": "pairs.csv --correct right --confidence 'sure it is'",
    "positive label": "bin.csv --pos-label 1",
    "format": "rows.txt --format jsonl -q --json numbers.json",
}


@pytest.mark.parametrize("case", CASES)
def test_commands_on_a_page_run_and_reproduce_it(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    words = shlex.split(CASES[case].format(folder=folder))
    invoke(["report", *words, "-o", "page.html"])
    page = (folder / "page.html").read_text(encoding="utf-8")
    commands = shown(page)
    assert [each[0] for each in commands if each[0] == "report"] == ["report"]
    for each in commands:
        invoke([{"NEW": words[0].rsplit("/")[-1]}.get(word, word) for word in each])
        if each[0] == "report":
            assert (folder / "page.html").read_text(encoding="utf-8") == page


def test_the_cases_show_how_to_recalibrate(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for words in (
        ["percent.csv", "--percent"],
        ["pairs.csv", "--correct", "right", "--confidence", "sure it is"],
    ):
        invoke(["report", *words, "-o", "page.html"])
        # The verdict shows both commands, and so does the section on recalibration.
        *verdict, fit, apply, _ = shown((folder / "page.html").read_text(encoding="utf-8"))
        assert verdict == [fit, apply]
        assert fit[:2] == ["calibrate", "fit"]
        assert apply[:2] == ["calibrate", "apply"]
        invoke(fit)
        invoke([{"NEW": words[0]}.get(word, word) for word in apply])
        mapped = pd.read_csv("OUT.csv")["calibrated"]
        assert mapped.mean() == pytest.approx(0.5, abs=0.1)  # as the outcomes, not as the scores
