"""The same call gives the same answer from an array and from a frame of every engine."""

import json
import runpy
import subprocess
import sys
import warnings
from dataclasses import astuple, replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant
from calibrant import Calibrator, Sketch
from engines import PANDAS_OF_SPARK, needed
from exported import some_maps

ROOT = Path(__file__).parents[3]
DROP = '; pass missing="drop" to leave out rows without a label'


def in_dask(table, folder):
    return needed("dask.dataframe").from_pandas(table.to_pandas(), npartitions=3)


def in_duckdb(table, folder):
    return needed("duckdb").from_arrow(table)


def in_ibis(table, folder):
    return needed("ibis").memtable(table)


def in_spark(table, folder, session):
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(table, path)
    return session.read.parquet(str(path))


ENGINES = {
    "pandas": lambda table, folder: table.to_pandas(),
    "pandas arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, folder: pl.from_arrow(table),
    "polars lazy": lambda table, folder: pl.from_arrow(table).lazy(),
    "pyarrow": lambda table, folder: table,
    "duckdb": in_duckdb,
    "dask": in_dask,
    "ibis": in_ibis,
    "pyspark": in_spark,
}


# Engines that take a hundred calls where others take one; tracing each would double that.
SLOW = ("dask", "ibis", "pyspark")
MARKS = {name: [pytest.mark.no_cover] for name in SLOW} | {"pyspark": [pytest.mark.no_cover, PANDAS_OF_SPARK]}
UNTRACED = [pytest.param(name, marks=MARKS.get(name, ())) for name in ENGINES]


@pytest.fixture(params=UNTRACED)
def engine(request, tmp_path):
    """Makes a frame of the engine from an Arrow table."""
    made = ENGINES[request.param]
    if request.param == "pyspark":
        made = partial(made, session=request.getfixturevalue("spark"))
    return partial(made, folder=tmp_path)


# Percentages


SAID = pd.DataFrame({"y": [0, 1, 0, 1, 1, 1, 0], "p": [29, 57, 58, 80, 95, 100, 0]})


def test_percentages_are_shares(engine):
    both = (pa.Table.from_pandas(rows) for rows in (SAID, SAID.assign(p=SAID["p"] / 100)))
    percent, share = (engine(table) for table in both)
    wanted = Sketch.from_frame(share, **SINGLE)
    assert Sketch.from_frame(percent, percent=True, **SINGLE).digest == wanted.digest


@pytest.mark.parametrize("name", ["pandas", "polars lazy", "duckdb"])
def test_what_is_no_percentage_is_refused(name):
    def asked(p):
        table = pa.table({"y": [0, 1], "p": p})
        Sketch.from_frame(ENGINES[name](table, None), percent=True, **SINGLE)

    with pytest.raises(calibrant.InputError, match="percent must go with scores up to 100, got none above 1"):
        asked([0.2, 1.0])
    with pytest.raises(calibrant.InputError, match=r"'p' must lie in \[0, 1\], got 1.5; 1 of 2 rows"):
        asked([20.0, 150.0])
    with pytest.raises(calibrant.InputError, match="'p' must be finite, got inf; 1 of 2 rows"):
        asked([20.0, INF])


@pytest.mark.full
def test_percentages_of_several_classes_are_shares():
    wide = pd.DataFrame({"y": ["a", "b", "b"], "p_a": [29, 57, 8], "p_b": [71, 43, 92], "g": [1, 1, 2]})
    share = wide.assign(p_a=wide["p_a"] / 100, p_b=wide["p_b"] / 100)
    roles = {"label": "y", "scores": "p_*", "groups": "g"}
    found = Sketch.from_frame_by_group(wide, percent=True, **roles)
    wanted = Sketch.from_frame_by_group(share, **roles)
    assert {g: one.digest for g, one in found.items()} == {g: one.digest for g, one in wanted.items()}


# Rows without a label


