"""The calibration curve of the Bayesian model average, with a band.

The model average is too certain where the gap has a shape that it does not contain, or is so local that it is
taken for noise. The band is therefore the union of two intervals: the quantiles of the model average, and an
interval from the nearby rows, computed at 0.6 of the normal quantile for the pointwise band. The latter comes
from a local linear fit to the gap (outcome minus score). Its window undersmooths, so that the bias is small
compared with the noise: it contains a share of the rows proportional to n^(-1/3), and extends in log-odds by
a distance proportional to n^(-1/7), which limits it in sparse tails.

The method is described in docs/methods/calibration-curve.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.curves.band import RIDGE, clopper_pearson
from calibrant.parallel import cached_property
from calibrant.posterior.log_odds import LogOddsMixture
from calibrant.posterior.log_odds.cells import expit, log_odds
from calibrant.posterior.score_effects import has_few_scores
from calibrant.score_data import Array, Residuals
from calibrant.settings import CURVES

# Number of even scores, and of scores of rows, at which the curve is computed.
NODES = 200
# Groups of rows for the local line: number by rank, and width in log-odds.
GROUPS, GROUP_WIDTH = 800, 0.05
# Scores that differ by less are equal up to rounding.
TOLERANCE = 1e-12
# The curve has no value at scores farther than this from every row.
MAX_SCORE_DISTANCE = 0.06


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with its band at increasing scores; NaN where no row is near.

    Attributes
    ----------
    score, probability : arrays
        Scores, and frequency of the outcome there.
    low, high : arrays
        Ends of the band.
    rows : array
        Effective local sample size.
    """

    score: Array
    probability: Array
    low: Array
    high: Array
    rows: Array


def at_each_score(mixture: LogOddsMixture, residuals: Residuals, level: float, *, simultaneous: bool) -> Line:
    """Return the curve at the distinct scores of the data, with an interval for each."""
    occupied = residuals[residuals.mass > 0]
    if simultaneous:
        level = level ** (1 / occupied.mass.size)
    rows = occupied.mass**2 / occupied.spread
    return _banded(mixture, occupied.score, clopper_pearson(occupied.frequency, rows, level), rows, level)


def through_all_scores(
    mixture: LogOddsMixture,
    residuals: Residuals,
    support: tuple[float, float],
    level: float,
    *,
    simultaneous: bool,
) -> Line:
    """Return the curve at all scores near a row."""
    occupied = residuals[residuals.mass > 0]
    n = float(occupied.n)
    starts, stops = _covered_ranges(occupied.score, _max_distance(n), support)
    groups = occupied.pooled(_group_numbers(occupied))
    row_scores = groups.score[
        np.linspace(0, groups.mass.size - 1, min(groups.mass.size, NODES)).astype(np.intp)
    ]
    score = np.unique(np.append(starts, stops))
    for more in (np.linspace(0, 1, NODES + 1), row_scores):
        score = _with_others(score, more)
    range_number = np.searchsorted(starts, score, side="right") - 1
    score = score[(range_number >= 0) & (score <= stops[range_number])]
    local = _LocalLines.of(groups, score)
    if simultaneous:
        level = local.pointwise_level(level)
    low, high = local.intervals(level)
    if not simultaneous:
        normal = NormalDist()
        quantile = CURVES.local_quantile_share * normal.inv_cdf((1 + level) / 2)
        narrower = local.intervals(2 * normal.cdf(quantile) - 1)
        few = local.rows < CURVES.full_quantile_rows
        low, high = np.where(few, low, narrower[0]), np.where(few, high, narrower[1])
    curve = _banded(mixture, score, (low, high), local.rows, level)
    # Each end of the curve is marked by a node without a value just outside.
    outside = np.concatenate([np.nextafter(starts, 0.0)[starts > 0], np.nextafter(stops, 1.0)[stops < 1]])
    order = np.argsort(np.append(curve.score, outside), kind="stable")

    def ended(values: Array, beyond: float = np.nan) -> Array:
        return np.append(values, np.full(outside.shape, beyond))[order]

    score = np.append(curve.score, outside)[order]
    return Line(score, ended(curve.probability), ended(curve.low), ended(curve.high), ended(curve.rows, 0.0))


