"""Selective decisions: how right the rows are that one keeps, if one keeps the surest.

Rows are kept in the order of their confidence, and those of one confidence enter together: a point of the
curve is a threshold. Its interval is Clopper and Pearson's for as many rows as have the variance of the
accuracy at a fixed coverage, in which the threshold is itself an estimate: with A the accuracy of what is
kept, m that of rows right at the threshold and f the coverage, each of n rows adds 1{kept} (right - m) / f -
(A - m). The band holds at all coverages together: by the largest of the standardised sums, drawn from their
normal limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from calibrant import inputs
from calibrant.compiled.blas import one_blas_thread
from calibrant.compiled.cached import cached_property
from calibrant.curves.band import clopper_pearson
from calibrant.decisions.interval import simultaneous_deviate
from calibrant.inference.interval import first_of_each
from calibrant.inference.measured import Measured, Within, interval_deviate
from calibrant.inference.random_streams import stream
from calibrant.inputs import ROUNDING, InputError, Serializable, is_number
from calibrant.inputs.codec import (
    UNIT,
    Ascending,
    Count,
    Level,
    Number,
    Shape,
    Size,
    check_lengths,
    check_order,
)
from calibrant.inputs.wording import counted, percent, sample_size
from calibrant.posterior import posterior_of
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.clusters import are_alone, effective_clusters
from calibrant.tasks import CalibrationTask, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Thresholds that a curve has at most, and those at which sums of rows are looked at together; of both a part
# lies evenly along the logarithm of the coverage.
NODES, GRID, BY_LOG = 1000, 128, 0.25
# Rows below which a normal limit says little, and draws of it.
FEWEST, DRAWS = 10, 4000
# A variance that is left by rounding.
NOTHING = 1e-18


class Accuracy(NamedTuple):
    """How right the rows are that are kept: value and interval, their share, and the confidence they have."""

    value: float
    low: float
    high: float
    coverage: float
    confidence: float


class Coverage(NamedTuple):
    """The largest share of rows that is as right as asked: value and interval, accuracy, and threshold.

    Where no share is, the value is 0, and there are no accuracy and no confidence (NaN).
    """

    value: float
    low: float
    high: float
    accuracy: float
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage(Serializable):
    """How right the rows are that are kept, from the surest on.

    Attributes
    ----------
    confidence : array
        Thresholds, falling: rows at least as sure are kept.
    coverage : array
        The share of rows that is kept, rising to 1.
    accuracy, low, high : arrays
        Accuracy of what is kept, with an interval for each coverage by itself.
    band_low, band_high : arrays
        Ends of a band that holds at all coverages together.
    aurc : Measured
        Area under the curve of risk, 1 - accuracy: its mean over all numbers of rows that may be kept, where
        of rows that are equally sure any is as likely to be the next.
    excess : Measured
        What that is above the best order, in which no wrong row comes before a right one (e-AURC).
    level : float
    n : float
        Effective number of rows.
    notion : str
    clusters : int or None
        How many clusters the rows fall into, where that was said.
    seed : int
        Of the draws that the band is from.
    """

    confidence: Annotated[Array, Shape((None,)), UNIT]
    coverage: Annotated[Array, UNIT, Ascending()]
    accuracy: Annotated[Array, UNIT]
    low: Annotated[Array, UNIT]
    high: Annotated[Array, UNIT]
    band_low: Annotated[Array, UNIT]
    band_high: Annotated[Array, UNIT]
    aurc: Annotated[Measured, Within(0, 1)]
    excess: Annotated[Measured, Within(0, 1)]
    level: Level
    n: Size
    notion: str
    clusters: Number | None
    seed: Count

    @property
    def risk(self) -> Array:
        """Share of what is kept that is wrong."""
        return 1 - self.accuracy

    def accuracy_at(self, coverage: float) -> Accuracy:
        """Return how right the surest rows are: at the threshold that keeps at least this share of all.

        Examples
        --------
        >>> import calibrant
        >>> right, sure = [1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.8, 0.7, 0.6, 0.5]
        >>> found = calibrant.risk_coverage(right, sure, notion="correctness", rng=0)
        >>> at = found.accuracy_at(0.4)
        >>> round(at.value, 3), at.coverage, at.confidence
        (0.667, 0.5, 0.8)
        """
        if not is_number(coverage) or not 0 < coverage <= 1:
            raise InputError("coverage", "be above 0 and at most 1", coverage)
        k = min(int(np.searchsorted(self.coverage, coverage - ROUNDING)), self.coverage.size - 1)
        arrays = (self.accuracy, self.low, self.high, self.coverage, self.confidence)
        return Accuracy(*(float(array[k]) for array in arrays))

    def coverage_at(self, accuracy: float) -> Coverage:
        """Return the largest share of rows that one can keep with at least this accuracy.

        Its interval ends where those of the accuracy do.

        Examples
        --------
        >>> import calibrant
        >>> right, sure = [1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.8, 0.7, 0.6, 0.5]
        >>> found = calibrant.risk_coverage(right, sure, notion="correctness", rng=0)
        >>> at = found.coverage_at(0.75)
        >>> round(at.value, 3), at.accuracy, at.confidence
        (0.667, 0.75, 0.7)
        """
        if not is_number(accuracy) or not 0 <= accuracy <= 1:
            raise InputError("accuracy", "lie in [0, 1]", accuracy)
        enough = (np.flatnonzero(x >= accuracy - ROUNDING) for x in (self.accuracy, self.low, self.high))
        value, low, high = (int(places[-1]) if places.size else None for places in enough)
        share = [0.0 if k is None else float(self.coverage[k]) for k in (value, low, high)]
        at = (np.nan, np.nan) if value is None else (self.accuracy[value], self.confidence[value])
        # The share at a threshold is an estimate too, as far as the next threshold.
        size = np.array(self.n if self.clusters is None else min(self.n, self.clusters))
        if low is not None:
            least = float(clopper_pearson(np.array(share[1]), size, self.level)[0])
            share[1] = max(least, float(self.coverage[low - 1]) if low else 0.0)
        if high is not None:
            most = float(clopper_pearson(np.array(share[2]), size, self.level)[1])
            share[2] = min(most, float(self.coverage[min(high + 1, self.coverage.size - 1)]))
        return Coverage(share[0], min(share[:2]), max(share[0], share[2]), *map(float, at))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the accuracy of what is kept over the coverage; see `calibrant.plot.risk_coverage`."""
        from calibrant import plot

        return plot.risk_coverage(self, ax)

    def check_fields(self) -> None:
        """Refuse arrays of other lengths than the thresholds, and intervals that do not hold the accuracy."""
        named(self.notion)
        arrays = ("coverage", "accuracy", "low", "high", "band_low", "band_high")
        check_lengths(self, len(self.confidence), *arrays)
        check_order(self, "band_low", "accuracy", "band_high")
        check_order(self, "low", "accuracy", "high")
        Ascending().check("confidence", -self.confidence)

    def __repr__(self) -> str:
        return f"RiskCoverage({self.notion}, {sample_size(self.n, '=')}, AURC {self.aurc:.4f})"

    def __str__(self) -> str:
        whole, half = self.accuracy_at(1), self.accuracy_at(0.5)
        told = (
            f"{100 * one.value:.1f} % [{100 * one.low:.1f}, {100 * one.high:.1f}] right"
            for one in (half, whole)
        )
        surest, every = told
        called = named(self.notion).reading.score
        within = "" if self.clusters is None else f" in {counted(self.clusters, 'cluster')}"
        return (
            f"The surest {100 * half.coverage:.0f} % of rows ({called} of {half.confidence:.3g} or more) are "
            f"{surest}, all of them {every}; AURC {self.aurc:.4f}, {self.excess:.4f} of it above the best "
            f"order, at {percent(self.level)}; {sample_size(self.n)}{within}"
        )