def test_rows_without_a_label_are_left_out_and_counted_by_group(engine):
    label = pa.array([0, 1, None, 1, 0, None, 1, None])
    table = pa.table(
        {
            "y": label,
            "p": pa.array([0.1, 0.9, None, 0.7, 0.2, 0.5, 0.8, 0.4]),
            "n": [1, 2, 3, 1, 1, 1, 2, 5],
            "g": ["a", "a", "a", "b", "b", "b", "b", "c"],
        }
    )
    labelled = table.filter(pa.compute.is_valid(label))
    columns = {"label": "y", "scores": "p"}
    for more, dropped in (({}, 3), ({"counts": "n"}, 9)):
        found = Sketch.from_frame(engine(table), missing="drop", **columns, **more)
        wanted = Sketch.from_frame(engine(labelled), **columns, **more)
        kept = replace(found.totals, dropped=0)
        np.testing.assert_allclose(astuple(kept), astuple(wanted.totals), rtol=1e-12)
        assert (found.totals.dropped, wanted.totals.dropped) == (dropped, 0)
        assert found.ece() == pytest.approx(wanted.ece(), abs=1e-12)
    groups = Sketch.from_frame_by_group(engine(table), groups="g", missing="drop", **columns)
    assert {g: (each.totals.rows, each.totals.dropped) for g, each in groups.items()} == {
        "a": (2, 1),
        "b": (3, 1),
    }
    with pytest.raises(calibrant.InputError, match=r"'y' must have no missing values.*pass missing=\"drop\""):
        Sketch.from_frame(engine(table), **columns)


@pytest.mark.parametrize("name", ["pandas", "polars", "pyarrow"])
def test_a_frame_without_any_label_is_refused(name):
    table = pa.table({"y": pa.array([None, None], pa.float64()), "p": [0.1, 0.2]})
    with pytest.raises(calibrant.InputError, match="column 'y' must not all be missing, got 2 rows without"):
        Sketch.from_frame(ENGINES[name](table, None), missing="drop", **SINGLE)


# The same sums


