"""`calibrant estimate`: a table by columns of a file, and what it prints without them."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import cli


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Two models that answer the same questions of two benchmarks, in a file."""
    rng = np.random.default_rng(0)
    question = np.tile(np.arange(300), 2)
    frame = pd.DataFrame(
        {
            "model": np.repeat(["a_1", "b"], 300),
            "benchmark": 2024 + question % 2,
            "question": question,
            "confidence": rng.random(600),
        }
    )
    frame["correct"] = (rng.random(600) < frame["confidence"] ** 1.5).astype(int)
    path = tmp_path_factory.mktemp("tables") / "answers.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words):
    return CliRunner().invoke(cli.main, list(map(str, words)))


def told(*words):
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def table(answers):
    frame = pd.read_csv(answers, converters={"confidence": float})  # pandas 2 changes last digits
    by = frame[["model", "benchmark"]]
    options = {"notion": "correctness", "cluster": frame["question"]}
    return calibrant.estimate_by(frame["correct"], frame["confidence"], by, **options)


def test_a_table_is_that_of_python(answers, table):
    words = "estimate", answers, "--by", "model,benchmark", "--cluster", "question", "-q"
    assert told(*words) == f"{table}\n"
    assert told(*words, "--latex") == table.to_latex()
    assert told(*words, "--markdown") == table.to_markdown()
    values = json.loads(told(*words, "--json"))
    assert values.pop("value") == table.macro.value
    assert (values.pop("rows"), values.pop("dropped")) == (600, 0)
    assert (values.pop("source"), values.pop("read")) == ("answers.csv", "rows")
    assert calibrant.EstimateTable.from_dict(values) == table
    repeated = "estimate", answers, "--by", "model", "--by", "benchmark", "--cluster", "question", "-q"
    assert told(*repeated) == f"{table}\n"


def test_options_reach_every_cell(answers):
    frame = pd.read_csv(answers)
    found = calibrant.estimate_by(
        frame["correct"], frame["confidence"], frame[["model"]], notion="correctness", simultaneous=True,
        level=0.9, estimator="uniform:10", norm="l2", rng=3, n_resamples=199,
    )  # fmt: skip
    words = ["--level", "0.9", "--estimator", "uniform:10", "--norm", "l2", "--seed", "3"]
    words += ["--n-resamples", "199", "--simultaneous", "-q"]
    assert told("estimate", answers, "--by", "model", *words) == f"{found}\n"


def test_without_columns_it_is_the_command_ece(answers):
    for words in ((), ("--json",), ("--estimator", "smooth"), ("--cluster", "question")):
        assert told("estimate", answers, *words, "-q") == told("ece", answers, *words, "-q")


def test_a_table_is_drawn(answers, tmp_path):
    out = tmp_path / "forest.png"
    told("estimate", answers, "--by", "model", "-o", out, "-q")
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--by modle", "--by must be a column of the file, got 'modle'; did you mean 'model'?"),
        ("--by model,model", "is no list of different columns"),
        ("--by model,", "is no list of different columns"),
        ("--by model --latex --json", "--json and --latex print two formats"),
        ("--latex", "go with --by"),
        ("--simultaneous", "go with --by"),
        ("--by question --estimator smooth", "estimator must estimate the ECE"),
        ("--by model --norm max", "--norm must be one of 'l1', 'l2', got 'max'"),
        ("--by model -o forest.txt", "ends in none of"),
    ],
)
def test_bad_usage_is_told_in_one_line(answers, words, message):
    result = run("estimate", answers, *words.split(), "-q")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_sketch_has_no_columns(answers, tmp_path):
    frame = pd.read_csv(answers)
    path = tmp_path / "a.sketch"
    calibrant.Sketch("correctness").update(frame["correct"], frame["confidence"]).save(path)
    result = run("estimate", path, "--by", "model")
    assert result.exit_code == 2
    assert "is a sketch, which has no columns; leave out --by" in result.stderr
    assert told("estimate", path) == told("ece", path)
