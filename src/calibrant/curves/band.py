"""Intervals of a frequency: of a bin's, and of a curve's at every score.

The curve is a smooth and therefore biased: it rounds off what is narrower than its kernel, and at
the walls, where scores crowd, it mixes what the scores keep apart. A band around it that shows the
noise alone covers the truth too rarely. The corrected band is built for coverage instead. It smooths
the gap between outcome and score, so that a calibrated model has no bias however steep its curve;
it does so by rank, where scores that crowd lie apart; by local lines, which a wall does not bend;
and over a window that narrows faster than the best one for the curve, so that bias vanishes beside
noise.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from calibrant.score_data import Array, Bins, Cells, Sample, ScoreData

# Half the window in ranks, as a share of the rows: WINDOW n^(-1/3), which undersmooths.
WINDOW = 0.6
# Half the window in scores, in bandwidths of the curve: as far as its kernel reaches.
REACH = 3.0
# Groups of neighbouring scores that the band is computed from, and scores it is computed at.
GROUPS, KNOTS = 800, 128
# Share of the window added to the spread of its ranks, for windows that hold hardly more than one score.
RIDGE = 1e-4


def corrected(
    evidence: ScoreData, bandwidth: float, score: Array, nearby: Array, level: float
) -> tuple[Array, Array]:
    """Return the ends of the bias-corrected band of one problem at the nodes of a curve, at a level each.

    A node answers for the scores up to halfway to the next ones, where saturated scores may change
    their meaning: its interval holds those of all of them.

    Parameters
    ----------
    evidence : Evidence
        A single problem.
    bandwidth : float
        Of the curve; the band looks no further than the curve does.
    score, nearby : arrays
        Nodes in order, and the effective number of rows that speak for the curve there, which
        is the most that may speak for the band.
    level : float

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
    groups, squares = _groups(evidence)
    first = min(evidence.support[0], float(groups.score[0]))
    chosen = groups.score[np.linspace(0, groups.w.size - 1, min(groups.w.size, KNOTS)).astype(np.intp)]
    knots = np.unique(np.concatenate([np.linspace(first, 1.0, KNOTS), chosen]))
    windows = WINDOW * float(evidence.n) ** (-1 / 3), REACH * bandwidth
    low, high = intervals(groups, squares, knots, np.interp(knots, score, nearby), level, *windows)
    at = np.interp(score, knots, low), np.interp(score, knots, high)
    node = np.rint(np.interp(knots, score, np.arange(score.size))).astype(np.intp)
    np.minimum.at(at[0], node, low)
    np.maximum.at(at[1], node, high)
    return at


def intervals(
    groups: Bins, squares: Array, knots: Array, most: Array, level: float, ranks: float, scores: float
) -> tuple[Array, Array]:
    """Return the ends of the intervals at the knots, from groups of rows and squared weights in each.

    They are Wilson's, for the effective number of rows behind each coefficient of the local line, but
    no more than `most`; or that of the line's own variance, where that reaches further.

    >>> groups = Bins(np.array([3.0]), np.array([2.4]), np.array([3.0]))
    >>> low, high = intervals(groups, groups.w, np.array([0.8]), np.array([9.0]), 0.95, 1.0, 1.0)
    >>> float(low[0].round(2)), float(high[0])
    (0.44, 1.0)
    """
    line = lines(groups, knots, ranks, scores)
    gap = line @ groups.gap
    centre = np.clip(knots + gap, 0.0, 1.0)
    # Squared coefficients of the rows, summed over each group; weights may be too small for their squares.
    mass = groups.w**2
    own = line**2 * np.divide(squares, mass, out=np.zeros(mass.shape), where=mass > 0)
    noise = own.sum(axis=-1)
    size = np.divide(1.0, noise, out=np.zeros(noise.shape), where=noise > 0)
    size = np.minimum(size, most)
    # Next to a steep part the rows in the window vary more than rows at the centre would.
    frequency = np.clip(groups.score + np.interp(groups.score, knots, gap), 0.0, 1.0)
    variance = own @ (frequency * (1 - frequency))
    short = np.divide(1.0, size * noise, out=np.ones(noise.shape), where=size * noise > 0)
    half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(variance * short)
    low, high = wilson(centre, size, level)
    low = np.where(size > 0, np.clip(np.fmin(low, centre - half), 0.0, 1.0), 0.0)
    high = np.where(size > 0, np.clip(np.fmax(high, centre + half), 0.0, 1.0), 1.0)
    return low, high


def lines(groups: Bins, knots: Array, ranks: float, scores: float) -> Array:
    """Return coefficients (knots, groups) of the local line in ranks through what is known of the groups.

    A group's weight falls to zero, by Epanechnikov's kernel, at a distance of `ranks` from the ranks
    it takes up (up to twice that at their ends) and of `scores` from its score. The coefficients of
    a knot add up to one; they are zero where its windows hold no group.

    >>> groups = Bins(np.ones(5), np.linspace(0.1, 0.9, 5), np.zeros(5))
    >>> line = lines(groups, np.array([0.4]), 0.5, 1.0)
    >>> (line @ np.linspace(0.1, 0.9, 5)).round(3)
    array([0.4])
    """
    share = groups.w / groups.w.sum()
    rank = np.cumsum(share) - share / 2
    middle = np.interp(knots, groups.score, rank)
    # At an end of the ranks the window reaches as much further inwards as it would reach beyond.
    wide = ranks + np.maximum(ranks - np.minimum(middle, 1 - middle), 0.0)[:, None]
    x = (rank - middle[:, None]) / wide
    u = (groups.score - knots[:, None]) / scores
    # Tied scores take up a block of ranks: a score between two blocks is next to both.
    outside = np.maximum(np.abs(x) - share / (2 * wide), 0.0)
    kernel = np.maximum(1 - outside * outside, 0.0) * np.maximum(1 - u * u, 0.0) * share
    tilted = kernel * x
    s0, s1 = kernel.sum(axis=-1), tilted.sum(axis=-1)
    s2 = np.einsum("ij,ij->i", tilted, x) + RIDGE * s0
    line = s2[:, None] * kernel - s1[:, None] * tilted
    total = s0 * s2 - s1 * s1
    return np.divide(line, total[:, None], out=np.zeros(line.shape), where=(total > 0)[:, None])


def _groups(evidence: ScoreData) -> tuple[Bins, Array]:
    """Sum rows, and squared weights, over cells of neighbouring scores.

    The cells are those of a sketch, which then gives the band of the rows; many are pooled by rank.
    """
    cells, squares = (_cells(one).sums.bins for one in (evidence, evidence.squared()))
    held = cells.w > 0
    parts = [part[held] for part in (cells.w, cells.ws, cells.wy, squares.w)]
    if parts[0].size > GROUPS:
        rank = (np.cumsum(parts[0]) - parts[0] / 2) / parts[0].sum()
        _, start = np.unique((rank * GROUPS).astype(np.intp), return_index=True)
        parts = [np.add.reduceat(part, start) for part in parts]
    return Bins(*parts[:3]), parts[3]


def _cells(evidence: ScoreData) -> Cells:
    if isinstance(evidence, Sample):
        return Cells.of(evidence)
    assert isinstance(evidence, Cells)
    return evidence


def wilson(frequency: Array, count: Array, level: float) -> tuple[Array, Array]:
    """Return Wilson's score interval of a frequency; NaN without rows.

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
    """Return Clopper and Pearson's interval of a frequency; NaN without rows.

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