def beyond_all_scores(
    mixture: LogOddsMixture, residuals: Residuals, support: tuple[float, float], level: float
) -> Line:
    """Return the curve at all scores in [0, 1]; far from every row it is the model average alone."""
    occupied = residuals[residuals.mass > 0]
    extra_scores = np.unique(np.concatenate([np.linspace(0, 1, NODES + 1), expit(mixture.at)]))
    if has_few_scores(occupied):
        curve = at_each_score(mixture, occupied, level, simultaneous=False)
        # The mean of equal scores may differ from them by rounding.
        extra_scores = extra_scores[
            (extra_scores < curve.score[0] - TOLERANCE) | (extra_scores > curve.score[-1] + TOLERANCE)
        ]
    else:
        curve = through_all_scores(mixture, occupied, support, level, simultaneous=False)
        extra_scores = extra_scores[np.isnan(np.interp(extra_scores, curve.score, curve.low))]
    empty_interval = np.ones(extra_scores.shape), np.zeros(extra_scores.shape)
    extrapolated = _banded(mixture, extra_scores, empty_interval, np.zeros(extra_scores.shape), level)
    has_value = np.isfinite(curve.low)
    parts = zip(
        *((line.score, line.probability, line.low, line.high, line.rows) for line in (curve, extrapolated)),
        strict=True,
    )
    joined = [np.append(on_curve[has_value], beyond) for on_curve, beyond in parts]
    order = np.argsort(joined[0], kind="stable")
    return Line(*(array[order] for array in joined))


def _with_others(score: Array, more: Array) -> Array:
    """Return increasing scores with those of `more` that differ from them by more than rounding.

    >>> _with_others(np.array([0.1, 0.3]), np.array([0.1 + 1e-16, 0.2]))
    array([0.1, 0.2, 0.3])
    """
    next_above = np.searchsorted(score, more - TOLERANCE)
    is_other = np.append(score, np.inf)[next_above] > more + TOLERANCE
    return np.unique(np.append(score, more[is_other]))


def _max_distance(n: float) -> float:
    """Return the half-width of the local lines in log-odds."""
    return float(CURVES.distance * n**-CURVES.distance_exponent)


def offset_log_odds(score: Array, offset: float | None = None) -> Array:
    """Return log-odds after adding an offset to the distances from 0 and 1, so that they stay finite.

    >>> offset_log_odds(np.array([0.0, 0.5, 0.9])).round(2)
    array([-3.93,  0.  ,  2.04])
    """
    # A mean of scores may lie outside of [0, 1] by rounding.
    inside = np.clip(score, 0.0, 1.0)
    offset = CURVES.distance_offset if offset is None else offset
    return np.asarray(np.log((inside + offset) / (1 - inside + offset)))


def _banded(
    mixture: LogOddsMixture, score: Array, nearby: tuple[Array, Array], rows: Array, level: float
) -> Line:
    """Return the model average at some scores, with the union of its interval and the local interval."""
    logit = log_odds(score, mixture.cells.least)
    deviate = NormalDist().inv_cdf((1 + level) / 2)

    def read(values: Array) -> Array:
        return expit(np.interp(logit, mixture.at, values))

    probability = read(mixture.logits)
    low = np.minimum.reduce([nearby[0], read(mixture.quantile(-deviate)), probability])
    high = np.maximum.reduce([nearby[1], read(mixture.quantile(deviate)), probability])
    return Line(score, probability, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), rows)


