"""A lower bound of the error by cross-fitting: held-out rows measure the gap in the direction of a map."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np

from calibrant.estimators.base import CANONICAL_NORMS, Estimator, Fit, Norm
from calibrant.inputs import InputError, Predictions, check_choice, positive_int
from calibrant.inputs import level as checked_level
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

FOLDS = 5
# A map this close to the score has no direction.
LEVEL = 1e-9
# Scores compared at once.
CHUNK = 1 << 20
# Factor of the standard error of the lower bound: folds share training rows (1.32 if 3 fit noise).
BOUND_ERROR_FACTOR = 1.4


@dataclass(frozen=True, eq=False)
class CanonicalVariationalFit(Fit):
    """Rows and their held-out predictions.

    Attributes
    ----------
    rows : Simplex
        The data.
    held_out : array (rows, classes)
        Probabilities by a map that was fitted without the fold of the row.
    """

    rows: Simplex
    held_out: Array

    def _error(self, norm: Norm) -> Array:
        mean = max(self.rows.mean(gains(self.rows, self.held_out, norm))[0], 0.0)
        return np.asarray(np.sqrt(mean) if norm == "l2" else mean)


@dataclass(frozen=True)
class CanonicalVariational(Estimator):
    """Cross-fitted variational error (Berta et al. 2026) with any map.

    Let p be the scores of a row, y its class, q its probabilities by a map fitted without its fold, and s the
    signs of d = q - p. For l1 the estimate is the mean of s_y - sum_k s_k p_k. Its expectation is at most the
    l1 error, and equal to it if the signs are correct. For l2 it is the root of the mean of
    2 (d_y - sum_k d_k p_k) - sum_k d_k^2. Equal vectors are in one fold. If all vectors are equal, q are the
    frequencies of the classes.

    Parameters
    ----------
    map : str
        Calibration method, see `calibrant.calibrator_names`.
    n_folds : int
        Number of folds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 4000)
    >>> label = (rng.random((4000, 1)) > (0.7 * p + 0.1).cumsum(axis=1)).sum(axis=1)
    >>> fit = CanonicalVariational("temperature").fit(Simplex.of(p, label))
    >>> truth = 0.3 * float(np.abs(p - 1 / 3).sum(axis=1).mean())
    >>> 0.9 * truth < float(fit.error()) < 1.1 * truth
    True
    """

    map: str = "auto"
    n_folds: int = FOLDS

    vectors = True
    name = "variational"
    short = "variational"
    parameter = "map[:folds]"
    summary = "cross-fitted lower bound"
    norms: ClassVar[tuple[Norm, ...]] = ("l1", "l2")

    def __post_init__(self) -> None:
        from calibrant.maps.methods import METHODS, canonical_name

        object.__setattr__(self, "map", canonical_name(self.map))
        check_choice("map", self.map, METHODS)
        positive_int("n_folds", self.n_folds, 2)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Return the estimator for a map, a number of folds, or both."""
        name, _, folds = (parameter or "").partition(":")
        if name.isdecimal() and not folds:
            name, folds = "", name
        if folds and not folds.isdecimal():
            raise InputError("the number of folds", "be an integer", folds)
        return cls(name or "auto", int(folds) if folds else FOLDS)

    def __str__(self) -> str:
        return f"{self.name}:{self.map}" + (f":{self.n_folds}" if self.n_folds != FOLDS else "")

    def fit(self, rows: Simplex) -> CanonicalVariationalFit:
        """Fit the map without each fold in turn."""
        return CanonicalVariationalFit(self, rows, held_out(rows, self.map, rows.folds(self.n_folds)))


def held_out(rows: Simplex, method: str, parts: list[slice]) -> Array:
    """Return the probabilities of each row by a map that was fitted to the rows of other folds.

    Parameters
    ----------
    rows : Simplex
        The data.
    method : str
        Calibration method.
    parts : list of slice
        The folds; with a single fold, the frequencies of the classes are returned.
    """
    from calibrant.maps import Calibrator
    from calibrant.maps.folds import methods_for

    data = _predictions(rows, slice(0, 0))
    check_choice("map", method, methods_for(data))
    if len(parts) == 1:
        count = np.bincount(rows.code, rows.weight, minlength=rows.n_classes)
        return np.broadcast_to(count / count.sum(), rows.score.shape)
    out = np.empty(rows.score.shape)
    for chunk in parts:
        rest = np.r_[0 : chunk.start, chunk.stop : len(rows.code)]
        out[chunk] = (
            Calibrator(method)._fit_predictions(_predictions(rows, rest)).predict_proba(rows.score[chunk])
        )
    return out


