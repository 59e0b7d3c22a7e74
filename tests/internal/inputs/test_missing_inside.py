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
W = RNG.random(N) + 0.5

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
