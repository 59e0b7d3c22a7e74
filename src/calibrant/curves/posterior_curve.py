"""The curve: what each score means by the average over maps, with a band.

The average knows what it was built to know. Where a gap is of another kind, or so local that it is taken for
noise, it is too sure. The band of a score therefore joins two intervals: that of the average, and one of the
rows nearby alone, at three fifths of the width that it would need by itself. The latter is a local line
through the gap between outcome and score, over a window that narrows faster than the best one would, so that
bias stays behind noise: a share of the rows that shrinks like n^(-1/3), none of them further away in log-odds
than a distance that shrinks like n^(-1/7), which is what ends the window in thin tails.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.curves.band import RIDGE, clopper_pearson
from calibrant.posterior.log_odds import Mixture
from calibrant.posterior.log_odds.cells import expit, log_odds
from calibrant.posterior.score_effects import is_few
from calibrant.score_data import Array, Residuals

# Half the window: WINDOW n^(-1/3) of the rows, and no further than FAR n^(-1/7) in log-odds, which count
# WALL as the distance to a wall that can be told.
WINDOW, FAR, WALL = 0.6, 2.5, 0.02
# A score further away from every row has no answer.
NEAR = 0.06
# Scores at which a curve is known, evenly and by rows; groups of rows, by rank and by log-odds.
NODES, GROUPS, FINENESS = 200, 800, 0.05
# Scores that differ by less are one.
BITS = 1e-12
# How far the rows nearby have their say in the band of a single score, in parts of the deviate; and how few
# have it all.
SAY, FEW = 0.6, 10.0


@dataclass(frozen=True, eq=False)
class Line:
    """Frequency, ends of the band and rows that speak, at increasing scores; NaN where no row is near."""

    score: Array
    probability: Array
    low: Array
    high: Array
    rows: Array


def at_each_score(mixture: Mixture, residuals: Residuals, level: float, *, simultaneous: bool) -> Line:
    """Return what each score means that occurs, with an interval for each."""
    held = residuals[residuals.mass > 0]
    if simultaneous:
        level = level ** (1 / held.mass.size)
    rows = held.mass**2 / held.spread
    return _banded(mixture, held.score, clopper_pearson(held.frequency, rows, level), rows, level)


def through_all_scores(
    mixture: Mixture, residuals: Residuals, support: tuple[float, float], level: float, *, simultaneous: bool
) -> Line:
    """Return what scores mean wherever a row is near."""
    held = residuals[residuals.mass > 0]
    n = float(held.n)
    starts, stops = _reach(held.score, FAR * n ** (-1 / 7), support)
    groups = held.pooled(_neighbours(held))
    some = groups.score[np.linspace(0, groups.mass.size - 1, min(groups.mass.size, NODES)).astype(np.intp)]
    score = np.unique(np.concatenate([np.linspace(0, 1, NODES + 1), some, starts, stops]))
    stretch = np.searchsorted(starts, score, side="right") - 1
    score = score[(stretch >= 0) & (score <= stops[stretch])]
    near = _Nearby.of(groups, score)
    if simultaneous:
        level = near.for_all_scores(level)
    low, high = near.intervals(level)
    if not simultaneous:
        normal = NormalDist()
        less = near.intervals(2 * normal.cdf(SAY * normal.inv_cdf((1 + level) / 2)) - 1)
        few = near.rows < FEW
        low, high = np.where(few, low, less[0]), np.where(few, high, less[1])
    known = _banded(mixture, score, (low, high), near.rows, level)
    # A curve ends between two nodes: the last that is known, and one without a value.
    outside = np.concatenate([np.nextafter(starts, 0.0)[starts > 0], np.nextafter(stops, 1.0)[stops < 1]])
    order = np.argsort(np.append(known.score, outside), kind="stable")

    def ended(values: Array, beyond: float = np.nan) -> Array:
        return np.append(values, np.full(outside.shape, beyond))[order]

    score = np.append(known.score, outside)[order]
    return Line(score, ended(known.probability), ended(known.low), ended(known.high), ended(known.rows, 0.0))


def beyond_all_scores(
    mixture: Mixture, residuals: Residuals, support: tuple[float, float], level: float
) -> Line:
    """Return what every score in [0, 1] means: as in the curve, or by the average alone if no row is near."""
    held = residuals[residuals.mass > 0]
    more = np.unique(np.concatenate([np.linspace(0, 1, NODES + 1), expit(mixture.at)]))
    if is_few(held):
        known = at_each_score(mixture, held, level, simultaneous=False)
        # A mean of equal scores may be off by its last bits.
        more = more[(more < known.score[0] - BITS) | (more > known.score[-1] + BITS)]
    else:
        known = through_all_scores(mixture, held, support, level, simultaneous=False)
        more = more[np.isnan(np.interp(more, known.score, known.low))]
    alone = np.ones(more.shape), np.zeros(more.shape)
    rest = _banded(mixture, more, alone, np.zeros(more.shape), level)
    held_nodes = np.isfinite(known.low)
    parts = zip(
        *((line.score, line.probability, line.low, line.high, line.rows) for line in (known, rest)),
        strict=True,
    )
    joined = [np.append(mine[held_nodes], theirs) for mine, theirs in parts]
    order = np.argsort(joined[0], kind="stable")
    return Line(*(part[order] for part in joined))


def odds(score: Array, wall: float = WALL) -> Array:
    """Return log-odds that stay finite: less than `wall` from 0 or 1 cannot be told from it.

    >>> odds(np.array([0.0, 0.5, 0.9])).round(2)
    array([-3.93,  0.  ,  2.04])
    """
    # A mean of scores may lie beyond a wall by its last bit.
    inside = np.clip(score, 0.0, 1.0)
    return np.asarray(np.log((inside + wall) / (1 - inside + wall)))


def _banded(mixture: Mixture, score: Array, nearby: tuple[Array, Array], rows: Array, level: float) -> Line:
    """Return the average at some scores, with a band that joins its interval and that of the rows nearby."""
    place = log_odds(score, mixture.cells.least)
    deviate = NormalDist().inv_cdf((1 + level) / 2)

    def read(values: Array) -> Array:
        return expit(np.interp(place, mixture.at, values))

    probability = read(mixture.odds)
    low = np.minimum.reduce([nearby[0], read(mixture.quantile(-deviate)), probability])
    high = np.maximum.reduce([nearby[1], read(mixture.quantile(deviate)), probability])
    return Line(score, probability, np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0), rows)


def _reach(score: Array, far: float, support: tuple[float, float]) -> tuple[Array, Array]:
    """Return the ends of the stretches in which a row is near: in scores, and in log-odds.

    >>> starts, stops = _reach(np.array([0.3, 0.35, 0.8]), 1.0, (0.0, 1.0))
    >>> starts.round(2), stops.round(2)
    (array([0.24, 0.74]), array([0.41, 0.86]))
    """
    ends = []
    for way, wall in ((-1, support[0]), (1, support[1])):
        ratio = np.exp(odds(score) + way * far)
        by_odds = (ratio * (1 + WALL) - WALL) / (1 + ratio)
        near = np.maximum(score - NEAR, by_odds) if way < 0 else np.minimum(score + NEAR, by_odds)
        ends.append(np.maximum(near, min(wall, score[0])) if way < 0 else np.minimum(near, wall))
    starts, stops = ends
    apart = np.flatnonzero(starts[1:] > stops[:-1])
    return starts[np.append(0, apart + 1)], stops[np.append(apart, -1)]


def _neighbours(steps: Residuals) -> Array:
    """Return the group of each step: neighbours by rank that are neighbours in log-odds, too."""
    share = steps.mass / steps.n
    rank = (np.cumsum(share) - share / 2) * GROUPS
    return rank.astype(np.intp) + np.floor(odds(steps.score) / FINENESS).astype(np.intp)


def _coefficients(groups: Residuals, score: Array, n: float) -> tuple[Array, Array]:
    """Return groups near each score, and the coefficients of the local line through what is known of them.

    The coefficients of a score add up to one; they are zero where its window holds no group.
    """
    share = groups.mass / n
    upto = np.concatenate([[0.0], np.cumsum(share)])
    rank = upto[1:] - share / 2
    # Beyond the outermost scores the line goes on as it is there.
    score = np.clip(score, groups.score[0], groups.score[-1])
    # A score that occurs lies in the middle of its rows, however its last bits fell.
    below = np.searchsorted(groups.score, score - BITS)
    through = np.searchsorted(groups.score, score + BITS)
    middle = (upto[below] + upto[through]) / 2
    # At an end of the ranks the window reaches as much further inwards as it would reach beyond.
    ranks = WINDOW * n ** (-1 / 3)
    wide = ranks + np.maximum(ranks - np.minimum(middle, 1 - middle), 0.0)
    place, places, far = odds(score), odds(groups.score), FAR * n ** (-1 / 7)
    # A window holds neighbours: the first of them, and as many for each score as for the widest.
    first = np.maximum(np.searchsorted(upto[1:], middle - wide), np.searchsorted(places, place - far))
    last = np.minimum(np.searchsorted(upto[:-1], middle + wide), np.searchsorted(places, place + far))
    width = int(np.clip(np.max(last - first) + 2, 1, share.size))
    near = np.clip(first - 1, 0, share.size - width)[:, None] + np.arange(width)
    # Tied scores take up a block of ranks: a score between two blocks is next to both.
    by_rank = np.maximum(np.abs(rank[near] - middle[:, None]) - share[near] / 2, 0.0) / wide[:, None]
    by_odds = (places[near] - place[:, None]) / far
    kernel = np.maximum(1 - by_rank * by_rank, 0.0) * np.maximum(1 - by_odds * by_odds, 0.0) * share[near]
    # Less than a row's worth from a wall cannot be told from it.
    x = odds(groups.score, 1 / n)[near] - odds(score, 1 / n)[:, None]
    tilted = kernel * x
    s0, s1, s2 = kernel.sum(axis=-1), tilted.sum(axis=-1), _sums(tilted, x)
    s2 += RIDGE * np.maximum(s2, RIDGE * s0)
    line = s2[:, None] * kernel - s1[:, None] * tilted
    total = s0 * s2 - s1 * s1
    return near, np.divide(line, total[:, None], out=np.zeros(line.shape), where=(total > 0)[:, None])


def _sums(a: Array, b: Array) -> Array:
    """Return the sum of products along each row."""
    return np.asarray(np.einsum("ij,ij->i", a, b))


@dataclass(frozen=True, eq=False)
class _Nearby:
    """What the rows near each score say by themselves: a local line through the gaps of groups of rows.

    Attributes
    ----------
    groups : Residuals
    score : array
    near : array of int (scores, width)
        Groups that may be in the window of each score.
    line : array (scores, width)
        Coefficients of the lines.
    """

    groups: Residuals
    score: Array
    near: Array
    line: Array

    @classmethod
    def of(cls, groups: Residuals, score: Array) -> _Nearby:
        """Draw the lines at these scores."""
        return cls(groups, score, *_coefficients(groups, score, float(groups.n)))

    @cached_property
    def gap(self) -> Array:
        """Frequency minus score."""
        gap = _sums(self.line, (self.groups.residual / self.groups.mass)[self.near])
        return np.clip(gap, -self.score, 1 - self.score)

    @cached_property
    def _squares(self) -> Array:
        """Squared coefficients of the rows, summed over each group."""
        return self.line**2 * (self.groups.spread / self.groups.mass**2)[self.near]

    @cached_property
    def rows(self) -> Array:
        """Effective number of rows behind each line."""
        noise = self._squares.sum(axis=-1)
        return np.divide(1.0, noise, out=np.zeros(noise.shape), where=noise > 0)

    @cached_property
    def _spread(self) -> Array:
        """Variance of an outcome in each group."""
        frequency = np.clip(self.groups.score + np.interp(self.groups.score, self.score, self.gap), 0.0, 1.0)
        return np.asarray(frequency * (1 - frequency))

    def intervals(self, level: float) -> tuple[Array, Array]:
        """Return the ends of an interval of the frequency at each score.

        They are Clopper and Pearson's for the effective number of rows; or those of the line's variance,
        where that reaches further. Without rows there is none: its low end is 1 and its high end 0.
        """
        centre = np.clip(self.score + self.gap, 0.0, 1.0)
        # Next to a steep part the rows in the window vary more than rows at the score itself would.
        half = NormalDist().inv_cdf((1 + level) / 2) * np.sqrt(_sums(self._squares, self._spread[self.near]))
        low, high = clopper_pearson(centre, self.rows, level)
        low, high = np.fmin(low, centre - half), np.fmax(high, centre + half)
        return np.where(self.rows > 0, low, 1.0), np.where(self.rows > 0, high, 0.0)

    def for_all_scores(self, level: float) -> float:
        """Return the level that each score needs for a band that holds the whole curve at a level.

        By the length of the path of the standardised coefficients (Naiman 1986, Sun and Loader 1994).
        """
        least = 1 / self.groups.n
        each = np.sqrt(self.groups.spread * (self._spread + least)) / self.groups.mass
        noise = np.zeros((self.score.size, each.size))
        np.put_along_axis(noise, self.near, self.line * each[self.near], axis=1)
        size = np.sqrt(_sums(noise, noise))
        step = np.diff(noise[size > 0] / size[size > 0][:, None], axis=0)
        length = float(np.sqrt(_sums(step, step)).sum())
        normal = NormalDist()
        low, high = 0.0, 10.0
        for _ in range(50):
            z = (low + high) / 2
            missed = length / np.pi * np.exp(-z * z / 2) + 2 * normal.cdf(-z)
            low, high = (z, high) if missed > 1 - level else (low, z)
        return max(1 - 2 * normal.cdf(-high), level)