@one_blas_thread()
def risk_coverage_of(task: CalibrationTask, *, level: float = 0.95, rng: Any = None) -> RiskCoverage:
    """Keep the surest rows of a question; see `calibrant.risk_coverage`."""
    level, seed = inputs.level(level), inputs.seeded(rng)
    if not task.notion.reading.sure:
        rule = "be about how sure a prediction was: confidence, correctness or top:k"
        raise InputError("notion", rule, task.notion.name)
    kept = _Kept.of(task)
    nodes = _spread(kept.coverage, NODES)
    grid = nodes[_spread(kept.coverage[nodes], GRID, FEWEST / kept.n)]
    together, alone = kept.covariance(grid), kept.variance(grid)
    # How much more clusters vary than rows by themselves, which changes slowly with the coverage.
    ratio = np.divide(np.diag(together), alone, out=np.ones(grid.size), where=alone > NOTHING)
    effect = np.interp(kept.coverage[nodes], kept.coverage[grid], np.maximum(ratio, 1.0))
    reach = interval_deviate(level, kept.clusters)
    ends = kept.interval(nodes, effect, reach)
    known = np.flatnonzero(np.diag(together) > NOTHING)
    if known.size:
        sd = np.sqrt(np.diag(together)[known])
        correlation = together[np.ix_(known, known)] / np.outer(sd, sd)
        rng = stream(seed, "selective")
        reach = simultaneous_deviate(correlation, np.ones(known.size), level, kept.clusters, rng, DRAWS)
    band = kept.interval(nodes, effect, reach)
    aurc, excess = kept.areas(level)
    return RiskCoverage(
        kept.confidence[nodes],
        kept.coverage[nodes],
        kept.accuracy[nodes],
        *ends,
        *band,
        aurc,
        excess,
        level,
        kept.n,
        task.notion.name,
        task.clusters,
        seed,
    )


