"""A lower bound of the error by cross-fitting: held-out rows measure the gap in the direction of a curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, positions
from calibrant.estimators.isotonic import isotonic
from calibrant.inputs import InputError, positive_int
from calibrant.score_data import Array, ScoreData

# Neighbouring scores form at most this many blocks per fold: rows and cells then cut alike.
BLOCKS = 20
# A curve this close to the diagonal has no direction.
LEVEL = 1e-12


@dataclass(frozen=True, eq=False)
class VariationalFit(Fit):
    """The cross-fitted bound.

    Attributes
    ----------
    signed : array
        Mean of sign(g(p) - p) (y - p); negative if the held-out rows contradict the curve.
    """

    signed: Array

    def _error(self, norm: Norm) -> Array:
        """Return the bound, at least 0."""
        return np.maximum(self.signed, 0.0)


@dataclass(frozen=True)
class Variational(Estimator):
    """Cross-fitted variational error (Berta et al. 2026) with isotonic curves.

    The mean over rows of sign(g(p) - p) (y - p), where p is the score, y the outcome, and g a curve fitted
    without the fold of the row. In expectation it is at most the ECE, and zero for a calibrated model. Folds
    are assigned along the sorted scores, with tied scores in one fold, so the order of the rows does not
    matter. If all scores are equal, the result is the absolute mean residual.

    Parameters
    ----------
    n_folds : int
        Number of folds.

    See Also
    --------
    Bayes : The default estimator.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> fit = Variational().fit(Sample(score, rng.random(5000) < score**2))  # true error 1/6
    >>> fit.error().round(2)
    np.float64(0.16)
    """

    n_folds: int = 5

    name = "variational"
    short = "v"
    parameter = "folds"
    summary = "cross-fitted lower bound"
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)

    def __post_init__(self) -> None:
        positive_int("n_folds", self.n_folds, 2)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the number of folds."""
        if parameter is not None and not parameter.isdecimal():
            raise InputError("the number of folds", "be an integer", parameter)
        return cls() if parameter is None else cls(int(parameter))

    def __str__(self) -> str:
        return "variational" if self.n_folds == 5 else f"variational:{self.n_folds}"

    def fit(self, data: ScoreData) -> VariationalFit:
        """Fit a curve for each fold of each problem."""
        tie_groups = data.tie_groups()
        score = positions(tie_groups)
        residual = tie_groups.bins.residual
        signed = np.empty(data.batch)
        for entry in np.ndindex(data.batch):
            occupied = tie_groups.w[entry] > 0
            parts = (array[entry][occupied] for array in (score, tie_groups.w, tie_groups.wy, residual))
            signed[entry] = self._bound(*parts)
        return VariationalFit(self, signed)

    def _bound(self, score: Array, w: Array, wy: Array, residual: Array) -> float:
        total = w.sum()
        if score.size == 1:
            return float(abs(residual[0]) / total)
        fold, bound = self._folds(w), 0.0
        for k in range(min(self.n_folds, int(fold.max()) + 1)):
            out = fold == k
            rest = ~out
            curve = isotonic(wy[rest] / w[rest], w[rest])
            gap = np.interp(score[out], score[rest], curve) - score[out]
            bound += float(np.where(np.abs(gap) > LEVEL, np.sign(gap), 0.0) @ residual[out])
        return bound / float(total)

    def _folds(self, w: Array) -> Array:
        """Return the fold of each tie group: blocks of equal mass in score order are assigned in turn."""
        share = (np.cumsum(w) - w / 2) / w.sum()
        block = np.floor(self.n_folds * BLOCKS * share + 1e-9)
        return (np.cumsum(np.diff(block, prepend=block[0]) > 0)) % self.n_folds
