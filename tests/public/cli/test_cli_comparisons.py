"""The command that compares models on other rows, sketches and answers of their own."""

import json
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of two weeks, the second with scores that are too high, and their sketches."""
    at, rng = tmp_path_factory.mktemp("weeks"), np.random.default_rng(0)
    for name, n, power in (("last", 1200, 1.0), ("this", 900, 1.6), ("same", 1000, 1.0)):
        score = rng.random(n).round(6)
        y = (rng.random(n) < score**power).astype(int)
        frame = pd.DataFrame({"label": y, "score": score, "user": np.arange(n) % (n // 3)})
        frame.to_csv(at / f"{name}.csv", index=False)
        calibrant.Sketch().update(y, score).save(at / f"{name}.sketch.npz")
    return at


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def run(*words):
    return CliRunner().invoke(cli.main, ["compare", *words])


def read(name):
    frame = pd.read_csv(f"{name}.csv")
    return frame["label"].to_numpy(), frame["score"].to_numpy(), frame["user"].to_numpy()


def test_files_of_other_rows_are_independent_samples():
    done = run("last.csv", "this.csv", "--unpaired")
    rows = {name: read(name) for name in ("last", "this")}
    labels, scores, users = ({name: columns[k] for name, columns in rows.items()} for k in range(3))
    assert done.stdout == f"{calibrant.compare(labels, scores, rng=0, paired=False)}\n"
    assert done.exit_code == 0
    clustered = json.loads(run("last.csv", "this.csv", "--unpaired", "--cluster", "user", "--json").stdout)
    wanted = calibrant.compare(labels, scores, rng=0, paired=False, cluster=users)
    assert clustered["differences"]["this"]["low"] == wanted.differences["this"].low
    assert (clustered["pairing"], clustered["rows"]) == ("independent samples", {"last": 1200, "this": 900})


@pytest.mark.full
def test_a_comparison_is_drawn_and_written_as_a_page():
    words = "last.sketch.npz", "this.sketch.npz", "-q"
    sketches = {name: calibrant.Sketch.load(f"{name}.sketch.npz") for name in ("last", "this")}
    for out, start in (("pair.svg", b"<?xml"), ("pair.png", b"\x89PNG")):
        assert run(*words, "-o", out).exit_code == 0
        assert Path(out).read_bytes().startswith(start)
    assert run(*words, "-o", "pair.html").exit_code == 0
    assert Path("pair.html").read_text(encoding="utf-8") == calibrant.compare(sketches, rng=0).to_html()
    for out, text in (("pair.txt", "ends in none of"), ("last.csv", "ends in none of")):
        assert text in run("last.csv", "this.csv", "--unpaired", "-o", out).stderr


def test_sketches_and_files_about_something_else_are_refused():
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 30)
    pd.DataFrame(p, columns=["p_a", "p_b", "p_c"]).assign(label=list("abc") * 10).to_csv("three.csv")
    calibrant.Sketch(labels=list("abc")).update(list("abc") * 10, p).save("three.sketch")
    done = run("last.sketch.npz", "three.sketch")
    assert done.exit_code == 2
    assert "all have the same notion, got binary for 'last', confidence for 'three'" in done.stderr
    done = run("last.csv", "three.csv", "--unpaired")
    assert "got 1 column for 'last' and 3 columns for 'three'" in done.stderr


def test_other_rows_are_refused_with_a_hint():
    for files in (("last.csv", "this.csv"), ("this.csv", "this.csv", "same.csv")):
        done = run(*files)
        assert done.exit_code == 2
        assert "files of other rows need --unpaired" in done.stderr


def test_sketches_are_compared_beside_rows():
    sketches = json.loads(run("last.sketch.npz", "this.sketch.npz", "--json").stdout)
    wanted = calibrant.compare(
        {name: calibrant.Sketch.load(f"{name}.sketch.npz") for name in ("last", "this")}, rng=0
    )
    assert sketches["differences"]["this"]["value"] == wanted.differences["this"].value
    mixed = json.loads(run("last.sketch.npz", "this.csv", "--label", "label", "--json", "-q").stdout)
    assert mixed["differences"]["this"]["low"] == pytest.approx(wanted.differences["this"].low, abs=1e-9)
    assert mixed["rows"] == {"last": 1200, "this": 900}
    refused = run("last.sketch.npz", "this.sketch.npz", "--label", "label")
    assert refused.exit_code == 2
    assert "leave out --label" in refused.stderr


def test_answers_of_their_own_are_paired_by_row_or_by_cluster():
    pair = ("--correct", "label", "--confidence", "score", "--json")
    rows = {name: read(name) for name in ("last", "this", "same")}
    labels, scores, users = ({name: columns[k] for name, columns in rows.items()} for k in range(3))
    done = json.loads(run("last.csv", "this.csv", "same.csv", "--cluster", "user", *pair).stdout)
    wanted = calibrant.compare(labels, scores, notion="correctness", cluster=users, rng=0)
    assert done["differences"] == wanted.to_dict()["differences"]
    assert done["pairing"] == "paired by cluster"
    # Ids that are numbers in one file and text in the other are the same.
    frame = pd.read_csv("this.csv")
    frame["user"] = frame["user"].astype(str).replace({"7": "seven"})
    frame.to_csv("text.csv", index=False)
    files = ("last.csv", "text.csv")
    mixed = json.loads(run(*files, "--cluster", "user", *pair).stdout)
    ids = {"last": users["last"].astype(str), "text": frame["user"].to_numpy()}
    wanted = calibrant.compare(
        {"last": labels["last"], "text": labels["this"]},
        {"last": scores["last"], "text": scores["this"]},
        notion="correctness",
        cluster=ids,
        rng=0,
    )
    assert mixed["differences"] == wanted.to_dict()["differences"]
    assert mixed["differences"]["text"]["paired"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("files", "limit", "status", "code"),
    [
        (("last", "this"), "0.005", "fail", 1),
        (("last", "same", "this"), "0.005", "fail", 1),
        (("last", "this"), "0.5", "pass", 0),
        (("this", "last"), "0", "pass", 0),
        (("last", "same"), "0.005", "inconclusive", 3),
        (("same", "last", "this"), "0.1", "inconclusive", 3),
    ],
)
def test_the_exit_code_says_whether_a_model_is_worse(files, limit, status, code):
    words = (*(f"{name}.sketch.npz" for name in files), "--max-worse", limit)
    done, as_json = run(*words), run(*words, "--json")
    found = json.loads(as_json.stdout)
    changes = [(each["low"], each["high"]) for each in found["differences"].values()]
    if any(low > float(limit) for low, _ in changes):
        wanted = "fail"
    else:
        wanted = "pass" if all(high <= float(limit) for _, high in changes) else "inconclusive"
    assert wanted == status
    assert done.exit_code == as_json.exit_code == found["exit_code"] == code
    assert found["status"] == status
    assert done.stdout.startswith(f"{status.upper()}: ")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("last.csv", "this.csv", "--max-worse", "nan"), "nan does not lie in [0, 2)"),
        (("last.csv", "this.csv", "--max-worse", "-0.1"), "-0.1 does not lie in [0, 2)"),
        (
            ("last.csv", "--model", "a=score", "--model", "b=label", "--unpaired"),
            "--unpaired is for several files",
        ),
    ],
)
def test_wrong_usage_of_other_rows_is_named(words, text):
    done = run(*words)
    assert done.exit_code == 2
    assert text in done.stderr


@pytest.mark.full
def test_four_models_that_answer_the_same_questions(tmp_path, capsys):
    example = runpy.run_path(str(ROOT / "docs/examples/four_models.py"))
    example["main"]([str(tmp_path)])
    printed = capsys.readouterr().out
    files = [str(tmp_path / f"{name}.csv") for name in ("base", "chat", "small", "tuned")]
    pair = ("--correct", "right", "--confidence", "confidence", "--cluster", "question")
    done = run(*files, *pair, "--baseline", "base", "--max-worse", "0.03")
    verdict, _, rest = done.stdout.partition("\n")
    # The command line reads what the example wrote.
    words = ["estimate", str(tmp_path), *pair, "--by", "model", "-q"]
    assert rest + CliRunner().invoke(cli.main, words).stdout == printed
    latex = CliRunner().invoke(cli.main, [*words, "--latex"]).stdout
    assert latex == example["table"](example["simulate"]()).to_latex()
    assert verdict.startswith("FAIL: chat is worse than base by more than 0.03: ")
    assert done.exit_code == 1
    assert "paired by cluster" in printed
    assert "The accuracies of 'chat' and 'base' are" in printed
    # Two models see the same difficulty of a question, so their errors are not independent.
    comparison = example["compare"](example["simulate"]())
    assert all(abs(each.correlation) > 0.02 for each in comparison.differences.values())
