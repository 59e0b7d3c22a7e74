"""Intervals for the frequency in a bin, and the bias-corrected band of a curve by kernel densities.

A kernel estimate of the curve is biased where the curve changes within the width of the kernel, and near 0
and 1, where scores are dense. A band that contains the noise alone covers too rarely. The corrected band
reduces the bias:

- It smooths the gap (outcome minus score), so that there is no bias for a calibrated model. - It smooths by
rank, which separates dense scores. - It uses local linear fits, which have little bias at boundaries. - Its
window undersmooths: it narrows faster than the optimal one, so that the bias is small compared with the
noise.

The default curve has another band; both are compared in docs/methods/calibration-curve.md.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from calibrant.score_data import Array, Bins, Cells, Sample, ScoreData
from calibrant.settings import CURVES

# Half-width of the window in scores, in bandwidths of the curve: the support of its kernel.
SCORE_WINDOW = 3.0
# Largest number of groups of adjacent scores, and number of scores at which the band is computed.
GROUPS, KNOTS = 800, 128
# Ridge added to the variance of the ranks, in squared windows, for windows with hardly more than one score.
RIDGE = 1e-4


def corrected(
    score_data: ScoreData, bandwidth: float, score: Array, nearby: Array, level: float
) -> tuple[Array, Array]:
    """Return the ends of the pointwise bias-corrected band of one problem at the nodes of a curve.

    The interval of a node is the union over the scores up to halfway to the adjacent nodes, because
    frequencies can change rapidly there near 0 and 1.

    Parameters
    ----------
    score_data : ScoreData
        A single problem.
    bandwidth : float
        Bandwidth of the curve, which limits the window of the band.
    score, nearby : arrays
        Nodes in ascending order, and the effective local sample size of the curve there, an upper limit for
        that of the band.
    level : float
        Confidence level at each node.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> sample = Sample(score, rng.random(2000) < score**2)
    >>> low, high = corrected(sample, 0.06, np.array([0.25, 0.5, 0.75]), np.full(3, 500.0), 0.95)
    >>> bool(np.all((low < [0.0625, 0.25, 0.5625]) & (high > [0.0625, 0.25, 0.5625])))
    True
    """
    groups, squares = _groups(score_data)
    first = min(score_data.support[0], float(groups.score[0]))
    group_scores = groups.score[np.linspace(0, groups.w.size - 1, min(groups.w.size, KNOTS)).astype(np.intp)]
    knots = np.unique(np.concatenate([np.linspace(first, 1.0, KNOTS), group_scores]))
    ranks = CURVES.window * float(score_data.n) ** -CURVES.window_exponent
    windows = ranks, SCORE_WINDOW * bandwidth
    low, high = intervals(groups, squares, knots, np.interp(knots, score, nearby), level, *windows)
    ends = np.interp(score, knots, low), np.interp(score, knots, high)
    node = np.rint(np.interp(knots, score, np.arange(score.size))).astype(np.intp)
    np.minimum.at(ends[0], node, low)
    np.maximum.at(ends[1], node, high)
    return ends


def intervals(
    groups: Bins, squares: Array, knots: Array, max_size: Array, level: float, ranks: float, scores: float
) -> tuple[Array, Array]:
    """Return intervals at the knots, from groups of rows and the sums of squared weights in each group.

    The interval is the union of Wilson's, for the effective local sample size of the fit but at most
    `max_size`, and the normal interval from the variance of the fit.

    >>> groups = Bins(np.array([3.0]), np.array([2.4]), np.array([3.0]))
    >>> low, high = intervals(groups, groups.w, np.array([0.8]), np.array([9.0]), 0.95, 1.0, 1.0)
    >>> float(low[0].round(2)), float(high[0])
    (0.44, 1.0)
    """
    line = local_lines(groups, knots, ranks, scores)
    gap = line @ groups.gap
    centre = np.clip(knots + gap, 0.0, 1.0)
    # Squared coefficients of the rows, summed over each group; the squares of tiny weights may underflow.
    mass = groups.w**2
    squared_coefficients = line**2 * np.divide(squares, mass, out=np.zeros(mass.shape), where=mass > 0)
    noise = squared_coefficients.sum(axis=-1)
    size = np.divide(1.0, noise, out=np.zeros(noise.shape), where=noise > 0)
    size = np.minimum(size, max_size)
    # Where the curve is steep, outcomes in the window can have a larger variance than at the centre.
    frequency = np.clip(groups.score + np.interp(groups.score, knots, gap), 0.0, 1.0)
    variance = squared_coefficients @ (frequency * (1 - frequency))
    size_ratio = np.divide(1.0, size * noise, out=np.ones(noise.shape), where=size * noise > 0)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance * size_ratio)
    low, high = wilson(centre, size, level)
    low = np.where(size > 0, np.clip(np.fmin(low, centre - half), 0.0, 1.0), 0.0)
    high = np.where(size > 0, np.clip(np.fmax(high, centre + half), 0.0, 1.0), 1.0)
    return low, high


def local_lines(groups: Bins, knots: Array, ranks: float, scores: float) -> Array:
    """Return the coefficients (knots, groups) of local linear fits in ranks.

    The kernel is the product of Epanechnikov kernels in ranks, with half-width `ranks` (up to twice that at
    the ends), and in scores, with half-width `scores`. The coefficients of a knot sum to one; they are zero
    if its window contains no group.

    >>> groups = Bins(np.ones(5), np.linspace(0.1, 0.9, 5), np.zeros(5))
    >>> line = local_lines(groups, np.array([0.4]), 0.5, 1.0)
    >>> (line @ np.linspace(0.1, 0.9, 5)).round(3)
    array([0.4])
    """
    share = groups.w / groups.w.sum()
    rank = np.cumsum(share) - share / 2
    mid_rank = np.interp(knots, groups.score, rank)
    # At the ends of the ranks the window is extended inwards by the part that lies outside.
    half_width = ranks + np.maximum(ranks - np.minimum(mid_rank, 1 - mid_rank), 0.0)[:, None]
    x = (rank - mid_rank[:, None]) / half_width
    u = (groups.score - knots[:, None]) / scores
    # Tied scores occupy a block of ranks; the distance is measured to the edge of the block.
    outside = np.maximum(np.abs(x) - share / (2 * half_width), 0.0)
    kernel = np.maximum(1 - outside * outside, 0.0) * np.maximum(1 - u * u, 0.0) * share
    tilted = kernel * x
    s0, s1 = kernel.sum(axis=-1), tilted.sum(axis=-1)
    s2 = np.einsum("ij,ij->i", tilted, x) + RIDGE * s0
    line = s2[:, None] * kernel - s1[:, None] * tilted
    total = s0 * s2 - s1 * s1
    return np.divide(line, total[:, None], out=np.zeros(line.shape), where=(total > 0)[:, None])


def _groups(score_data: ScoreData) -> tuple[Bins, Array]:
    """Sum rows, and squared weights, over groups of adjacent scores.

    The cells are those of a sketch, so that a sketch has the same band as its rows; cells are merged by rank.
    """
    cells, squares = (_cells(data).sums.bins for data in (score_data, score_data.squared()))
    occupied = cells.w > 0
    parts = [array[occupied] for array in (cells.w, cells.ws, cells.wy, squares.w)]
    if parts[0].size > GROUPS:
        rank = (np.cumsum(parts[0]) - parts[0] / 2) / parts[0].sum()
        _, start = np.unique((rank * GROUPS).astype(np.intp), return_index=True)
        parts = [np.add.reduceat(array, start) for array in parts]
    return Bins(*parts[:3]), parts[3]


def _cells(score_data: ScoreData) -> Cells:
    if isinstance(score_data, Sample):
        return Cells.of(score_data)
    assert isinstance(score_data, Cells)
    return score_data


def wilson(frequency: Array, count: Array, level: float) -> tuple[Array, Array]:
    """Return Wilson's score interval for a frequency; NaN without rows.

    >>> [float(end.round(4)) for end in wilson(np.array(0.5), np.array(10.0), 0.95)]
    [0.2366, 0.7634]
    """
    z2 = NormalDist().inv_cdf((1 - level) / 2) ** 2
    size = np.where(count > 0, count, np.nan)
    centre = (frequency + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * (np.maximum(frequency * (1 - frequency), 0) / size + z2 / (4 * size**2))) / (
        1 + z2 / size
    )
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def clopper_pearson(frequency: Array, count: Array, level: float) -> tuple[Array, Array]:
    """Return Clopper and Pearson's interval for a frequency; NaN without rows.

    >>> [float(end.round(4)) for end in clopper_pearson(np.array(0.5), np.array(10.0), 0.95)]
    [0.1871, 0.8129]
    """
    from scipy.special import betaincinv

    size = np.where(count > 0, count, np.nan)
    hits = frequency * size
    tail = (1 - level) / 2
    low = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-300), size - hits + 1, tail), 0.0)
    high = np.where(hits < size, betaincinv(hits + 1, np.maximum(size - hits, 1e-300), 1 - tail), 1.0)
    return np.where(count > 0, low, np.nan), np.where(count > 0, high, np.nan)


INTERVALS = {"wilson": wilson, "clopper-pearson": clopper_pearson}