def _predictions(rows: Simplex, subset: slice | Array) -> Predictions:
    weight, counts = rows.weight[subset], np.array_equal(rows.weight, rows.square)
    labels = tuple(range(rows.n_classes))
    positive = 1 if len(labels) == 2 else None
    weight = weight.astype(np.int64) if counts else weight
    return Predictions(rows.score[subset], rows.code[subset], weight, labels, positive, counts=counts)


def gains(rows: Simplex, held_out: Array, norm: Norm) -> Array:
    """Return the contribution of each row to a mean whose expectation is at most l1, l2 squared or mul.

    It is a constant of the row plus the coefficient of its class.
    """
    constant, slope = _linear(rows.score, held_out, norm)
    return np.asarray(constant + slope[np.arange(len(slope)), rows.code])


def lower_bound(rows: Simplex, held_out: Array, norm: Norm = "l1", level: float = 0.95) -> float:
    """Return a lower confidence limit of the error that holds for any shape of the gap.

    It is a normal limit with the larger of two standard errors: that of the observed contributions, and that
    under labels drawn from the scores. The standard error is multiplied by a factor, because folds share
    training rows. One additional row with the smallest possible contribution is included, because
    contributions may be so skewed that such rows are missing by chance.

    Parameters
    ----------
    rows : Simplex
        The data.
    held_out : array (rows, classes)
        Probabilities that do not depend on the class of the row; equal vectors must be in one fold.
    norm : {"l1", "l2", "mul"}
        For "mul" only classes whose scores are too small contribute; the limit is then about half the error.
    level : float
        Confidence level.

    Examples
    --------
    >>> rows = Simplex.of(np.full((200, 2), 0.5), np.zeros(200, int))
    >>> round(lower_bound(rows, np.array([[0.9, 0.1]])), 2)  # true error 1; equal rows are held as one
    0.83
    """
    check_choice("norm", norm, CANONICAL_NORMS)
    z = NormalDist().inv_cdf(checked_level(level))
    n = len(rows.code)
    added, spread, least_added = np.empty(n), np.empty(n), np.inf
    step = max(1, CHUNK // rows.n_classes)
    for a in range(0, n, step):
        chunk = slice(a, a + step)
        p, code = rows.score[chunk], rows.code[chunk]
        constant, slope = _linear(p, held_out[chunk], norm)
        added[chunk] = constant + slope[np.arange(len(code)), code]
        middle = (slope * p).sum(axis=1)
        spread[chunk] = (slope * slope * p).sum(axis=1) - middle * middle
        least_added = min(least_added, float((constant + slope.min(axis=1)).min()))
    mean, error = rows.mean(added)
    by_scores = float(np.sqrt(rows.square @ np.maximum(spread, 0.0))) / rows.n
    objection = float(np.max(rows.square / rows.weight)) * min(least_added, 0.0)
    least = max(mean - z * BOUND_ERROR_FACTOR * max(error, by_scores) + objection / rows.n, 0.0)
    return float(np.sqrt(least)) if norm == "l2" else least


def _linear(p: Array, x: Array, norm: Norm) -> tuple[Array, Array]:
    """Return constants (rows,) and coefficients of the classes (rows, classes) of the gains."""
    d = x - p
    if norm == "l1":
        s = np.sign(d) * (np.abs(d) > LEVEL)
        return -(s * p).sum(axis=1), s
    if norm == "l2":
        return -2 * (d * p).sum(axis=1) - (d * d).sum(axis=1), 2 * d
    # A tangent of eta (eta - p) at x, where x is larger; the others add at least 0.
    up = d > LEVEL
    return -(up * x * x).sum(axis=1), up * (2 * x - p)
