"""Counts are repeated rows; importance weights have no scale and no type."""

import numpy as np
import pytest

import calibrant
from calibrant import inputs
from calibrant.estimators import resolve
from calibrant.maps import folds

pytestmark = pytest.mark.no_cover

N, RNG = 150, np.random.default_rng(7)
SCORE = np.round(RNG.random(N), 2)
LABEL = (RNG.random(N) < SCORE**1.4).astype(int)
MATRIX = RNG.dirichlet(np.full(3, 0.7), N)
MATRIX[:30] = MATRIX[30:60]
CLASS = (RNG.random((N, 1)) > MATRIX.cumsum(axis=1)).sum(axis=1).clip(0, 2)
COUNT, CLUSTER = RNG.integers(0, 5, N), RNG.integers(0, 30, N)
ROWS = np.repeat(np.arange(N), COUNT)
ESTIMATORS = (
    *("auto", "b:shared", "l:15", "l", "a:10", "c:10", "ac", "d:0.1", "d:silverman", "dbeta", "dbeta2"),
    *("db:15", "sw", "iso", "bc", "bk:0.02", "v", "sm", "ks", "ku"),
)


def numbers(found):
    """Every number of a result, in its order."""
    if hasattr(found, "to_dict"):
        found = found.to_dict()
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [number for part in found for number in numbers(part)]
    if isinstance(found, np.ndarray):
        return found.ravel().tolist()
    return [float(found)] if isinstance(found, int | float | np.number) else []


def same(one, other, **tolerance):
    np.testing.assert_allclose(numbers(one), numbers(other), **({"rtol": 1e-12, "atol": 1e-12} | tolerance))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_counts_are_repeated_rows_for_every_estimator(name):
    for norm in resolve(name).norms:
        asked = {"estimator": name, "norm": norm}
        # Beta kernels leave rows out by a difference of two sums.
        tolerance = {"atol": 1e-9} if name.startswith("bk") else {}
        counted = calibrant.ece(LABEL, SCORE, counts=COUNT, **asked)
        same(counted, calibrant.ece(LABEL[ROWS], SCORE[ROWS], **asked), **tolerance)
        asked |= {"notion": "classwise"}
        counted = calibrant.ece(CLASS, MATRIX, counts=COUNT, **asked)
        same(counted, calibrant.ece(CLASS[ROWS], MATRIX[ROWS], **asked), **tolerance)


def test_counts_are_divided_among_folds_one_by_one_or_evenly(monkeypatch):
    data = inputs.predictions(LABEL, SCORE, counts=COUNT)
    for most in (folds.MOST_REPEATED, 0):
        monkeypatch.setattr(folds, "MOST_REPEATED", most)
        rows, fold = folds.rows_in_folds(data, 4, np.random.default_rng(0))
        assert rows.counts
        assert rows.n_rows == COUNT.sum()
        for score in np.unique(data.score):
            for code in (False, True):
                held = (rows.score == score) & (rows.code == code)
                assert rows.weight[held].sum() == COUNT[(score == SCORE) & (code == LABEL)].sum()
        size = np.bincount(fold, rows.weight)
        assert size.size == 4
        assert np.ptp(size) <= (2 if most else 0.2 * size.mean())
    assert np.ptp(np.bincount(fold[rows.score == SCORE[0]])) <= 2