def predictions(n=400, classes=4, seed=0):
    """Rows with ties, walls and every class, a weight of each kind, and a group."""
    rng = np.random.default_rng(seed)
    score = rng.dirichlet(np.full(classes, 0.3), n)
    score[: n // 8] = 1 / classes
    score[n // 8 : n // 8 + classes] = np.eye(classes)
    label = np.array([rng.choice(classes, p=p) for p in score])
    label[n // 8] = (label[n // 8] + 1) % classes  # had probability 0
    p = np.concatenate([rng.random(n - 9) ** 3, [0, 1, 0.5, 0.29, 0.57, 0.58, 1e-15, 1 - 1e-15, 1 / 3]])
    return {
        "y": (rng.random(n) < p).astype(int),
        "p": p,
        "label": label,
        "word": np.array([f"class {k}" for k in range(classes)])[label],
        "score": score,
        "counts": rng.integers(0, 4, n),
        "importance": rng.random(n) * 3 * (rng.random(n) > 0.1),
        "group": rng.choice(["east", "west", "north"], n),
    }


def table(rows, *, words=False):
    """One row for each row, and a column for each class."""
    score = rows["score"]
    named = [f"p_class {k}" if words else f"p_{k}" for k in range(score.shape[1])]
    plain = {k: v for k, v in rows.items() if k != "score"}
    return pa.table({**plain, **{name: score[:, k] for k, name in enumerate(named)}})


def test_answers_and_merges_are_those_of_rows(engine):
    rows = predictions()
    whole = table(rows)
    parts = [Sketch.from_frame(engine(part), label="label", scores="p_*")
             for part in (whole.slice(0, 150), whole.slice(150))]  # fmt: skip
    merged = parts[0] + parts[1]
    both = parts[0] + Sketch("confidence").update(rows["label"][150:], rows["score"][150:])
    for estimator in ("uniform:15", "adaptive:10", "c:10", "d", "auto"):
        wanted = calibrant.Sketch("confidence").update(rows["label"], rows["score"]).ece(estimator=estimator)
        assert merged.ece(estimator=estimator) == pytest.approx(wanted, abs=1e-12)
        assert both.ece(estimator=estimator) == pytest.approx(wanted, abs=1e-12)
    exact = calibrant.ece(rows["label"], rows["score"], estimator="uniform:15")
    assert merged.ece(estimator="uniform:15") == pytest.approx(exact, abs=1e-12)


# What is refused, and how

NAN, INF = float("nan"), float("inf")
PLAIN = {
    "y": [0, 1, 1, 0, 1],
    "p": [0.1, 0.5, 0.9, 0.3, 0.7],
    "t": ["a", "b", "b", "c", "a"],
    "p_a": [0.2, 0.3, 0.4, 0.3, 0.4],
    "p_b": [0.5, 0.3, 0.3, 0.3, 0.3],
    "p_c": [0.3, 0.4, 0.3, 0.4, 0.3],
    "w": [1, 2, 0, 1, 1],
    "v": [1.0, 2.0, 0.5, 1.0, 1.0],
    "g": ["u", "u", "z", "z", "z"],
}
SINGLE, WIDE = {"label": "y", "scores": "p"}, {"label": "t", "scores": "p_*"}
COUNTS, IMPORTANCE = {**SINGLE, "counts": "w"}, {**SINGLE, "sample_weight": "v"}
REFUSED = {
    "null score": (
        {"p": {0: None, 3: None}},
        SINGLE,
        "column 'p' must have no missing values, got 2 in 5 rows",
    ),
    "NaN score": ({"p": {0: NAN, 3: NAN}}, SINGLE, "column 'p' must have no missing values, got 2 in 5 rows"),
    "infinite score": (
        {"p": {1: INF}},
        SINGLE,
        "column 'p' must be finite, got inf; 1 of 5 rows is like that",
    ),
    "score outside": (
        {"p": {1: 1.0625, 2: 1.25}},
        SINGLE,
        "column 'p' must lie in [0, 1], got 1.25; 2 of 5 rows are like that",
    ),
    "percentages": (
        {"p": {1: 50.0, 2: 12.0}},
        SINGLE,
        "column 'p' must lie in [0, 1], got 50.0; 2 of 5 rows are like that; "
        "these look like percentages: divide by 100 first, or pass percent=True",
    ),
    "logits": (
        {"p_b": {1: -0.25}, "p_c": {2: 1.5}},
        WIDE,
        "column 'p_b' must lie in [0, 1], got -0.25; 1 of 5 rows is like that; "
        "these look like logits: apply softmax first",
    ),
    "log-probabilities": (
        {"p": {k: -0.25 * (k + 1) for k in range(5)}},
        SINGLE,
        "column 'p' must lie in [0, 1], got -1.25; 5 of 5 rows are like that; "
        "these look like log-probabilities; apply np.exp first",
    ),
    "null in a matrix": (
        {"p_b": {1: None}},
        WIDE,
        "column 'p_b' must have no missing values, got 1 in 5 rows",
    ),
    "NaN in a matrix": ({"p_c": {1: NAN}}, WIDE, "column 'p_c' must have no missing values, got 1 in 5 rows"),
    "rows that do not sum to one": (
        {"p_a": {1: 0.875}, "p_b": {2: 0.25}},
        WIDE,
        "scores must sum to 1 within 1e-06 in every row, got 1.575; 2 of 5 rows are like that; "
        "if a row can be of several classes at once (multi-label), measure each column separately, "
        'or pass a matrix of labels and notion="multilabel" to ece or estimate',
    ),
    "rounded rows": (
        {"p_a": {1: 0.31}},
        WIDE,
        "scores must sum to 1 within 1e-06 in every row, got 1.01; 1 of 5 rows is like that; "
        "if these are rounded, divide each row by its sum",
    ),
    "null label": (
        {"y": {1: None}},
        SINGLE,
        f"column 'y' must have no missing values, got 1 in 5 rows{DROP}",
    ),
    "null word": ({"t": {1: None}}, WIDE, f"column 't' must have no missing values, got 1 in 5 rows{DROP}"),
    "other label": (
        {"y": {1: 7, 2: 2}},
        SINGLE,
        "column 'y' must hold 0 and 1, -1 and 1 or booleans, got 0, 1, 2, 7; pass pos_label=",
    ),
    "ignored row": (
        {"y": {1: -100}},
        SINGLE,
        "column 'y' must hold 0 and 1, -1 and 1 or booleans, got -100, 0, 1; "
        "labels of -100 usually mark rows to ignore: drop these rows first",
    ),
    "both kinds of negative": (
        {"y": {0: -1}},
        SINGLE,
        "column 'y' must hold 0 and 1, -1 and 1 or booleans, got -1, 0, 1; pass pos_label=",
    ),
    "unknown word": (
        {"t": {1: "x", 2: "k"}},
        WIDE,
        "scores must have columns named after the labels 'a', 'c', 'k', 'x', got 'p_a', 'p_b', 'p_c'; "
        "pass labels= with the class of each column",
    ),
    "unknown word beside given ones": (
        {"t": {1: "x", 2: "k"}},
        {**WIDE, "labels": ["a", "b", "c"]},
        "column 't' must hold only the labels 'a', 'b', 'c', got 'k'; 2 of 5 rows are like that",
    ),
    "negative count": (
        {"w": {1: -3}},
        COUNTS,
        "column 'w' must be finite and at least 0, got -3; 1 of 5 rows is like that",
    ),
    "infinite weight": (
        {"v": {1: INF}},
        IMPORTANCE,
        "column 'v' must be finite and at least 0, got inf; 1 of 5 rows is like that",
    ),
    "tiny weight": (
        {"v": {1: 1e-200}},
        IMPORTANCE,
        "column 'v' must be 0 or lie between 1e-100 and 1e+100, got 1e-200; 1 of 5 rows is like that",
    ),
    "null weight": ({"v": {1: None}}, IMPORTANCE, "column 'v' must have no missing values, got 1 in 5 rows"),
    "NaN weight": ({"v": {1: NAN}}, IMPORTANCE, "column 'v' must have no missing values, got 1 in 5 rows"),
    "no weight at all": (
        {"w": dict.fromkeys(range(5), 0)},
        COUNTS,
        "column 'w' must have a positive sum, got 5 weights of 0",
    ),
    "a group without weight": (
        {"w": {0: 0, 1: 0}},
        {**COUNTS, "groups": "g"},
        "column 'w' must have a positive sum, got 2 weights of 0 in group 'u'",
    ),
    "null group": (
        {"g": {1: None}},
        {**SINGLE, "groups": "g"},
        "column 'g' must have no missing values, got 1 in 5 rows",
    ),
    "words for a single score": (
        {},
        {"label": "t", "scores": "p"},
        "column 't' must hold 0 and 1, -1 and 1 or booleans, got 'a', 'b', 'c'; pass pos_label=",
    ),
    "unknown positive word": (
        {},
        {"label": "t", "scores": "p", "pos_label": "q"},
        "pos_label must be one of 'a', 'b', 'c', got 'q'",
    ),
    "positive label of another type": (
        {},
        {**SINGLE, "pos_label": "1"},
        "pos_label must be one of 0, 1, got '1'",
    ),
}


def summed_up(frame, **options):
    """A sketch, or one for each group."""
    return (Sketch.from_frame_by_group if "groups" in options else Sketch.from_frame)(frame, **options)


def changed(changes):
    data = {name: list(values) for name, values in PLAIN.items()}
    for name, values in changes.items():
        for row, value in values.items():
            data[name][row] = value
    return pa.table(data)


@pytest.mark.full
@pytest.mark.parametrize("case", REFUSED)
def test_bad_data_is_refused_in_the_same_words(engine, case):
    changes, options, message = REFUSED[case]
    with pytest.raises(ValueError) as error:
        summed_up(engine(changed(changes)), **options)
    assert str(error.value) == message


def test_an_empty_frame_is_refused(engine):
    with pytest.raises(ValueError, match="frame must not be empty, got 0 rows"):
        Sketch.from_frame(engine(changed({}).slice(0, 0)), **SINGLE)


ASKED_WRONGLY = {
    "no frame": ([1, 2], SINGLE, TypeError, "frame must be a pandas, polars, pyarrow"),
    "a path": ("days.parquet", SINGLE, TypeError, "polars.scan_parquet"),
    "no column": (
        None,
        {**SINGLE, "sample_weight": "ww"},
        ValueError,
        "sample_weight must be a column .* did you mean 'w'",
    ),
    "no name": (None, {**SINGLE, "groups": 3}, TypeError, "groups must be the name of a column, got 3"),
    "no match": (
        None,
        {"label": "y", "scores": "q_*"},
        ValueError,
        r"scores must match columns of the frame, got 'q_\*'",
    ),
    "no names": (None, {"label": "y", "scores": [1, 2]}, TypeError, "scores must be names or patterns"),
    "nothing": (None, {"label": "y", "scores": []}, TypeError, "scores must be a column"),
    "text": (
        None,
        {"label": "y", "scores": "t"},
        TypeError,
        "column 't' must hold numbers, got the type String",
    ),
    "twice": (
        None,
        {"label": "t", "scores": ["p_a", "p_a"]},
        ValueError,
        "scores must name each column once, got 'p_a' twice",
    ),
    "labels": (
        None,
        {**WIDE, "labels": ["a", "b"]},
        ValueError,
        "labels must name 3 columns of scores, got 2",
    ),
    "classes": (
        None,
        {**WIDE, "n_classes": 4},
        ValueError,
        "n_classes must be the number of classes, 3, got 4",
    ),
    "which class": (
        None,
        {**WIDE, "notion": "binary"},
        ValueError,
        "pos_label must name one of .* 3 columns",
    ),
    "other class": (None, {**WIDE, "pos_label": "d"}, ValueError, "pos_label must be one of 'a', 'b', 'c'"),
    "notion": (None, {**WIDE, "notion": "clas"}, ValueError, "notion must be one of"),
    "label as scores": (
        None,
        {"label": "y", "scores": "y"},
        ValueError,
        "scores must be other columns than label",
    ),
    "names twice": (
        pd.DataFrame([[1, 0.5, 0.5]], columns=["y", "p", "p"]),
        SINGLE,
        ValueError,
        "columns of the frame must have different names",
    ),
    "objects": (
        pd.DataFrame({"y": pd.Series([1, 0], dtype=object), "p": 0.5}),
        SINGLE,
        TypeError,
        r"got the type Object; frame.convert_dtypes\(\)",
    ),
    "ids as groups": (
        pd.DataFrame({"y": 1, "p": 0.5, "id": range(20_000)}),
        {**SINGLE, "groups": "id"},
        ValueError,
        "column of ids",
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", ASKED_WRONGLY)
def test_a_question_that_makes_no_sense_is_refused(case):
    frame, options, error, message = ASKED_WRONGLY[case]
    with pytest.raises(error, match=message):
        summed_up(changed({}) if frame is None else frame, **options)


# Which class


def labelled(y, names):
    return pa.table({"y": y, **{name: [1 / len(names)] * len(y) for name in names}})


CLASSES = {
    "numbers after the prefix": (
        labelled([2, 0], ["p_2", "p_0", "p_1"]),
        ["p_2", "p_0", "p_1"],
        {},
        (2, 0, 1),
    ),
    "a pattern puts numbers in order": (labelled([2, 10], ["p_10", "p_2", "p_1"]), "p_*", {}, (1, 2, 10)),
    "words after the prefix": (labelled(["b"], ["p_b", "p_a"]), "p_*", {}, ("b", "a")),
    "words as they are": (labelled(["ant"], ["bee", "ant"]), ["bee", "ant"], {}, ("bee", "ant")),
    "names that tell nothing": (
        labelled([1], ["u", "v", "x"]),
        ["u", "v", "x"],
        {"labels": [0, 1, 2]},
        (0, 1, 2),
    ),
    "given, whatever the names": (labelled(["x"], ["p_y", "p_x"]), "p_*", {"labels": ["x", "y"]}, ("x", "y")),
    "given booleans": (labelled([True], ["u", "v"]), ["u", "v"], {"labels": [True, False]}, (1, 0)),
    "booleans": (labelled([True], ["p_true", "p_false"]), "p_*", {}, (1, 0)),
    "whole floats": (labelled([1.0], ["p_0", "p_1"]), "p_*", {}, (0, 1)),
    "digits as words": (labelled(["1"], ["p_0", "p_1"]), "p_*", {}, ("0", "1")),
    "as given": (labelled(["x"], ["p_0", "p_1"]), "p_*", {"labels": ["x", "y"]}, ("x", "y")),
    "numpy words": (
        labelled(["x"], ["p_0", "p_1"]),
        "p_*",
        {"labels": list(np.array(["x", "y"]))},
        ("x", "y"),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize("case", CLASSES)
def test_columns_say_which_class_they_are_of(case):
    data, scores, options, classes = CLASSES[case]
    for name in ("pandas", "polars lazy", "pyarrow", "duckdb"):
        assert (
            Sketch.from_frame(ENGINES[name](data, None), label="y", scores=scores, **options).labels
            == classes
        )


@pytest.mark.full
def test_named_classes_do_not_depend_on_the_labels_that_occur():
    whole = labelled([0, 1, 2], ["p_1", "p_2", "p_3"])
    for part in (whole, whole.slice(0, 1)):
        with pytest.raises(ValueError, match=r"columns named after the labels 0.*pass labels="):
            Sketch.from_frame(part, label="y", scores="p_*")
    named = labelled(["a", "b", "c"], ["p_c", "p_b", "p_a"])
    for part in (named, named.slice(0, 1), named.slice(1, 2)):
        assert Sketch.from_frame(part, label="y", scores="p_*").labels == ("c", "b", "a")


def test_a_positive_label_that_does_not_occur_is_refused(engine):
    frame = engine(pa.table({"y": ["no", "no"], "p": [0.25, 0.5]}))
    with pytest.raises(ValueError, match="pos_label must be one of 'no', got 'yes'"):
        Sketch.from_frame(frame, label="y", scores="p", pos_label="yes")


@pytest.mark.full
def test_counts_that_no_sum_can_hold_are_refused():
    frame = pa.table({"y": [0, 1], "p": [0.25, 0.5], "w": [2**62, 2**62]})
    with pytest.raises(ValueError, match=r"column 'w' must sum to less than 2\^63, got 9.22e\+18"):
        Sketch.from_frame(frame, label="y", scores="p", counts="w")


@pytest.mark.parametrize("y", [[0, 1, None, 1], ["no", "yes", None, "no"], [True, False, None, True]])
def test_missing_labels_are_refused_whatever_their_type(engine, y):
    frame = engine(pa.table({"y": y, "p": [0.5] * 4, "q": [0.5] * 4}))
    for scores, options in (("p", {"pos_label": y[1]}), (["p", "q"], {"labels": y[:2]})):
        # Booleans with gaps are objects in pandas.
        with pytest.raises(ValueError, match=r"must have no missing values, got 1 in 4 rows|the type Object"):
            Sketch.from_frame(frame, label="y", scores=scores, **options)


@pytest.mark.full
def test_rows_that_change_between_two_passes_are_refused():
    passes = iter([5, 3])
    frame = pl.from_arrow(changed({})).lazy().map_batches(lambda rows: rows.head(next(passes)))
    with pytest.raises(ValueError, match="same rows in every pass, got 5 rows and then 3"):
        Sketch.from_frame(frame, label="y", scores="p")


# Frames as arguments of the functions


@pytest.mark.parametrize("name", ["pandas", "pandas arrow", "polars", "pyarrow"])
def test_functions_take_columns_of_a_frame(name):
    rows = predictions()
    words = np.array(["eel", "dog", "cat", "bee"])
    data = {
        "y": rows["label"],
        "t": words[rows["label"]],
        **{f"p_{k}": rows["score"][:, k] for k in range(4)},
    }
    data |= {f"p_{word}": rows["score"][:, k] for k, word in enumerate(words)}
    frame = ENGINES[name](pa.table(data), None)
    wanted = calibrant.ece(rows["label"], rows["score"], notion="classwise")

    def columns(names):
        return frame.select(names) if name in ("polars", "pyarrow") else frame[names]

    for label, names in (
        ("y", ["p_0", "p_1", "p_2", "p_3"]),
        ("y", ["p_2", "p_0", "p_3", "p_1"]),
        ("t", ["p_eel", "p_dog", "p_cat", "p_bee"]),
        ("t", ["p_bee", "p_cat", "p_dog", "p_eel"]),
    ):
        found = calibrant.ece(frame[label], columns(names), notion="classwise")
        assert found == pytest.approx(wanted, abs=1e-14)
    assert calibrant.ece(frame["t"], frame["p_dog"], pos_label="dog") == pytest.approx(
        calibrant.ece(rows["label"] == 1, rows["score"][:, 1]), abs=1e-14
    )


# What the documentation shows


def example(name, *arguments):
    command = [sys.executable, str(ROOT / "docs/examples" / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    return done.stdout.strip()


@pytest.fixture
def predicted(tmp_path):
    rows = predictions()
    found = pa.table({"label": rows["y"], "p": rows["p"], "country": rows["group"]})
    for k in range(2):
        pq.write_table(found.slice(200 * k, 200), tmp_path / f"{k}.parquet")
    return tmp_path, str(Sketch("binary").update(rows["y"], rows["p"]).estimate(rng=0))


@pytest.mark.full
@PANDAS_OF_SPARK
def test_the_example_of_spark_runs(predicted, spark, monkeypatch, capsys):
    """Run in this process, whose session the example finds and must not stop."""
    stopped = []
    monkeypatch.setattr(type(spark), "stop", lambda session: stopped.append(session))
    monkeypatch.setattr(sys, "argv", ["spark.py", str(predicted[0]), "--master", "local[2]"])
    runpy.run_path(str(ROOT / "docs/examples/spark.py"), run_name="__main__")
    lines = capsys.readouterr().out.strip().splitlines()
    assert [line.split()[0] for line in lines if "calibration error" in line] == ["east", "north", "west"]
    assert len(stopped) == 1


def coarser(calibrator):
    """Keep every fifteenth entry of a table of thousands, which Spark takes half a minute to compile."""
    kept = json.loads(calibrator.to_json())
    for one in kept["maps"]:
        one |= {key: row[::15] for key, row in one.items() if isinstance(row, list) and len(row) > 1000}
    return Calibrator.from_json(json.dumps(kept))


@pytest.mark.full
def test_spark_maps_as_python_does(spark, tmp_path):
    """Beside the other tests of Spark, which share its session."""
    maps, score = some_maps(300)
    maps = maps | {"density": coarser(maps["density"])}
    bad = [None, float("nan"), float("inf"), -0.1, 1.1]
    column = [*score.tolist(), *bad]
    pq.write_table(pa.table({"score": column, "row": np.arange(len(column))}), tmp_path / "scores.parquet")
    frame = spark.read.parquet(str(tmp_path / "scores.parquet"))
    for name, calibrator in maps.items():
        rows = frame.selectExpr("row", f"{calibrator.to_sql('score')} AS p").orderBy("row").collect()
        mapped = [row["p"] for row in rows]
        assert mapped[score.size :] == [None] * len(bad), name
        mapped = mapped[: score.size]
        np.testing.assert_allclose(mapped, calibrator.predict_proba(score), rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.full
def test_the_example_of_dask_runs(predicted):
    needed("distributed")
    assert example("dask_cluster.py", predicted[0]) == predicted[1]


@pytest.mark.full
def test_the_example_of_duckdb_runs(predicted):
    connection = needed("duckdb").connect(str(predicted[0] / "shop.db"))
    connection.execute(f"create table predictions as from '{predicted[0]}/*.parquet'")
    connection.close()
    assert example("duckdb_table.py", f"from '{predicted[0]}/*.parquet'") == predicted[1]
    attach = f"attach '{predicted[0]}/shop.db' as shop (read_only)"
    assert example("duckdb_table.py", "from shop.predictions", "--setup", attach) == predicted[1]


@pytest.mark.full
def test_every_way_gives_the_same(tmp_path):
    needed("duckdb")
    ways = ["merged", "files: Parquet folder", "frame: polars lazy", "frame: DuckDB"]
    command = [sys.executable, str(ROOT / "benchmarks/equality.py"), "--rows", "500", "--ways", *ways]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split(" | ")[0] for line in done.stdout.splitlines()[2:]] == [f"| {way}" for way in ways]


@pytest.mark.full
def test_no_engine_is_imported_for_another():
    code = (
        "import sys, pandas as pd; from calibrant import Sketch\n"
        "Sketch.from_frame(pd.DataFrame({'y': [0, 1], 'p': [0.2, 0.9]}), label='y', scores='p')\n"
        "print([m for m in ('polars', 'duckdb', 'dask', 'ibis', 'pyspark') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.full
def test_no_warning_is_hidden():
    assert ("error", None, Warning, None, 0) in warnings.filters