def _spread(coverage: Array, most: int, first: float = 0.0) -> Array:
    """Return at most so many places along the coverage, from `first` on: most evenly, some by its log."""
    size = coverage.size
    if size <= most:
        wanted = np.arange(size)
    else:
        some = round(BY_LOG * most)
        even = np.linspace(0, 1, most - some + 1)[1:]
        by_log = np.geomspace(coverage[0], 1, some)
        wanted = np.searchsorted(coverage, np.concatenate([even, by_log]) - ROUNDING)
        wanted = np.unique(np.minimum(wanted, size - 1))
    return wanted[coverage[wanted] >= min(first, 1.0) - ROUNDING]


@dataclass(frozen=True, eq=False)
class _Kept:
    """Levels of confidence, the highest first, and sums over the rows at each.

    Attributes
    ----------
    confidence, weight, right : arrays (levels,)
        Weights of all rows and of the right ones.
    square, square_right : arrays (levels,)
        Sums of squared weights; of the weights themselves where these are counts.
    local : array (levels,)
        Accuracy at the confidence itself, by the posterior.
    n : float
        Effective number of rows.
    rows : tuple of arrays or None
        Level, outcome, weight and cluster of each row, where rows belong together.
    clusters : float
        How many equally large clusters would be as good.
    """

    confidence: Array
    weight: Array
    right: Array
    square: Array
    square_right: Array
    local: Array
    n: float
    rows: tuple[Array, Array, Array, Array] | None
    clusters: float

    @classmethod
    def of(cls, task: CalibrationTask) -> _Kept:
        """Sum the rows of a question's one problem."""
        problem: ScoreData = task.problems[0]
        sums, squares = problem.tie_groups(), problem.squared().tie_groups()
        held = np.flatnonzero(sums.w > 0)[::-1]
        w, wy, v, vy = (part[held] for part in (sums.w, sums.wy, squares.w, squares.wy))
        score = sums.origin + np.divide(sums.ws, sums.w, out=np.zeros(sums.w.shape), where=sums.w > 0)
        confidence = score[held]
        points = posterior_of(task).points(0)
        # One gap for each score, where rounding must not choose among points.
        first = first_of_each(points.score)
        mass = np.add.reduceat(points.mass, first)
        knots, gaps = (np.add.reduceat(points.mass * x, first) / mass for x in (points.score, points.gap))
        gap = np.interp(confidence, knots, gaps)
        cluster, rows, clusters = task.cluster, None, np.inf
        if cluster is not None and not are_alone(cluster, task.weight, counts=task.counts):
            own, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
            level = confidence.size - 1 - np.searchsorted(confidence[::-1], own)
            rows, clusters = (level, outcome, weight, cluster), effective_clusters(cluster, task.weight)
        local = np.clip(confidence + gap, 0.0, 1.0)
        return cls(confidence, w, wy, v, vy, local, float(problem.n), rows, clusters)

    @cached_property
    def coverage(self) -> Array:
        """Share of the weight down to each level."""
        total = np.cumsum(self.weight)
        return total / total[-1]

    @cached_property
    def accuracy(self) -> Array:
        """Accuracy of what is kept down to each level."""
        return np.clip(np.cumsum(self.right) / np.cumsum(self.weight), 0.0, 1.0)

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        """Squared weights down to each level, and those of right rows, over the square of the weight."""
        mass = self.weight.sum() ** 2
        return np.cumsum(self.square) / mass, np.cumsum(self.square_right) / mass

    def variance(self, at: Array) -> Array:
        """Return the variance of the accuracy at some levels, at a fixed coverage, of independent rows."""
        return np.maximum(self._by_rows(at, at), 0.0)

    def covariance(self, at: Array) -> Array:
        """Return the covariance of the accuracies at some levels, by rows or by clusters."""
        return self._by_rows(at[:, None], at) if self.rows is None else self._by_cluster(at)

    def _by_rows(self, one: Array, two: Array) -> Array:
        """Return the covariances of the accuracies at pairs of levels, of independent rows."""
        every, right = self._squares
        lead, local = self.accuracy - self.local, self.local
        cross, first = (right - local * every) / self.coverage, np.minimum(one, two)
        both = right[first] * (1 - local[one] - local[two]) + local[one] * local[two] * every[first]
        covariance = both / (self.coverage[one] * self.coverage[two])
        covariance -= cross[one] * lead[two] + lead[one] * cross[two]
        return np.asarray(covariance + lead[one] * lead[two] * every[-1])

    def _by_cluster(self, at: Array) -> Array:
        from scipy.sparse import csr_array

        assert self.rows is not None
        f, local = self.coverage[at], self.local[at]
        lead = self.accuracy[at] - local
        level, outcome, weight, cluster = self.rows
        count, size, place = int(cluster.max()) + 1, at.size + 1, np.searchsorted(at, level)
        # Sums of all rows of each cluster between the levels, and of the right ones beside them.
        cells = np.tile(cluster, 2), np.concatenate([place, place + size])
        sums = csr_array((np.concatenate([weight, weight * outcome]), cells), shape=(count, 2 * size))
        kept = np.triu(np.ones((size, at.size))) / f
        add = np.concatenate([-local * kept - lead, kept])
        total = add.T @ (sums.T @ sums).toarray() @ add
        return np.asarray(total / self.weight.sum() ** 2 * count / (count - 1))

    def interval(self, at: Array, effect: Array, reach: float) -> tuple[Array, Array]:
        """Return Clopper and Pearson's interval at some levels, for rows that vary as the accuracy does."""
        from scipy.special import ndtr

        accuracy, level = self.accuracy[at], float(2 * ndtr(reach) - 1)
        rows = self.coverage[at] ** 2 / self._squares[0][at]
        # Of few rows that are all right, or all wrong, the spread is not nothing.
        nearer = (accuracy * rows + 0.5) / (rows + 1)
        spread, seen = nearer * (1 - nearer), accuracy * (1 - accuracy)
        variance = effect * (self.variance(at) + np.maximum(spread - seen, 0.0) / rows)
        size = np.minimum(spread / variance, rows)
        if self.rows is not None:
            size = np.where(
                seen > 0, size, np.minimum(size, np.maximum(self.clusters * self.coverage[at], 1.0))
            )
        low, high = clopper_pearson(accuracy, size, level)
        return np.minimum(low, accuracy), np.maximum(high, accuracy)

    def areas(self, level: float) -> tuple[Measured, Measured]:
        """Return the area under the risk, and what it is above that of the best order."""
        from scipy.special import xlogy

        wrong = float(1 - self.accuracy[-1])
        area = area_of(self.n / self.weight.sum() * self.weight, self.right / self.weight)
        best = area_of(np.array([self.n * (1 - wrong), self.n * wrong]), np.array([1.0, 0.0]))
        ends, mass = self.coverage, self.weight.sum()
        before = np.append(0.0, ends[:-1])
        # A row enters anywhere within its level: the mean logarithm of the coverage there.
        log = (xlogy(ends, ends) - xlogy(before, before)) / (ends - before) - 1
        steps = self.local[1:] * np.log(ends[1:] / before[1:])
        # What is kept beyond a level: the mean of the accuracy at each threshold over its coverage.
        beyond = np.append(np.cumsum(steps[::-1])[::-1], 0.0) + self.local * (np.log(ends) - log)
        of_wrong, of_right = beyond, beyond + log
        size = min(self.n, self.clusters)
        if wrong in (0, 1):
            low, high = (float(end) for end in clopper_pearson(np.array(wrong), np.array(size), level))
            above = Measured(0.0, 0.0, 1 - low if wrong else high)
            return Measured(area, min(low, area), max(high, area)), above
        found, reach = [], interval_deviate(level, self.clusters)
        for value, tilt in ((area, 0.0), (max(area - best, 0.0), float(np.log1p(-wrong)))):
            add = np.stack([of_wrong + tilt * (1 - wrong), of_right - tilt * wrong])
            variance, times = self._spread_of(add, mass)
            found.append(_of_few(value, variance, min(times / self.n, 1 / size), reach))
        return found[0], found[1]

    def _spread_of(self, add: Array, mass: float) -> tuple[float, float]:
        """Return the variance of a mean, from what wrong and right rows add at each level (2, levels).

        With it comes how many times larger that is than of rows by themselves.
        """
        wrong, right = self.weight - self.right, self.right
        add = add - (wrong @ add[0] + right @ add[1]) / mass
        squares = self.square - self.square_right, self.square_right
        alone = float(squares[0] @ add[0] ** 2 + squares[1] @ add[1] ** 2) / mass**2
        if self.rows is None:
            return alone, 1.0
        level, outcome, weight, cluster = self.rows
        sums = np.bincount(cluster, weight * add[outcome.astype(np.intp), level])
        together = float(sums @ sums) * sums.size / (sums.size - 1) / mass**2
        return max(together, alone), max(together / alone, 1.0)


