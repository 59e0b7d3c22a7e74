"""Bounded kernel smoothing on a grid by cosine transform.

The sums are linearly binned onto equally spaced midpoints. Their cosine coefficients are multiplied by the
kernel's characteristic function. The cosine transform reflects the data at both boundaries, so the density
integrates to one. Time is O(N + G log G) for G grid points. scipy is imported on use because it loads slowly.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from calibrant.estimators.binned import shared
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.kernels import gain

# The paper's grid has steps of .0003. 1/3600 is the next finer one whose nodes lie on the edges
# of the 14400 cells, which makes rows and cells agree to the last digits.
STEP = 1 / 3600
# Narrower kernels cannot be told apart on any grid this side of the cells.
NARROWEST = 3e-4
# Scores this close are one score: rows may differ in their last bit, and cells recover it by subtraction.
TIED = 1e-9
# Wider kernels are flat.
WIDEST = 100.0


@dataclass(frozen=True, eq=False)
class Grid:
    """Score data binned onto the midpoints of equal steps over its support."""

    score: Array
    step: float
    mass: Array
    positive: Array
    residual: Array

    @classmethod
    def of(cls, data: ScoreData, step: float) -> Grid:
        """Bin onto midpoints at most `step` apart; their number is fast to transform."""
        from scipy.fft import next_fast_len

        low, high = data.support
        points = next_fast_len(max(8, ceil((high - low) / step - 1e-9)), real=True)
        step = (high - low) / points
        score = low + (np.arange(points) + 0.5) * step
        m = data.moments(score, np.append(score[:1], score))
        total = m.w.sum(axis=-1, keepdims=True)
        mass, positive = (shared(*array, step) / total for array in ((m.w, m.ws), (m.wy, m.wsy)))
        return cls(score, step, mass, positive, m.bins.residual.sum(axis=-1) / total[..., 0])

    def reached(self, distance: Array) -> Array:
        """Return whether any row lies within a distance of each point."""
        steps = np.minimum(np.ceil(distance / self.step) + 1, self.score.size).astype(np.intp)[..., None]
        n_occupied = np.cumsum(self.mass > 1e-12, axis=-1)
        n_occupied = np.concatenate(
            [np.zeros((*n_occupied.shape[:-1], 1), dtype=n_occupied.dtype), n_occupied], axis=-1
        )
        place = np.arange(self.score.size)
        last = np.minimum(place + steps + 1, self.score.size)
        first = np.maximum(place - steps, 0)
        return np.take_along_axis(n_occupied, last, axis=-1) > np.take_along_axis(n_occupied, first, axis=-1)

    def smooth(self, kernel: str, bandwidth: Array) -> tuple[Array, Array]:
        """Return the density of the scores, and that of the positive rows times their share."""
        from scipy.fft import dct, idct

        points = self.score.size
        factor = gain(kernel, bandwidth, points, points * self.step) / self.step
        return idct(dct(self.mass) * factor), idct(dct(self.positive) * factor)


def steps(bandwidth: Array, step: float = STEP) -> Array:
    """Return the step of the grid for each bandwidth: halved until it is at most a third of it.

    >>> steps(np.array([0.1, 0.0006])) * 3600
    array([1. , 0.5])
    """
    halvings = np.ceil(np.log2(3 * step / np.asarray(bandwidth)) - 1e-9)
    return step / 2.0 ** np.maximum(halvings, 0)


def _range(data: ScoreData, low: float, high: float) -> Array:
    """Return the difference of two quantiles of the scores, with counts as repeated rows."""
    last = np.maximum(data.n[..., None] - 1, 0)
    place = np.array([low, high]) * last
    rank = np.floor(place)
    ends = data.score_at_rank(np.concatenate([rank, np.minimum(rank + 1, np.ceil(last))], axis=-1))
    below, above = np.split(ends, 2, axis=-1)
    quantile = below + (place - rank) * (above - below)
    return np.asarray(quantile[..., 1] - quantile[..., 0])


def silverman(data: ScoreData) -> Array:
    """Return the normal-reference bandwidth: min(sd, IQR/1.349) (3n/4)^(-1/5).

    If the quartiles are equal, the range from 1 % to 99 % is used instead. If that is zero, the bandwidth is
    zero.
    """
    spread = _range(data, 0.25, 0.75) / 1.3489795003921634
    spread = np.where(spread > TIED, np.minimum(np.sqrt(data.variance()), spread), 0.0)
    if not np.all(spread > 0):
        wide = _range(data, 0.01, 0.99) / 4.6526957480816815
        spread = np.where(spread > 0, spread, np.where(wide > TIED, wide, 0.0))
    return spread * (0.75 * data.n) ** -0.2


def scott(data: ScoreData) -> Array:
    """Return Scott's factor as commonly coded: sd n^(-1/5)."""
    spread = np.sqrt(data.variance())
    return np.where(spread > TIED, spread, 0.0) * data.n**-0.2


def isj(data: ScoreData) -> Array:
    """Return Botev's improved Sheather-Jones bandwidth, which does not assume a normal reference.

    Solves t = xi gamma(t) on the cosine coefficients of the data (Botev, Grotowski and Kroese 2010). If there
    is no root, as in small or heavily tied samples, Silverman's bandwidth is returned.
    """
    from scipy.fft import dct

    grid = Grid.of(data, STEP)
    points = grid.score.size
    length = points * grid.step
    blur = np.sinc(np.arange(points) / (2 * points)) ** 2
    coefficient = np.atleast_2d((dct(grid.mass) / 2 / blur)[..., 1:] ** 2)
    rows = coefficient.reshape(-1, points - 1)
    n, fallback = data.n.ravel(), silverman(data).ravel()
    roots = [_isj_root(row, size) for row, size in zip(rows, n, strict=True)]
    width = [length * sqrt(t) if t else h for t, h in zip(roots, fallback, strict=True)]
    return np.reshape(width, data.batch)


def _isj_root(square: Array, n: float) -> float | None:
    """Return the smallest root of t - xi gamma(t), where t is the squared bandwidth on a unit interval."""
    from scipy.optimize import brentq

    index = np.arange(1, square.size + 1, dtype=float) ** 2
    odd = np.cumprod(np.arange(1.0, 14.0, 2))

    def norm(order: int, t: float) -> float:
        return float(2 * np.pi ** (2 * order) * np.sum(index**order * square * np.exp(-index * np.pi**2 * t)))

    def excess(t: float) -> float:
        f = norm(7, t)
        for order in range(6, 1, -1):
            if f <= 0:
                return np.nan
            factor = (1 + 0.5 ** (order + 0.5)) / 3
            time = (2 * factor * odd[order - 1] / sqrt(2 * np.pi) / n / f) ** (2 / (3 + 2 * order))
            f = norm(order, time)
        return t - (2 * n * sqrt(np.pi) * f) ** -0.4 if f > 0 else np.nan

    trial = np.geomspace(1e-8, 0.1, 60)
    value = np.array([excess(t) for t in trial])
    up = np.flatnonzero((value[:-1] < 0) & (value[1:] >= 0))
    return float(brentq(excess, trial[up[0]], trial[up[0] + 1])) if up.size else None


RULES = {"silverman": silverman, "scott": scott, "isj": isj}
