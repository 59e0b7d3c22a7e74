"""Variance time: transform residuals into data with independent unit noise.

The cumulative sum of the residuals y_i - s_i, plotted against the cumulative sum of their variances v_i
("variance time"), is Brownian motion plus a drift, and the drift is the calibration gap. The total variance
is cut into G cells of equal variance. The residual sum of a cell, divided by its standard deviation, then has
unit noise, and an orthonormal cosine transform keeps the noise independent with unit variance.

See docs/methods/default-estimator.md, "From residuals to unit-noise data".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from calibrant.score_data import Array, Residuals
from calibrant.score_data.kernels import KERNELS
from calibrant.settings import PRIOR

# Number of cells of equal variance (resolution): CELLS up to 16 * CELLS rows, then twice as many, and sqrt(n)
# for large n. The compiled loop needs a power of two.
CELLS = 64
# Largest number of cells, and of blocks of the pilot smooth.
MAX_CELLS = 4096
# Least number of blocks of the pilot smooth (resolution), unless there are fewer rows.
PILOT_BLOCKS = 256
# Bandwidth of the pilot smooth by Silverman's rule (1986), times (0.75 n)^(-1/5): the standard deviation of
# uniform ranks.
PILOT_BANDWIDTH = 0.28868


def n_cells(n: Array) -> Array:
    """Return the number of cells of equal variance for n rows, as an even number (1 for a single row).

    >>> n_cells(np.array([1.0, 31.0, 1000.0, 1e6]))
    array([   1,   30,   64, 1024])
    """
    grown = 2 ** np.ceil(np.log2(np.maximum(n, 1)) / 2 - 1e-9)
    smallest = np.where(n > 16 * CELLS, 2 * CELLS, CELLS)
    # Effective sample sizes may be below a whole number by rounding.
    cells = np.clip(np.minimum(n + 1e-6, np.maximum(smallest, grown)), 1, MAX_CELLS).astype(np.intp)
    return np.where(cells > 1, cells - cells % 2, 1)


def n_pilot_blocks(n: Array) -> Array:
    """Return the number of blocks of the pilot smooth for n rows.

    Each row is a block of its own in small samples; large samples have 12 to 24 rows in a block, up to the
    largest number of blocks.

    >>> n_pilot_blocks(np.array([30.0, 1000.0, 1e5, 1e8]))
    array([  30,  256, 4096, 4096])
    """
    grown = 2 ** np.floor(np.log2(np.maximum(n + 1e-6, 1) / PRIOR.largest_pilot_bandwidth))
    return np.clip(np.minimum(n + 1e-6, np.maximum(PILOT_BLOCKS, grown)), 1, MAX_CELLS).astype(np.intp)


def whiten(flat: Residuals, variance: Array, cells: int) -> tuple[Array, Array, Array, Array]:
    """Transform residuals into cosine coefficients with unit noise.

    Parameters
    ----------
    flat : Residuals
        Residuals of a batch of problems in score order, (problems, steps).
    variance : array (problems, steps)
        Variance of an outcome at each step.
    cells : int
        Number of cells of equal variance.

    Returns
    -------
    z : array (problems, cells)
        Orthonormal cosine coefficients of the standardized residual sums of the cells.
    scale : array (problems,)
        Standard deviation of the residual sum of a cell, divided by n.
    mass : array (problems, cells)
        Share of the rows in each cell.
    score : array (problems, cells)
        Mean score of each cell.
    """
    from scipy.fft import dct

    n = flat.n
    step_time, residual, mass, scored = (
        cumulative_sums(term)
        for term in (flat.spread * variance, flat.residual, flat.mass, flat.mass * flat.score)
    )
    times = step_time[:, -1:] * np.linspace(0, 1, cells + 1)
    sums, rows, scores = np.diff(interpolate(times, step_time, (residual, mass, scored)), axis=-1)
    unit = np.sqrt(step_time[:, -1] / cells)
    score = np.divide(scores, rows, out=np.zeros(rows.shape), where=rows > 0)
    return dct(sums / unit[:, None], norm="ortho"), unit / n, rows / n[:, None], score


def pilot_variance(flat: Residuals, gap: Array | None = None) -> Array:
    """Return the variance of an outcome at each step.

    Without `gap` this is s (1 - s), as under calibration. With a pilot estimate of the gap it is a weighted
    mean of s (1 - s) and p (1 - p), where p = s + gap. Both include a small
    constant, because scores of exactly 0 or 1 have no variance otherwise.
    """
    s = flat.score
    least = PRIOR.smallest_outcome_variance / np.sqrt(flat.n)[:, None]
    if gap is None:
        return s * (1 - s) + least
    p = np.clip(s + gap, 0.0, 1.0)
    share = PRIOR.pilot_variance_weight
    return share * p * (1 - p) + (1 - share) * s * (1 - s) + least


def pilot_smooth(flat: Residuals) -> Array:
    """Return the residuals smoothed over ranks with a triweight kernel, at each step.

    This pilot estimate of the gap is used only for the variance of the outcomes. Its bandwidth is limited,
    because a wider kernel mixes the variances of scores near 0 or 1 with those of other scores, and the noise
    that is missed would be attributed to the gap. The limit counts events: it is a number of rows if the
    outcome is as frequent as not, and proportionally more rows if it is rare, so that the kernel does not
    follow single events.
    """
    from scipy.fft import dct, idct

    n = flat.n
    points = int(n_pilot_blocks(n).min())
    mass = cumulative_sums(flat.mass)
    ranks = mass[:, -1:] * np.linspace(0, 1, points + 1)
    (sums,) = interpolate(ranks, mass, (cumulative_sums(flat.residual),))
    mean = np.diff(sums, axis=-1) * (points / n)[:, None]
    rate = np.clip((flat.residual + flat.mass * flat.score).sum(axis=-1) / n, 0.0, 1.0)
    largest = PRIOR.largest_pilot_bandwidth / np.maximum(4 * rate * (1 - rate), 1e-9)
    width = np.minimum(PILOT_BANDWIDTH * (0.75 * n) ** -0.2, largest / n)
    # The classes of one data set usually share one bandwidth.
    widths, unique_index = np.unique(width, return_inverse=True)
    gain = np.stack([_gain(float(each), points) for each in widths])
    smooth = idct(dct(mean) * (gain if len(gain) == 1 else gain[unique_index]))
    rank = (mass[:, 1:] + mass[:, :-1]) / 2 * (points / n)[:, None] - 0.5
    left = np.clip(np.floor(rank), 0, max(points - 2, 0)).astype(np.intp)
    share = np.clip(rank - left, 0.0, 1.0)
    low, high = (np.take_along_axis(smooth, at, axis=-1) for at in (left, np.minimum(left + 1, points - 1)))
    return low + share * (high - low)


@lru_cache(maxsize=8)
def _gain(width: float, points: int) -> Array:
    """Return the transfer function of the triweight kernel: the factor by which it scales each cosine.

    `width` is the bandwidth as a share of the ranks.
    """
    return KERNELS["triweight"].transform(np.pi * width * np.arange(points))


def cumulative_sums(array: Array) -> Array:
    """Return the cumulative sums along the last axis, starting at 0 (one entry more than `array`)."""
    total = np.zeros((*array.shape[:-1], array.shape[-1] + 1), dtype=array.dtype)
    np.cumsum(array, axis=-1, out=total[..., 1:])
    return total


def interpolate(x: Array, knots: Array, values: Sequence[Array]) -> Array:
    """Interpolate linearly, row by row, values that are known at increasing knots.

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
    ends = [(value.ravel()[at], value.ravel()[at + 1]) for value in values]
    return np.array([(low + share * (high - low)).reshape(x.shape) for low, high in ends])