def _covered_ranges(score: Array, max_distance: float, support: tuple[float, float]) -> tuple[Array, Array]:
    """Return the ends of the ranges of scores with a row nearby, both in score and in log-odds.

    >>> starts, stops = _covered_ranges(np.array([0.3, 0.35, 0.8]), 1.0, (0.0, 1.0))
    >>> starts.round(2), stops.round(2)
    (array([0.24, 0.74]), array([0.41, 0.86]))
    """
    ends, offset, near = [], CURVES.distance_offset, MAX_SCORE_DISTANCE
    for sign, wall in ((-1, support[0]), (1, support[1])):
        ratio = np.exp(offset_log_odds(score) + sign * max_distance)
        by_odds = (ratio * (1 + offset) - offset) / (1 + ratio)
        limit = np.maximum(score - near, by_odds) if sign < 0 else np.minimum(score + near, by_odds)
        ends.append(np.maximum(limit, min(wall, score[0])) if sign < 0 else np.minimum(limit, wall))
    starts, stops = ends
    separate = np.flatnonzero(starts[1:] > stops[:-1])
    return starts[np.append(0, separate + 1)], stops[np.append(separate, -1)]


def _group_numbers(steps: Residuals) -> Array:
    """Return the group of each step; steps of a group are close in rank and in log-odds."""
    share = steps.mass / steps.n
    rank = (np.cumsum(share) - share / 2) * GROUPS
    return rank.astype(np.intp) + np.floor(offset_log_odds(steps.score) / GROUP_WIDTH).astype(np.intp)


def _coefficients(groups: Residuals, score: Array, n: float) -> tuple[Array, Array]:
    """Return the groups near each score, and their coefficients in the local linear fit.

    The coefficients of a score sum to one; they are zero if its window contains no group.
    """
    share = groups.mass / n
    cumulative = np.concatenate([[0.0], np.cumsum(share)])
    rank = cumulative[1:] - share / 2
    # Beyond the outermost scores the fit at these is used.
    score = np.clip(score, groups.score[0], groups.score[-1])
    # The rank of a score of the data is the middle of its rows, whatever the rounding.
    below = np.searchsorted(groups.score, score - TOLERANCE)
    through = np.searchsorted(groups.score, score + TOLERANCE)
    mid_rank = (cumulative[below] + cumulative[through]) / 2
    # At the ends of the ranks the window is extended inwards by the part that lies outside.
    ranks = CURVES.window * n**-CURVES.window_exponent
    half_width = ranks + np.maximum(ranks - np.minimum(mid_rank, 1 - mid_rank), 0.0)
    logit, group_logits = offset_log_odds(score), offset_log_odds(groups.score)
    max_distance = _max_distance(n)
    # The groups of a window are adjacent; all windows are padded to the width of the widest.
    first = np.maximum(
        np.searchsorted(cumulative[1:], mid_rank - half_width),
        np.searchsorted(group_logits, logit - max_distance),
    )
    last = np.minimum(
        np.searchsorted(cumulative[:-1], mid_rank + half_width),
        np.searchsorted(group_logits, logit + max_distance),
    )
    width = int(np.clip(np.max(last - first) + 2, 1, share.size))
    window = np.clip(first - 1, 0, share.size - width)[:, None] + np.arange(width)
    # Tied scores occupy a block of ranks; the distance is measured to the edge of the block.
    by_rank = (
        np.maximum(np.abs(rank[window] - mid_rank[:, None]) - share[window] / 2, 0.0) / half_width[:, None]
    )
    by_odds = (group_logits[window] - logit[:, None]) / max_distance
    kernel = np.maximum(1 - by_rank * by_rank, 0.0) * np.maximum(1 - by_odds * by_odds, 0.0) * share[window]
    # Distances from 0 and 1 below 1 / n are not resolved.
    x = offset_log_odds(groups.score, 1 / n)[window] - offset_log_odds(score, 1 / n)[:, None]
    tilted = kernel * x
    s0, s1, s2 = kernel.sum(axis=-1), tilted.sum(axis=-1), _row_dot(tilted, x)
    s2 += RIDGE * np.maximum(s2, RIDGE * s0)
    line = s2[:, None] * kernel - s1[:, None] * tilted
    total = s0 * s2 - s1 * s1
    return window, np.divide(line, total[:, None], out=np.zeros(line.shape), where=(total > 0)[:, None])


