"""Which class a column is of: one table of cases, every entry, equal answers."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import calibrant
from calibrant import Sketch
from calibrant.cli import main

N = 120

# Names of the columns, the labels, and the label (by its place) that each column is of; None: to be refused.
CASES = {
    "p_True, p_False": (("p_True", "p_False"), (False, True), (1, 0)),
    "true, false": (("true", "false"), (False, True), (1, 0)),
    "p_1.0, p_0.0 of floats": (("p_1.0", "p_0.0"), (0.0, 1.0), (1, 0)),
    "p_1.0, p_0.0 of integers": (("p_1.0", "p_0.0"), (0, 1), (1, 0)),
    "p_2.5, p_1.5": (("p_2.5", "p_1.5"), (1.5, 2.5), (1, 0)),
    "p_Dog, p_Cat": (("p_Dog", "p_Cat"), ("cat", "dog"), (1, 0)),
    "dog_prob, cat_prob": (("dog_prob", "cat_prob"), ("cat", "dog"), (1, 0)),
    "1_prob, 0_prob": (("1_prob", "0_prob"), (0, 1), (1, 0)),
    "p_1, p_0": (("p_1", "p_0"), (0, 1), (1, 0)),
    "dog, cat": (("dog", "cat"), ("cat", "dog"), (1, 0)),
    "P(dog), P(cat)": (("P(dog)", "P(cat)"), ("cat", "dog"), (1, 0)),
    "three, reversed": (("p_c", "p_b", "p_a"), ("a", "b", "c"), (2, 1, 0)),
    "three, turned": (("b prob", "c prob", "a prob"), ("a", "b", "c"), (1, 2, 0)),
    "three numbers": (("s-3", "s-1", "s-2"), (1, 2, 3), (2, 0, 1)),
    "class_2, class_1 of 0 and 1": (("class_2", "class_1"), (0, 1), None),
    "class_1, class_2 of 0 and 1": (("class_1", "class_2"), (0, 1), None),
    "yes, no of 0 and 1": (("yes", "no"), (0, 1), None),
    "p_1, p_0 of text": (("p_1", "p_0"), ("cat", "dog"), None),
    "cat, horse of cat and dog": (("cat", "horse"), ("cat", "dog"), None),
    "p_0, p_1 by default": (("p_0", "p_1"), (0, 1), (0, 1)),
    "0, 1 by default": (("0", "1"), (0, 1), (0, 1)),
}


def data(names, labels, order):
    """A table, and the error that is right: that of columns in the order of the classes."""
    rng = np.random.default_rng(5)
    prob = rng.dirichlet(np.full(len(names), 0.5), N)
    code = np.array([rng.choice(len(names), p=row) for row in prob])
    columns = {name: prob[:, k] for name, k in zip(names, order or range(len(names)), strict=True)}
    right = calibrant.ece(code, prob, notion="classwise", estimator="uniform:10")
    return {"y": [labels[k] for k in code]} | columns, right


def by_ece(kind):
    def ask(frame, names, folder):
        return calibrant.ece(frame["y"], kind({name: frame[name] for name in names}), **ASKED)

    return ask


ASKED = {"notion": "classwise", "estimator": "uniform:10"}


def by_update(frame, names, folder):
    scores = pd.DataFrame({name: frame[name] for name in names})
    return Sketch("classwise").update(frame["y"], scores).ece(estimator="uniform:10")


def by_frame(kind):
    def ask(frame, names, folder):
        sketch = Sketch.from_frame(kind(frame), label="y", scores=list(names), notion="classwise")
        return sketch.ece(estimator="uniform:10")

    return ask


def by_files(write):
    def ask(frame, names, folder):
        path = write(frame, folder)
        sketch = Sketch.from_files(path, label="y", scores=list(names), notion="classwise")
        return sketch.ece(estimator="uniform:10")

    return ask


def by_command(write):
    def ask(frame, names, folder):
        path = write(frame, folder)
        args = ["ece", path, "--label", "y", "--scores", ",".join(names), "--notion", "classwise"]
        result = CliRunner().invoke(main, [*args, "--estimator", "uniform:10", "--json"])
        if result.exit_code == 2:
            raise ValueError(result.output)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)["value"]

    return ask


def to_csv(frame, folder):
    pd.DataFrame(frame).to_csv(folder / "rows.csv", index=False)
    return str(folder / "rows.csv")


def to_parquet(frame, folder):
    pq.write_table(pa.table(frame), folder / "rows.parquet")
    return str(folder / "rows.parquet")


ENTRIES = {
    "ece of pandas": by_ece(pd.DataFrame),
    "ece of polars": by_ece(pl.DataFrame),
    "ece of pyarrow": by_ece(pa.table),
    "update of a sketch": by_update,
    "from_frame of pandas": by_frame(pd.DataFrame),
    "from_frame of polars": by_frame(pl.DataFrame),
    "from_files of CSV": by_files(to_csv),
    "from_files of Parquet": by_files(to_parquet),
    "command line, CSV": by_command(to_csv),
    "command line, Parquet": by_command(to_parquet),
}


@pytest.mark.full
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("case", CASES)
def test_every_entry_matches_columns_to_classes_by_one_rule(tmp_path, case, entry):
    names, labels, order = CASES[case]
    frame, right = data(names, labels, order)
    if order is None:
        with pytest.raises(ValueError, match=r"labels=|columns after their classes"):
            ENTRIES[entry](frame, names, tmp_path)
        return
    assert ENTRIES[entry](frame, names, tmp_path) == pytest.approx(right, abs=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("names", "labels", "order"),
    [
        (("p_1", "p_0"), (False, True), (1, 0)),
        (("m.1", "m.0"), (0, 1), (1, 0)),
        (("resnet50_dog", "resnet50_cat"), ("cat", "dog"), (1, 0)),
        (("p1_1", "p1_0"), (0, 1), (1, 0)),
        (("p_ab", "p_a"), ("a", "ab"), (1, 0)),
        (("p_-1", "p_1"), (-1, 1), (0, 1)),
    ],
    ids=lambda part: "-".join(map(str, part)),
)
def test_names_that_are_easily_misread_tell_the_same_everywhere(tmp_path, names, labels, order, entry):
    frame, right = data(names, labels, order)
    assert ENTRIES[entry](frame, names, tmp_path) == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize("write", [to_csv, to_parquet])
@pytest.mark.parametrize("given", [["2", "1"], [2, 1]])
def test_labels_of_a_file_may_be_given_as_text_or_as_numbers(tmp_path, write, given):
    frame, right = data(("u", "v"), ("1", "2"), (1, 0))
    path = write(frame, tmp_path)
    sketch = Sketch.from_files(path, label="y", scores=["u", "v"], notion="classwise", labels=given)
    assert sketch.ece(estimator="uniform:10") == pytest.approx(right, abs=1e-12)


SINGLE = {
    "p_0": 0, "0_prob": 0, "prob_0": 0, "P(0)": 0, "class_0": 0, "p_1": 1, "p1": 1, "score": 1, "p_new": 1,
}  # fmt: skip


@pytest.mark.parametrize("name", SINGLE)
def test_a_single_column_is_of_the_class_it_is_named_after_everywhere(tmp_path, name):
    rng = np.random.default_rng(3)
    score = rng.random(N)
    label = (rng.random(N) < score**2).astype(int)
    right = calibrant.ece(label, score, estimator="uniform:10", pos_label=SINGLE[name])
    frame = {"y": label, name: score}
    asked = {"label": "y", "scores": name}
    ece = [
        calibrant.ece(label, pd.Series(score, name=name), estimator="uniform:10"),
        calibrant.ece(label, pl.Series(name, score), estimator="uniform:10"),
        Sketch("binary").update(label, pd.Series(score, name=name)).ece(estimator="uniform:10"),
        Sketch.from_frame(pd.DataFrame(frame), **asked).ece(estimator="uniform:10"),
        Sketch.from_frame(pl.DataFrame(frame), **asked).ece(estimator="uniform:10"),
        Sketch.from_files(to_csv(frame, tmp_path), **asked).ece(estimator="uniform:10"),
        Sketch.from_files(to_parquet(frame, tmp_path), **asked).ece(estimator="uniform:10"),
    ]
    assert ece == pytest.approx([right] * len(ece), abs=1e-12)


def test_confidences_of_pairs_may_have_any_name(tmp_path):
    rng = np.random.default_rng(3)
    score = rng.random(N)
    right = (rng.random(N) < score).astype(int)
    expected = calibrant.ece(right, score, notion="correctness", estimator="uniform:10")
    frame = pd.DataFrame({"ok": right, "p_0": score})
    asked = {"label": "ok", "scores": "p_0", "notion": "correctness"}
    for sketch in (
        Sketch("correctness").update(right, frame["p_0"]),
        Sketch.from_frame(frame, **asked),
        Sketch.from_files(to_csv(frame, tmp_path), **asked),
    ):
        assert sketch.ece(estimator="uniform:10") == pytest.approx(expected, abs=1e-12)
    assert calibrant.ece(right, frame["p_0"], notion="correctness", estimator="uniform:10") == expected
    with pytest.raises(calibrant.InputError, match="label of what was right"):
        calibrant.ece(right, score, notion="correctness", pos_label=0)


def test_an_array_after_a_named_frame_has_positions():
    frame, right = data(("p_dog", "p_cat"), ("cat", "dog"), (1, 0))
    scores = pd.DataFrame({name: frame[name] for name in ("p_dog", "p_cat")})
    plain = scores[["p_cat", "p_dog"]].to_numpy()
    sketch = Sketch("classwise").update(frame["y"][:60], scores[:60]).update(frame["y"][60:], plain[60:])
    assert sketch.ece(estimator="uniform:10") == pytest.approx(right, abs=1e-12)


def test_the_label_is_no_score(tmp_path):
    path = to_csv({"y": [0, 1, 1], "p": [0.2, 0.6, 0.9]}, tmp_path)
    with pytest.raises(calibrant.InputError, match="other columns than label"):
        Sketch.from_files(path, label="y", scores="y")
    result = CliRunner().invoke(main, ["ece", path, "--label", "y", "--scores", "y"])
    assert result.exit_code == 2


@pytest.mark.parametrize("write", [to_csv, to_parquet])
def test_text_labels_that_would_be_one_number_stay_apart(tmp_path, write):
    names, labels = ("p_1", "p_01", "p_2"), ("1", "01", "2")
    frame, right = data(names, labels, (0, 1, 2))
    sketch = Sketch.from_files(write(frame, tmp_path), label="y", scores=list(names), notion="classwise")
    assert sketch.ece(estimator="uniform:10") == pytest.approx(right, abs=1e-12)


def test_categories_of_whole_numbers_are_numbers():
    frame, right = data(tuple(f"p_{k}" for k in range(12)), tuple(range(12)), tuple(range(12)))
    table = pd.DataFrame(frame)
    table["y"] = table["y"].astype("category")
    arrow = pa.table(frame).set_column(0, "y", pa.array(frame["y"]).dictionary_encode())
    asked = {"label": "y", "scores": "p_*", "notion": "classwise"}
    for one in (table, arrow):
        sketch = Sketch.from_frame(one, **asked)
        assert sketch.ece(estimator="uniform:10") == pytest.approx(right, abs=1e-12)
    with pytest.raises(calibrant.InputError, match="labels"):  # 1 to 12 are no numbers of columns
        Sketch.from_frame(table.assign(y=(table["y"].astype(int) + 1).astype("category")), **asked)


def test_later_labels_of_another_kind_are_refused():
    sketch = Sketch("binary", pos_label="spam").update(["ham", "spam"], [0.1, 0.9])
    with pytest.raises(calibrant.InputError, match="of one kind"):
        sketch.update([0, 1], [0.2, 0.8])


SPELLINGS = {
    "lower": (("p_Cat", "p_Dog", "p_Owl"), ("cat", "dog", "owl")),
    "upper": (("p_cat", "p_dog", "p_owl"), ("CAT", "DOG", "OWL")),
    "capital": (("p_cat", "p_dog", "p_owl"), ("Cat", "Dog", "Owl")),
    "the same": (("p_Cat", "p_dog", "p_OWL"), ("Cat", "dog", "OWL")),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("way", ["updates", "files", "batches"])
def test_a_class_that_comes_later_is_spelt_as_those_that_came_first(tmp_path, spelling, way):
    names, labels = SPELLINGS[spelling]
    score = np.random.default_rng(3).dirichlet(np.ones(3), 6)
    frame = pd.DataFrame(score, columns=list(names)).assign(label=[labels[k] for k in (0, 0, 1, 0, 2, 1)])
    right = calibrant.ece([0, 0, 1, 0, 2, 1], score, notion="classwise", estimator="uniform:10")
    if way == "updates":
        sketch = Sketch("classwise")
        for part in (frame[:2], frame[2:4], frame[4:]):
            sketch.update(part["label"], part[list(names)])
    else:
        for k, part in enumerate((frame[:2], frame[2:]) if way == "files" else (frame,)):
            part.to_csv(tmp_path / f"{k}.csv", index=False)
        options = {"batch_rows": 1} if way == "batches" else {}
        sketch = Sketch.from_files(tmp_path, label="label", scores="p_*", notion="classwise", **options)
    assert sketch.labels == labels
    assert sketch.ece(estimator="uniform:10") == pytest.approx(right, abs=1e-12)