def snr_grid(precision: Array, largest: float) -> Array:
    """Return the signal-to-noise ratios e tau^2 of the grid of sizes tau, (problems, sizes)."""
    least = np.minimum(1.0, precision * PRIOR.smallest_sd**2)
    ratio = precision * largest**2 / least
    return np.asarray(least[:, None] * ratio[:, None] ** np.linspace(0, 1, PRIOR.smooth_sd_count))


class VarianceTime:
    """Cells of equal variance of a single problem, and the transforms between its points and the cells.

    Parameters
    ----------
    noise : array (points,)
        Variance of the residual sum at each point.
    mass : array (points,)
        Rows (or share of the rows) at each point.
    cells : int
        Number of cells.

    Attributes
    ----------
    unit : float
        Standard deviation of the residual sum of a cell.
    mass : array (cells,)
        Rows (or share of the rows) of each cell.
    start, stop : arrays (points,)
        Variance time at which each point starts and stops, in units of cells.

    Examples
    --------
    >>> time = VarianceTime(np.array([1.0, 3.0]), np.array([2.0, 2.0]), 2)
    >>> time.to_cells(np.array([[2.0, 3.0]]))
    array([[3., 2.]])
    >>> time.at_points(np.array([[1.0, 4.0]]))
    array([[1., 3.]])
    """

    def __init__(self, noise: Array, mass: Array, cells: int) -> None:
        time = cumulative_sums(noise)
        self.cells = cells
        self.unit = float(np.sqrt(time[-1] / cells))
        place = np.minimum(time * (cells / time[-1]), cells)
        self.start, self.stop = place[:-1], place[1:]
        edges = np.arange(cells + 1)
        self._point = np.minimum(np.searchsorted(place, edges, side="right") - 1, noise.size - 1)
        start, stop = self.start[self._point], self.stop[self._point]
        # A point of negligible weight may take no time.
        share = np.divide(edges - start, stop - start, out=np.ones(edges.size), where=stop > start)
        self._share = np.minimum(share, 1.0)
        self.mass = self.to_cells(mass)

    def to_cells(self, residual: Array) -> Array:
        """Return the sums over cells of residuals at points, (..., points).

        The residual of a point is distributed evenly over its variance time.
        """
        share = self._share.astype(residual.dtype)
        at_edges = cumulative_sums(residual)[..., self._point] + share * residual[..., self._point]
        return np.diff(at_edges)

    def at_points(self, values: Array) -> Array:
        """Return the mean over the variance time of each point of values given per cell, (sets, cells)."""
        kind, upto = values.dtype, cumulative_sums(values)
        first, last = (np.minimum(at.astype(np.intp), self.cells - 1) for at in (self.start, self.stop))
        mean = values[:, first]
        spans_cells = np.flatnonzero(first != last)
        low, high = (
            upto[:, at[spans_cells]] + (place - at)[spans_cells].astype(kind) * values[:, at[spans_cells]]
            for at, place in ((first, self.start), (last, self.stop))
        )
        mean[:, spans_cells] = (high - low) / (self.stop - self.start)[spans_cells].astype(kind)
        return mean