def _row_dot(a: Array, b: Array) -> Array:
    """Return the sum of products along each row."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


@dataclass(frozen=True, eq=False)
class _LocalLines:
    """Local linear fits to the gaps of groups of rows, at given scores.

    Attributes
    ----------
    groups : Residuals
    score : array
    near : array of int (scores, width)
        Groups in the window of each score.
    line : array (scores, width)
        Coefficients of these groups in the fit.
    """

    groups: Residuals
    score: Array
    near: Array
    line: Array

    @classmethod
    def of(cls, groups: Residuals, score: Array) -> _LocalLines:
        """Fit the lines at these scores."""
        return cls(groups, score, *_coefficients(groups, score, float(groups.n)))

    @cached_property
    def gap(self) -> Array:
        """Frequency minus score."""
        gap = _row_dot(self.line, (self.groups.residual / self.groups.mass)[self.near])
        return np.clip(gap, -self.score, 1 - self.score)

    @cached_property
    def _squares(self) -> Array:
        """Squared coefficients of the rows, summed over each group."""
        return self.line**2 * (self.groups.spread / self.groups.mass**2)[self.near]

    @cached_property
    def rows(self) -> Array:
        """Effective local sample size."""
        noise = self._squares.sum(axis=-1)
        return np.divide(1.0, noise, out=np.zeros(noise.shape), where=noise > 0)

    @cached_property
    def _spread(self) -> Array:
        """Variance of an outcome in each group."""
        frequency = np.clip(self.groups.score + np.interp(self.groups.score, self.score, self.gap), 0.0, 1.0)
        return np.asarray(frequency * (1 - frequency))

    def intervals(self, level: float) -> tuple[Array, Array]:
        """Return an interval for the frequency at each score.

        It is the union of Clopper and Pearson's interval for the effective local sample size and the normal
        interval from the variance of the fit. Without rows it is empty: the low end is 1 and the high end 0.
        """
        centre = np.clip(self.score + self.gap, 0.0, 1.0)
        # Where the curve is steep, outcomes in the window can have a larger variance than at the score
        # itself.
        half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(
            _row_dot(self._squares, self._spread[self.near])
        )
        low, high = clopper_pearson(centre, self.rows, level)
        low, high = np.fmin(low, centre - half), np.fmax(high, centre + half)
        return np.where(self.rows > 0, low, 1.0), np.where(self.rows > 0, high, 0.0)

    def pointwise_level(self, level: float) -> float:
        """Return the pointwise level at which the band is simultaneous at `level`.

        It uses the tube formula for the length of the path of the standardised coefficients (Naiman 1986, Sun
        and Loader 1994).
        """
        min_variance = 1 / self.groups.n
        noise_by_group = np.sqrt(self.groups.spread * (self._spread + min_variance)) / self.groups.mass
        noise = np.zeros((self.score.size, noise_by_group.size))
        np.put_along_axis(noise, self.near, self.line * noise_by_group[self.near], axis=1)
        size = np.sqrt(_row_dot(noise, noise))
        step = np.diff(noise[size > 0] / size[size > 0][:, None], axis=0)
        length = float(np.sqrt(_row_dot(step, step)).sum())
        normal = NormalDist()
        low, high = 0.0, 10.0
        for _ in range(50):
            z = (low + high) / 2
            miss_probability = length / np.pi * np.exp(-z * z / 2) + 2 * normal.cdf(-z)
            low, high = (z, high) if miss_probability > 1 - level else (low, z)
        return max(1 - 2 * normal.cdf(-high), level)
