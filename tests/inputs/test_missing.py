"""Rows without a label: refused with a hint, or left out as if they had never been passed."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant
from calibrant import InputError
from calibrant.inputs import predictions

RNG = np.random.default_rng(0)
N = 200
P = RNG.random(N)
LOST = RNG.random(N) < 0.3
Y = (RNG.random(N) < P).astype(int)
WITH_NAN = np.where(LOST, np.nan, Y)
OBJECTS = [None if lost else int(y) for lost, y in zip(LOST, Y, strict=True)]
CLUSTER, GROUPS = np.arange(N) // 2, np.where(np.arange(N) % 2, "odd", "even")
W = RNG.random(N) + 0.5
SENTENCE = f"{LOST.sum()} of 200 rows"

LABELS = {
    "floats": WITH_NAN,
    "objects": np.array(OBJECTS, dtype=object),
    "list": OBJECTS,
    "masked": np.ma.array(Y, mask=LOST),
    "pandas floats": pd.Series(WITH_NAN),
    "pandas integers": pd.Series(OBJECTS, dtype="Int64"),
    "pandas booleans": pd.Series(OBJECTS, dtype="boolean"),
    "polars": pl.Series(OBJECTS),
    "pyarrow": pa.array(OBJECTS),
    "NaT": np.array([pd.NaT if lost else int(y) for lost, y in zip(LOST, Y, strict=True)], dtype=object),
}


@pytest.mark.parametrize("name", LABELS)
def test_every_kind_of_missing_label_is_left_out(name):
    found = predictions(LABELS[name], P, sample_weight=W, missing="drop")
    wanted = predictions(Y[~LOST], P[~LOST], sample_weight=W[~LOST])
    for field in ("score", "code", "weight"):
        np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field))
    assert (found.labels, found.positive) == (wanted.labels, wanted.positive)
    assert found.dropped == LOST.sum()
    np.testing.assert_array_equal(found.kept, ~LOST)
    with pytest.raises(InputError, match=r'y_true must .*missing values.*pass missing="drop"'):
        predictions(LABELS[name], P, sample_weight=W)


ANSWERS = {
    "ece": lambda y, p, **more: calibrant.ece(y, p, **more),
    "mce": lambda y, p, **more: calibrant.mce(y, p, **more),
    "curve": lambda y, p, **more: calibrant.reliability_curve(y, p, **more).value,
    "diagram": lambda y, p, **more: calibrant.reliability_diagram(y, p, **more).frequency,
    "histogram": lambda y, p, **more: calibrant.score_histogram(y, p, **more).positive,
    "lce": lambda y, p, **more: calibrant.lce(y, p, 0.5, **more),
    "regret curve": lambda y, p, **more: calibrant.regret_curve(y, p, **more).value,
    "net benefit": lambda y, p, **more: calibrant.net_benefit(y, p, **more).minus_all.high,
    "threshold": lambda y, p, **more: calibrant.best_threshold(y, p, (1, 3), **more).value,
    "coverage": lambda y, p, **more: calibrant.risk_coverage(y, p, **more).aurc,
    "calibrator": lambda y, p, **more: calibrant.Calibrator("beta").fit(p, y, **more).predict_proba([0.3]),
    "maps": lambda y, p, **more: (
        calibrant.compare_calibrators(p, y, methods=["beta"], **more)["beta"].log_loss.value
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_function_answers_as_for_the_labelled_rows(name):
    found, wanted = ANSWERS[name](WITH_NAN, P, missing="drop"), ANSWERS[name](Y[~LOST], P[~LOST])
    np.testing.assert_array_equal(found, wanted)
    with pytest.raises(InputError, match='pass missing="drop"'):
        ANSWERS[name](WITH_NAN, P)


def test_results_say_how_many_rows_were_left_out():
    rows = {"cluster": CLUSTER, "sample_weight": W}
    few = {name: values[~LOST] for name, values in rows.items()}
    found = calibrant.estimate(WITH_NAN, P, missing="drop", **rows)
    wanted = calibrant.estimate(Y[~LOST], P[~LOST], **few)
    assert (found.value, found.low, found.high, found.clusters) == (
        wanted.value,
        wanted.low,
        wanted.high,
        wanted.clusters,
    )
    assert found.cautions[0].startswith(SENTENCE)
    assert SENTENCE in str(found)
    assert any(SENTENCE in line for line in calibrant.regret(WITH_NAN, P, 0.3, missing="drop").cautions)
    both = calibrant.compare(WITH_NAN, {"a": P, "b": P**2}, missing="drop")
    assert (
        both.differences["b"].value
        == calibrant.compare(Y[~LOST], {"a": P[~LOST], "b": P[~LOST] ** 2}).differences["b"].value
    )
    assert SENTENCE in str(both)


def test_groups_go_with_their_rows(without_reference_estimators):
    groups = np.array([None if lost else name for lost, name in zip(LOST, GROUPS, strict=True)], dtype=object)
    found = calibrant.assess(WITH_NAN, P, groups=groups, missing="drop")
    wanted = calibrant.assess(Y[~LOST], P[~LOST], groups=GROUPS[~LOST])
    assert [(row.name, row.rows, row.estimate.value) for row in found.by_group] == [
        (row.name, row.rows, row.estimate.value) for row in wanted.by_group
    ]
    assert any(line.startswith(SENTENCE) for line in found.cautions)
    groups[~LOST] = None
    with pytest.raises(InputError, match=f"got None at position {np.argmin(LOST)}"):
        calibrant.assess(WITH_NAN, P, groups=groups, missing="drop")


def test_what_belongs_to_a_row_without_a_label_may_be_missing_or_wrong():
    wrong = {"p": np.where(LOST, 7.0, P), "sample_weight": np.where(LOST, np.nan, W)}
    score = np.where(LOST, np.nan, P)
    found = calibrant.ece(WITH_NAN, score, sample_weight=wrong["sample_weight"], missing="drop")
    assert found == calibrant.ece(WITH_NAN, wrong["p"], sample_weight=W, missing="drop")


def test_errors_count_all_rows():
    p = P.copy()
    row = int(np.flatnonzero(~LOST)[50])
    p[row] = 1.5
    with pytest.raises(InputError, match=f"got 1.5 at row {row}"):
        predictions(WITH_NAN, p, missing="drop")
    w = W.copy()
    w[row] = -1
    with pytest.raises(InputError, match=f"got -1.0 at row {row}"):
        predictions(WITH_NAN, P, sample_weight=w, missing="drop")


def test_counted_rows_are_left_out_as_often_as_they_count():
    data = predictions([0, None, 1, None], [0.2, 0.3, 0.9, 0.4], counts=[2, 5, 0, 1], missing="drop")
    assert (data.n_rows, data.dropped) == (2, 6)
    assert data.cautions == ("6 of 8 rows (75 %) have no label and were left out.",)
    np.testing.assert_array_equal(data.kept, [True, False, False, False])
    with pytest.raises(InputError, match=r"counts must be finite.*got -1 at row 1"):
        predictions([0, None, 1], [0.2, 0.3, 0.9], counts=[1, -1, 1], missing="drop")


@pytest.mark.parametrize("labels", [[None, None], [np.nan, np.nan], np.ma.array([1, 1], mask=[1, 1])])
def test_rows_none_of_which_has_a_label_are_refused(labels):
    with pytest.raises(InputError, match="y_true must not all be missing, got 2 rows without a label"):
        calibrant.ece(labels, [0.2, 0.3], missing="drop")


def test_no_other_choice_and_no_hint_for_what_is_not_missing():
    with pytest.raises(InputError, match=r"missing must be one of 'raise', 'drop', got 'skip'"):
        calibrant.ece(Y, P, missing="skip")
    with pytest.raises(InputError, match=r"got inf at row 0$"):
        calibrant.ece([np.inf, 0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="got inf at row 0"):
        calibrant.ece([np.inf, np.nan, 1], [0.1, 0.2, 0.3], missing="drop")
    with pytest.raises(
        InputError, match=r"y_prob must be finite and have no missing values, got nan at row 1$"
    ):
        calibrant.ece([0, 1, np.nan], [0.1, np.nan, 0.3], missing="drop")
    with pytest.raises(InputError, match="missing must be left out for a sketch"):
        calibrant.ece(calibrant.Sketch().update(Y, P), missing="drop")


def same(found, wanted):
    """Whether two sketches hold the same sums, to the last digits, apart from rows that were left out."""
    np.testing.assert_allclose(found.totals.brier, wanted.totals.brier, rtol=1e-12, atol=1e-15)
    assert found.totals.rows == wanted.totals.rows
    for mine, theirs in zip(found._score_data.arrays, wanted._score_data.arrays, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-15)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 12), st.sampled_from(["none", "counts", "sample_weight"]))
def test_a_sketch_in_chunks_is_that_of_the_labelled_rows(tmp_path_factory, seed, pieces, kind):
    rng = np.random.default_rng(seed)
    n = 40
    p, lost = rng.random(n), rng.random(n) < rng.random()
    lost[rng.integers(n)] = False
    y = np.where(lost, np.nan, rng.random(n) < p)
    weight = rng.integers(1, 4, n) if kind == "counts" else rng.random(n) + 0.1
    weights = {} if kind == "none" else {kind: weight}
    found = calibrant.Sketch()
    for rows in np.array_split(np.arange(n), pieces):
        piece = calibrant.Sketch().update(
            y[rows], p[rows], missing="drop", **{k: w[rows] for k, w in weights.items()}
        )
        found = found + piece if rng.random() < 0.5 else piece + found
    wanted = calibrant.Sketch().update(y[~lost], p[~lost], **{k: w[~lost] for k, w in weights.items()})
    same(found, wanted)
    assert found.totals.dropped == (weight[lost].sum() if kind == "counts" else lost.sum())
    path = tmp_path_factory.mktemp("sketch") / "s.sketch"
    found.save(path)
    assert calibrant.Sketch.load(path).totals == found.totals


def test_a_sketch_of_rows_without_any_label_counts_them(tmp_path):
    late = calibrant.Sketch().update([None, np.nan], [0.2, 0.3], missing="drop")
    assert (late.totals.rows, late.totals.dropped) == (0, 2)
    late.save(tmp_path / "late.sketch")
    late = calibrant.Sketch.load(tmp_path / "late.sketch")
    with pytest.raises(
        InputError, match="the labels of the sketch must not all be missing, got 2 rows without a label"
    ):
        late.ece()
    both = late + calibrant.Sketch().update([0, 1], [0.2, 0.3])
    assert both.estimate().cautions == ("2 of 4 rows (50 %) have no label and were left out.",)
    assert both.digest != calibrant.Sketch().update([0, 1], [0.2, 0.3]).digest


def test_models_with_labels_of_their_own_are_paired_by_the_rows_that_both_know():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    labels = {name: (rng.random(400) < p).astype(float) for name in "ab"}
    scores = {"a": p, "b": p**1.5}
    labels["b"] = np.where(rng.random(400) < 0.9, labels["a"], labels["b"])
    labels["a"][:40], labels["b"][100:160] = np.nan, np.nan
    found = calibrant.compare(labels, scores, missing="drop")
    kept = {name: ~np.isnan(each) for name, each in labels.items()}
    rows = [{name: each[kept[name]] for name, each in mapping.items()} for mapping in (labels, scores)]
    places = {name: np.flatnonzero(each) for name, each in kept.items()}
    by_place = calibrant.compare(*rows, cluster=places)
    apart = calibrant.compare(*rows)
    assert found.estimates["a"].value == by_place.estimates["a"].value == apart.estimates["a"].value
    assert found.differences["b"].correlation == pytest.approx(
        by_place.differences["b"].correlation, abs=1e-9
    )
    assert abs(found.differences["b"].correlation) > 0.3
    assert apart.differences["b"].correlation == 0


def test_tables_are_those_of_the_labelled_rows():
    by = {"group": np.where(LOST, "nobody", GROUPS)}
    found = calibrant.estimate_by(WITH_NAN, P, by=by, cluster=CLUSTER, missing="drop")
    wanted = calibrant.estimate_by(Y[~LOST], P[~LOST], by={"group": GROUPS[~LOST]}, cluster=CLUSTER[~LOST])
    assert list(found.cells) == [("even",), ("odd",)]
    assert [each.value for each in found.cells.values()] == [each.value for each in wanted.cells.values()]
    assert found.macro == wanted.macro
    assert any(line.startswith(SENTENCE) for line in found.cautions)
