"""`calibrant check --baseline` pairs rows of the same cases by the rule of `calibrant compare`."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import calibrant
from calibrant.cli import main

PAIR = ("--correct", "right", "--confidence", "sure")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def answers(n=600, seed=0):
    """Return the answers of two models to the same questions, which are hard for both."""
    rng = np.random.default_rng(seed)
    sure = rng.random(n).round(3)
    hard = rng.random(n)
    models = {}
    for name, lost in (("old", 0.15), ("new", 0.2)):
        mine = np.clip(sure + rng.normal(0, 0.02, n), 0, 1).round(3)
        models[name] = pd.DataFrame({"right": (hard < mine - lost).astype(int), "sure": mine})
    return models


def checked(*words):
    done = CliRunner().invoke(
        main, ["check", "new.csv", "--baseline", "old.csv", *words, "--json", "--quiet"]
    )
    assert done.exit_code in (0, 1, 3), done.output
    said = CliRunner().invoke(main, ["check", "new.csv", "--baseline", "old.csv", *words]).stdout
    return json.loads(done.stdout)["difference"], " ".join(said.split())


def ends(difference):
    return [difference[name] for name in ("value", "low", "high")]


def compared(frames, **more):
    columns = {name: {key: frame[name] for key, frame in frames.items()} for name in frames["new"]}
    options = {name: columns[column] for name, column in more.items()}
    result = calibrant.compare(
        columns["right"], columns["sure"], notion="correctness", baseline="old", **options
    )
    each = result.differences["new"]
    return [each.value, each.low, each.high]


def save(frames):
    for name, frame in frames.items():
        frame.to_csv(f"{name}.csv", index=False)


@pytest.mark.full
@pytest.mark.usefixtures("here")
def test_answers_to_the_same_questions_are_paired_by_row():
    frames = answers()
    save(frames)
    difference, said = checked(*PAIR, "--max-worse", "0.02")
    assert difference["paired"]
    assert difference["correlation"] > 0.5
    assert ends(difference) == pytest.approx(compared(frames))
    assert "600 rows, paired by row with those of old.csv" in said


@pytest.mark.full
@pytest.mark.usefixtures("here")
def test_answers_are_paired_by_the_ids_of_questions():
    frames = answers()
    question = np.arange(600) // 2
    rng = np.random.default_rng(1)
    for name, frame in frames.items():
        frame["question"] = [f"q{k}" for k in question]
        frames[name] = frame.iloc[rng.permutation(600)[: 600 if name == "old" else 500]]
    save(frames)
    difference, said = checked(*PAIR, "--cluster", "question", "--max-worse", "0.02")
    assert difference["paired"]
    assert ends(difference) == pytest.approx(compared(frames, cluster="question"))
    assert "paired by cluster with those of old.csv" in said
    # The same numbers of answers to other questions are independent.
    frames["old"] = frames["old"].assign(question=[f"other {k}" for k in frames["old"]["question"]])
    save(frames)
    difference, said = checked(*PAIR, "--cluster", "question", "--max-worse", "0.02")
    assert not difference["paired"]
    assert "independent of 600 rows in 300 clusters of old.csv" in said


@pytest.mark.usefixtures("here")
def test_answers_that_one_model_does_not_give_are_left_out_of_the_pairs():
    frames = answers()
    frames["new"]["right"] = frames["new"]["right"].astype(object)
    frames["new"].loc[[3, 77, 500], "right"] = None
    save(frames)
    difference, said = checked(*PAIR, "--drop-missing", "--max-worse", "0.02")
    assert difference["paired"]
    assert difference["correlation"] > 0.5
    assert "597 rows, paired by row with those of old.csv" in said


@pytest.mark.usefixtures("here")
def test_groups_are_paired_each_by_its_own_rows():
    frames = answers()
    for frame in frames.values():
        frame["topic"] = np.where(np.arange(600) % 3 == 0, "maths", "law")
    save(frames)
    words = (*PAIR, "--groups", "topic", "--max-worse", "0.02", "--json", "--quiet")
    done = CliRunner().invoke(main, ["check", "new.csv", "--baseline", "old.csv", *words])
    verdicts = json.loads(done.stdout)["verdicts"]
    assert {each["group"] for each in verdicts} == {"maths", "law"}
    assert all(each["difference"]["paired"] for each in verdicts)


@pytest.mark.full
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("change", ["labels", "weights", "rows"])
def test_samples_of_other_cases_are_independent(change):
    rng = np.random.default_rng(3)
    score = rng.random(400).round(3)
    base = pd.DataFrame({"y": (rng.random(400) < score).astype(int), "p": score, "w": 1.0})
    other = base[::-1] if change == "labels" else base.copy()
    other = other.assign(w=rng.random(400)) if change == "weights" else other
    save({"old": base, "new": other[:399] if change == "rows" else other})
    words = ("--label", "y", "--scores", "p", "--sample-weight", "w", "--max-worse", "0.02")
    difference, said = checked(*words)
    assert not difference["paired"]
    assert "independent of" in said
    save({"old": base, "new": base})
    difference, said = checked(*words)
    assert difference["paired"]
    assert "paired by row" in said