def _of_few(value: float, variance: float, one: float, reach: float) -> Measured:
    """Return an interval of a sum of few errors, each of which adds about `one` (Fay and Feuer 1997)."""
    from scipy.special import gammaincinv, ndtr

    low, more = value, variance + one**2
    if value > 0 and variance > 0:
        low = variance / value * float(gammaincinv(value**2 / variance, ndtr(-reach)))
    high = more / (value + one) * float(gammaincinv((value + one) ** 2 / more, ndtr(reach)))
    return Measured(value, min(low, value), min(max(high, value), 1.0))


def area_of(weight: Array, accuracy: Array) -> float:
    """Return the mean risk over all numbers of rows kept, levels in order; of tied rows any may be next.

    The k-th row of a level is one of its rows at random, which makes of the sum over rows harmonic numbers;
    of rows that count in part these are the digamma function.

    >>> area_of(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.5])), (0 / 1 + 1 / 2 + 1.5 / 3 + 2 / 4) / 4
    (0.375, 0.375)
    """
    from scipy.special import digamma

    upto = np.cumsum(weight)
    before = upto - weight
    wrong = weight * (1 - accuracy)
    seen = np.cumsum(wrong) - wrong
    added = wrong + (seen - before * (1 - accuracy)) * (digamma(upto + 1) - digamma(before + 1))
    return float(added.sum() / upto[-1])
