"""From residuals to data with unit noise: cells of equal variance.

The running sum of the residuals, read in the time of its own variance, is Brownian motion plus a
drift; the drift is the calibration gap. Over cells of equal variance the residuals are therefore
data with unit noise, and a cosine transform keeps them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from calibrant.score_data import Array, Residuals
from calibrant.score_data.kernels import KERNELS

# Cells of equal variance: so many up to 1024 rows, then twice as many, and beyond 16 384 rows the root of n.
CELLS, MOST = 64, 4096
# The first, rough look at the gap, which the variance needs: points, and the bandwidth in ranks, for few
# rows by Silverman's rule and never more than these rows. A wide look mixes the variances of scores that
# crowd at 0 or 1 with those of the others, and the noise it misses is taken for a gap.
LOOK, LOOK_WIDTH, LOOK_ROWS = 256, 0.28868, 12.0
# Added to the variance of an outcome, times the root of n: scores of exactly 0 or 1 have none.
LEAST = 0.01


def n_cells(n: Array) -> Array:
    """Return the number of cells of equal variance for n rows; an even one, which can be halved and mirrored.

    >>> n_cells(np.array([1.0, 31.0, 1000.0, 1e6]))
    array([   1,   30,   64, 1024])
    """
    grown = 2 ** np.ceil(np.log2(np.maximum(n, 1)) / 2 - 1e-9)
    least = np.where(n > 16 * CELLS, 2 * CELLS, CELLS)
    # Effective sizes may fall short of a whole number by rounding.
    cells = np.clip(np.minimum(n + 1e-6, np.maximum(least, grown)), 1, MOST).astype(np.intp)
    return np.where(cells > 1, cells - cells % 2, 1)


def n_points(n: Array) -> Array:
    """Return the number of points of the first look for n rows: each row, or one point for 12 to 24 rows.

    >>> n_points(np.array([30.0, 1000.0, 1e5, 1e8]))
    array([  30,  256, 4096, 4096])
    """
    grown = 2 ** np.floor(np.log2(np.maximum(n + 1e-6, 1) / LOOK_ROWS))
    return np.clip(np.minimum(n + 1e-6, np.maximum(LOOK, grown)), 1, MOST).astype(np.intp)


def whiten(flat: Residuals, variance: Array, cells: int) -> tuple[Array, Array, Array, Array]:
    """Return coefficients, scale, share of the rows and mean score over cells of equal variance."""
    from scipy.fft import dct

    n = flat.n
    clock, residual, mass, scored = (
        running(term) for term in (flat.spread * variance, flat.residual, flat.mass, flat.mass * flat.score)
    )
    times = clock[:, -1:] * np.linspace(0, 1, cells + 1)
    sums, rows, scores = np.diff(interpolate(times, clock, (residual, mass, scored)), axis=-1)
    unit = np.sqrt(clock[:, -1] / cells)
    score = np.divide(scores, rows, out=np.zeros(rows.shape), where=rows > 0)
    return dct(sums / unit[:, None], norm="ortho"), unit / n, rows / n[:, None], score


def pilot_variance(flat: Residuals, gap: Array | None = None) -> Array:
    """Return the variance of an outcome at each step: what the score says, or halfway to what a gap says."""
    s = flat.score
    least = LEAST / np.sqrt(flat.n)[:, None]
    if gap is None:
        return s * (1 - s) + least
    p = np.clip(s + gap, 0.0, 1.0)
    return 0.5 * (p * (1 - p) + s * (1 - s)) + least


def look(flat: Residuals) -> Array:
    """Return residuals smoothed over ranks, at each step."""
    from scipy.fft import dct, idct

    n = flat.n
    points = int(n_points(n).min())
    mass = running(flat.mass)
    ranks = mass[:, -1:] * np.linspace(0, 1, points + 1)
    (sums,) = interpolate(ranks, mass, (running(flat.residual),))
    mean = np.diff(sums, axis=-1) * (points / n)[:, None]
    width = np.minimum(LOOK_WIDTH * (0.75 * n) ** -0.2, LOOK_ROWS / n)
    # Classes of one data set mostly have one width.
    widths, alike = np.unique(width, return_inverse=True)
    gain = np.stack([_gain(float(each), points) for each in widths])
    smooth = idct(dct(mean) * (gain if len(gain) == 1 else gain[alike]))
    rank = (mass[:, 1:] + mass[:, :-1]) / 2 * (points / n)[:, None] - 0.5
    left = np.clip(np.floor(rank), 0, max(points - 2, 0)).astype(np.intp)
    share = np.clip(rank - left, 0.0, 1.0)
    low, high = (np.take_along_axis(smooth, at, axis=-1) for at in (left, np.minimum(left + 1, points - 1)))
    return low + share * (high - low)


@lru_cache(maxsize=8)
def _gain(width: float, points: int) -> Array:
    """Return what smoothing over this share of the ranks leaves of each frequency."""
    return KERNELS["triweight"].transform(np.pi * width * np.arange(points))


def running(array: Array) -> Array:
    """Return the sums of the first 0, 1, 2, ... entries of each row."""
    total = np.zeros((*array.shape[:-1], array.shape[-1] + 1), dtype=array.dtype)
    np.cumsum(array, axis=-1, out=total[..., 1:])
    return total


def interpolate(x: Array, knots: Array, values: Sequence[Array]) -> Array:
    """Interpolate linearly, row by row, values known at increasing knots.

    >>> interpolate(np.array([[0.5]]), np.array([[0.0, 1.0, 2.0]]), (np.array([[0.0, 4.0, 5.0]]),))
    array([[[2.]]])
    """
    rows, count = knots.shape
    shift = 2.0 * np.arange(rows)[:, None]
    top = np.maximum(knots[:, -1:], 1e-300)
    at = np.searchsorted((knots / top + shift).ravel(), (x / top + shift).ravel(), side="right") - 1
    first = count * np.repeat(np.arange(rows), x.shape[-1])
    at = np.clip(at, first, first + count - 2)
    left = knots.ravel()[at]
    width = knots.ravel()[at + 1] - left
    share = np.divide(x.ravel() - left, width, out=np.zeros(width.shape), where=width > 0)
    lows = [(value.ravel()[at], value.ravel()[at + 1]) for value in values]
    return np.array([(low + share * (high - low)).reshape(x.shape) for low, high in lows])


class VarianceTime:
    """Cells of equal variance of a single problem, and the way from its points to the cells and back.

    Parameters
    ----------
    noise : array (points,)
        Variance of the residual at each point.
    mass : array (points,)
        Rows at each point.
    cells : int

    Attributes
    ----------
    unit : float
        Standard deviation of the residual of a cell.
    mass : array (cells,)
        Rows of each cell.
    start, stop : arrays (points,)
        Where each point begins and ends, in cells.

    Examples
    --------
    >>> time = VarianceTime(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 2)
    >>> time.to_cells(np.array([[2.0, 3.0]]))
    array([[3., 2.]])
    >>> time.at_points(np.array([[1.0, 4.0]]))
    array([[1., 3.]])
    """

    def __init__(self, noise: Array, mass: Array, cells: int) -> None:
        time = running(noise)
        self.cells = cells
        self.unit = float(np.sqrt(time[-1] / cells))
        place = np.minimum(time * (cells / time[-1]), cells)
        self.start, self.stop = place[:-1], place[1:]
        edges = np.arange(cells + 1)
        self._point = np.minimum(np.searchsorted(place, edges, side="right") - 1, noise.size - 1)
        start, stop = self.start[self._point], self.stop[self._point]
        self._share = np.minimum((edges - start) / (stop - start), 1.0)
        self.mass = self.to_cells(mass)

    def to_cells(self, residual: Array) -> Array:
        """Return the residuals of the cells from those of points, (..., points), that are spread evenly."""
        share = self._share.astype(residual.dtype)
        at_edges = running(residual)[..., self._point] + share * residual[..., self._point]
        return np.diff(at_edges)

    def at_points(self, values: Array) -> Array:
        """Return the mean at each point of what cells hold, (sets, cells)."""
        kind, upto = values.dtype, running(values)
        first, last = (np.minimum(at.astype(np.intp), self.cells - 1) for at in (self.start, self.stop))
        mean = values[:, first]
        wide = np.flatnonzero(first != last)
        low, high = (
            upto[:, at[wide]] + (place - at)[wide].astype(kind) * values[:, at[wide]]
            for at, place in ((first, self.start), (last, self.stop))
        )
        mean[:, wide] = (high - low) / (self.stop - self.start)[wide].astype(kind)
        return mean
