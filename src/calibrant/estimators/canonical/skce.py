"""The squared kernel calibration error: mean product of residuals over pairs of similar rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from calibrant.estimators.base import Estimator, Norm, ValueFit
from calibrant.inputs import InputError, positive_int
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Rows of a block, and vectors whose distances set the reach of the kernel.
BLOCK, SET_BY = 64, 500


@dataclass(frozen=True)
class Skce(Estimator):
    """Squared kernel calibration error (Widmann, Lindsten and Zachariah 2019), unbiased, by blocks.

    The mean over pairs of rows in a block of exp(-|p - p'|/h) <e_y - p, e_y' - p'>, where h is the median
    distance of vectors. It is not on the scale of the ECE. Its expectation is 0 for a calibrated model, so it
    is often negative. Time and memory are linear in the number of rows.

    Parameters
    ----------
    block : int
        Approximate number of rows of a block; equal vectors are in one block.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], 4000)
    >>> label = (rng.random((4000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    >>> abs(float(Skce().fit(Simplex.of(p, label)).error())) < 0.002
    True
    >>> float(Skce().fit(Simplex.of(p, 2 - label)).error()) > 0.02
    True
    """

    block: int = BLOCK

    vectors = True
    signed = True
    name = "skce"
    short = "skce"
    parameter = "rows of a block"
    summary = "squared kernel calibration error, unbiased; may be negative"
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)
    measures_ece = False

    def __post_init__(self) -> None:
        positive_int("block", self.block, 2)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the size of blocks."""
        if parameter is not None and not parameter.isdecimal():
            raise InputError("the size of blocks", "be an integer", parameter)
        return cls() if parameter is None else cls(int(parameter))

    def __str__(self) -> str:
        return self.name if self.block == BLOCK else f"{self.name}:{self.block}"

    def fit(self, rows: Simplex) -> ValueFit:
        """Sum over the pairs of each block."""
        bandwidth = median_distance(rows.score)
        total = pairs = 0.0
        for fold in rows.folds(max(1, round(rows.n / self.block))):
            p, weight, square = rows.score[fold], rows.weight[fold], rows.square[fold]
            rest = rows[fold].residuals(p)
            each = rest * weight[:, None]
            total += float(np.sum(each * (kernel(p, bandwidth) @ each)) - square @ (rest * rest).sum(axis=1))
            pairs += float(weight.sum() ** 2 - square.sum())
        return ValueFit(self, np.asarray(total / pairs if pairs > 1e-9 else 0.0))


def median_distance(score: Array) -> float:
    """Return the median distance of distinct vectors, from a subset of the rows."""
    distances = _distances(score[:SET_BY])
    distances = distances[distances > 1e-9]
    return float(np.median(distances)) if distances.size else 1.0


def kernel(score: Array, bandwidth: float) -> Array:
    """Return the kernel between all vectors."""
    return np.asarray(np.exp(-_distances(score) / bandwidth))


def _distances(score: Array) -> Array:
    length = (score * score).sum(axis=1)
    square = length[:, None] + length - 2 * (score @ score.T)
    # What rounding leaves between equal vectors is nothing.
    return np.asarray(np.sqrt(np.where(square > 1e-14, square, 0.0)))
