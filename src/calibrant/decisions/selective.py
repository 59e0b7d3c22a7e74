"""Selective prediction: accuracy of the most confident predictions, risk-coverage curve, AURC and E-AURC.

Rows are selected in decreasing order of confidence, and rows of equal confidence are selected together: each
point of the curve is a threshold. Its interval is a Clopper-Pearson interval for the effective number of rows
that gives the variance of the accuracy at a fixed coverage. That variance includes the estimation of the
threshold: with A the accuracy of the selected rows, m the accuracy at the threshold and f the coverage, the
influence of each of n rows is 1{selected} (correct - m) / f - (A - m). The band is simultaneous over all
coverages: its width is a quantile of the largest standardised sum, simulated from the normal limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from calibrant import inputs
from calibrant.curves.band import clopper_pearson
from calibrant.curves.shown import DrawnOnAxes
from calibrant.decisions.interval import simultaneous_deviate
from calibrant.inference.interval import means_by_score
from calibrant.inference.interval_estimate import IntervalBounds, IntervalEstimate, interval_deviate
from calibrant.inputs import ROUNDING, InputError, Serializable, is_number, stream
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
from calibrant.inputs.printed import Block, Table
from calibrant.inputs.wording import brief_size, number, percent, sample_size, shares, with_interval
from calibrant.parallel import cached_property, one_blas_thread
from calibrant.posterior import posterior_of
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.clusters import effective_clusters
from calibrant.tasks import CalibrationTask, get_notion

# Maximum number of thresholds of a curve, the number of thresholds at which the covariance is computed, and
# the share of both that is evenly spaced in the logarithm of the coverage. They bound the cost.
NODES, GRID, LOG_SHARE = 1000, 128, 0.25
# Variances up to this are rounding errors.
NEGLIGIBLE_VARIANCE = 1e-18
# Sets of normal deviates for the band, and fewest selected rows for which it is simulated.
BAND_DATA_SETS, MIN_SELECTED_ROWS = 4000, 10


class Accuracy(NamedTuple):
    """Accuracy of the most confident rows with its interval, their coverage, and the confidence threshold."""

    value: float
    low: float
    high: float
    coverage: float
    confidence: float


class Coverage(NamedTuple):
    """The largest coverage with a required accuracy, its interval, its accuracy and confidence threshold.

    If no coverage has that accuracy, the value is 0, and accuracy and confidence are NaN.
    """

    value: float
    low: float
    high: float
    accuracy: float
    confidence: float


@dataclass(frozen=True, eq=False, repr=False)
class RiskCoverage(DrawnOnAxes, Serializable):
    """Risk-coverage curve: accuracy of the most confident predictions at each coverage.

    Attributes
    ----------
    confidence : array
        Thresholds in decreasing order: rows with at least this confidence are selected. In [0, 1], or on the
        scale of the scores if these are any other ranking.
    coverage : array
        Share of the rows that is selected, increasing to 1.
    accuracy, low, high : arrays
        Accuracy of the selected rows, with a pointwise interval.
    band_low, band_high : arrays
        Ends of a simultaneous band over all coverages.
    aurc : IntervalEstimate
        Area under the risk-coverage curve: the mean of the risk, 1 - accuracy, over all numbers of selected
        rows, with rows of equal confidence in random order.
    e_aurc : IntervalEstimate
        E-AURC: AURC minus that of the optimal order, in which all correct rows precede the wrong ones.
    level : float
    n : float
        Effective number of rows.
    notion : str
    clusters : int or None
        Number of clusters, if cluster ids were given.
    seed : int
        Seed of the draws for the band.

    See Also
    --------
    risk_coverage : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> curve = calibrant.risk_coverage([0, 1, 1, 1] * 10, [0.55, 0.7, 0.8, 0.9] * 10, notion="correctness")
    >>> curve.accuracy[-1]
    np.float64(0.75)
    """

    confidence: Annotated[Array, Shape((None,))]
    coverage: Annotated[Array, UNIT, Ascending()]
    accuracy: Annotated[Array, UNIT]
    low: Annotated[Array, UNIT]
    high: Annotated[Array, UNIT]
    band_low: Annotated[Array, UNIT]
    band_high: Annotated[Array, UNIT]
    aurc: Annotated[IntervalEstimate, IntervalBounds(0, 1)]
    e_aurc: Annotated[IntervalEstimate, IntervalBounds(0, 1)]
    level: Level
    n: Size
    notion: str
    clusters: Number | None
    seed: Count
    _drawn_by = "risk_coverage"

    @property
    def risk(self) -> Array:
        """Share of wrong predictions among the selected rows."""
        return 1 - self.accuracy

    def accuracy_at(self, coverage: float) -> Accuracy:
        """Return the accuracy of the most confident rows, at the threshold with at least this coverage.

        Parameters
        ----------
        coverage : float
            Share of the rows that are kept.

        Examples
        --------
        >>> import calibrant
        >>> correct, sure = [1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.8, 0.7, 0.6, 0.5]
        >>> found = calibrant.risk_coverage(correct, sure, notion="correctness", rng=0)
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
        """Return the largest coverage with at least this accuracy.

        Its interval is obtained by inverting the intervals of the accuracy.

        Parameters
        ----------
        accuracy : float
            Accuracy that is wanted.

        Examples
        --------
        >>> import calibrant
        >>> correct, sure = [1, 1, 0, 1, 0, 1], [0.9, 0.8, 0.8, 0.7, 0.6, 0.5]
        >>> found = calibrant.risk_coverage(correct, sure, notion="correctness", rng=0)
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
        # The coverage of a threshold is itself an estimate; limit its interval to the neighbouring
        # thresholds.
        size = np.array(self.n if self.clusters is None else min(self.n, self.clusters))
        if low is not None:
            least = float(clopper_pearson(np.array(share[1]), size, self.level)[0])
            share[1] = max(least, float(self.coverage[low - 1]) if low else 0.0)
        if high is not None:
            most = float(clopper_pearson(np.array(share[2]), size, self.level)[1])
            share[2] = min(most, float(self.coverage[min(high + 1, self.coverage.size - 1)]))
        return Coverage(share[0], min(share[:2]), max(share[0], share[2]), *map(float, at))

    def _check_fields(self) -> None:
        """Raise an error for arrays of wrong length and intervals that do not contain the accuracy."""
        get_notion(self.notion)
        arrays = ("coverage", "accuracy", "low", "high", "band_low", "band_high")
        check_lengths(self, len(self.confidence), *arrays)
        check_order(self, "band_low", "accuracy", "band_high")
        check_order(self, "low", "accuracy", "high")
        Ascending().check("confidence", -self.confidence)

    def _on_scale(self, values: Array) -> RiskCoverage:
        """Return the curve with the confidence on another scale, of which these are the distinct values."""
        place = np.rint(self.confidence * values.size - 0.5).astype(int)
        return replace(self, confidence=values[place])

    def __repr__(self) -> str:
        return f"RiskCoverage({self.notion}, {brief_size(self.n)}, AURC {self.aurc})"

    def _printed(self) -> Iterator[Block]:
        yield "AURC", with_interval(self.aurc.value, self.aurc.low, self.aurc.high, self.level)
        yield "E-AURC", with_interval(self.e_aurc.value, self.e_aurc.low, self.e_aurc.high, self.level)
        yield "notion", self.notion
        yield "data", sample_size(self.n, self.clusters)
        points = dict.fromkeys(self.accuracy_at(k / 10) for k in range(1, 11))
        rows = []
        for point in points:
            value, low, high = shares(point.value, point.low, point.high)
            rows.append(
                [f"{100 * point.coverage:.0f} %", value, f"{low} to {high}", number(point.confidence)]
            )
        score = get_notion(self.notion).reading.score
        yield Table(["coverage", "accuracy", f"{percent(self.level)} interval", f"{score} at least"], rows)


@one_blas_thread()
def risk_coverage_of(task: CalibrationTask, *, level: float = 0.95, rng: Any = 0) -> RiskCoverage:
    """Compute the risk-coverage curve of a task; see `calibrant.risk_coverage`."""
    level, seed = inputs.level(level), inputs.seeded(rng)
    if not task.notion.reading.about_confidence:
        rule = "be a type of confidence calibration: confidence, correctness or top:k"
        raise InputError("notion", rule, task.notion.name)
    levels = _ConfidenceLevels.of(task)
    nodes = _spread_indices(levels.coverage, NODES)
    grid = nodes[_spread_indices(levels.coverage[nodes], GRID, MIN_SELECTED_ROWS / levels.n)]
    clustered, independent = levels.covariance(grid), levels.variance(grid)
    # Design effect of clusters, interpolated because it changes slowly with the coverage.
    ratio = np.divide(
        np.diag(clustered), independent, out=np.ones(grid.size), where=independent > NEGLIGIBLE_VARIANCE
    )
    effect = np.interp(levels.coverage[nodes], levels.coverage[grid], np.maximum(ratio, 1.0))
    deviate = interval_deviate(level, levels.clusters)
    ends = levels.interval(nodes, effect, deviate)
    known = np.flatnonzero(np.diag(clustered) > NEGLIGIBLE_VARIANCE)
    if known.size:
        sd = np.sqrt(np.diag(clustered)[known])
        correlation = clustered[np.ix_(known, known)] / np.outer(sd, sd)
        rng = stream(seed, "selective")
        error = np.ones(known.size)
        deviate = simultaneous_deviate(correlation, error, level, levels.clusters, rng, BAND_DATA_SETS)
    band = levels.interval(nodes, effect, deviate)
    aurc, e_aurc = levels.areas(level)
    return RiskCoverage(
        levels.confidence[nodes],
        levels.coverage[nodes],
        levels.accuracy[nodes],
        *ends,
        *band,
        aurc,
        e_aurc,
        level,
        levels.n,
        task.notion.name,
        task.clusters,
        seed,
    )


def _spread_indices(coverage: Array, most: int, first: float = 0.0) -> Array:
    """Return at most `most` indices spread over the coverage from `first` on, some on the log scale."""
    size = coverage.size
    if size <= most:
        wanted = np.arange(size)
    else:
        n_log = round(LOG_SHARE * most)
        even = np.linspace(0, 1, most - n_log + 1)[1:]
        by_log = np.geomspace(coverage[0], 1, n_log)
        wanted = np.searchsorted(coverage, np.concatenate([even, by_log]) - ROUNDING)
        wanted = np.unique(np.minimum(wanted, size - 1))
    return wanted[coverage[wanted] >= min(first, 1.0) - ROUNDING]


@dataclass(frozen=True, eq=False)
class _ConfidenceLevels:
    """Distinct confidence levels in decreasing order, and sums over the rows at each level.

    Attributes
    ----------
    confidence, weight, correct : arrays (levels,)
        Confidence, total weight, and weight of the correct rows.
    square, square_correct : arrays (levels,)
        Sums of squared weights of all rows and of the correct ones; sums of the weights if they are counts.
    local : array (levels,)
        Accuracy at each confidence level, by the posterior.
    n : float
        Effective number of rows.
    rows : tuple of arrays or None
        Level, outcome, weight and cluster id of each row; None if rows are independent.
    clusters : float
        Effective number of clusters.
    """

    confidence: Array
    weight: Array
    correct: Array
    square: Array
    square_correct: Array
    local: Array
    n: float
    rows: tuple[Array, Array, Array, Array] | None
    clusters: float

    @classmethod
    def of(cls, task: CalibrationTask) -> _ConfidenceLevels:
        """Sum the rows of a task with a single problem."""
        problem: ScoreData = task.problems[0]
        sums, squares = problem.tie_groups(), problem.squared().tie_groups()
        occupied = np.flatnonzero(sums.w > 0)[::-1]
        w, wy, v, vy = (column[occupied] for column in (sums.w, sums.wy, squares.w, squares.wy))
        score = sums.origin + np.divide(sums.ws, sums.w, out=np.zeros(sums.w.shape), where=sums.w > 0)
        confidence = score[occupied]
        points = posterior_of(task).points(0)
        gap = np.interp(confidence, *means_by_score(points, points.gap))
        rows, clusters = None, np.inf
        if (cluster := task.dependent_cluster) is not None:
            row_confidence, outcome, weight = np.broadcast_arrays(*next(problem.rows()))
            level = confidence.size - 1 - np.searchsorted(confidence[::-1], row_confidence)
            rows, clusters = (level, outcome, weight, cluster), effective_clusters(cluster, task.weight)
        local = np.clip(confidence + gap, 0.0, 1.0)
        return cls(confidence, w, wy, v, vy, local, float(problem.n), rows, clusters)

    @cached_property
    def coverage(self) -> Array:
        """Share of the weight at or above each level."""
        total = np.cumsum(self.weight)
        return total / total[-1]

    @cached_property
    def accuracy(self) -> Array:
        """Accuracy of the rows at or above each level."""
        return np.clip(np.cumsum(self.correct) / np.cumsum(self.weight), 0.0, 1.0)

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        """Cumulative squared weights of all rows and of correct rows, over the squared total weight."""
        mass = self.weight.sum() ** 2
        return np.cumsum(self.square) / mass, np.cumsum(self.square_correct) / mass

    def variance(self, at: Array) -> Array:
        """Return the variance of the accuracy at fixed coverages, for independent rows."""
        return np.maximum(self._by_rows(at, at), 0.0)

    def covariance(self, at: Array) -> Array:
        """Return the covariance of the accuracies at several levels, cluster-robust for clustered rows."""
        return self._by_rows(at[:, None], at) if self.rows is None else self._by_cluster(at)

    def _by_rows(self, first: Array, second: Array) -> Array:
        """Return the covariances of the accuracies at pairs of levels, for independent rows."""
        every, correct = self._squares
        lead, local = self.accuracy - self.local, self.local
        cross, lower = (correct - local * every) / self.coverage, np.minimum(first, second)
        both = (
            correct[lower] * (1 - local[first] - local[second]) + local[first] * local[second] * every[lower]
        )
        covariance = both / (self.coverage[first] * self.coverage[second])
        covariance -= cross[first] * lead[second] + lead[first] * cross[second]
        return np.asarray(covariance + lead[first] * lead[second] * every[-1])

    def _by_cluster(self, at: Array) -> Array:
        from scipy.sparse import csr_array

        assert self.rows is not None
        f, local = self.coverage[at], self.local[at]
        lead = self.accuracy[at] - local
        level, outcome, weight, cluster = self.rows
        count, size, place = int(cluster.max()) + 1, at.size + 1, np.searchsorted(at, level)
        # Weight of all rows of each cluster between the levels, followed by that of the correct rows.
        cells = np.tile(cluster, 2), np.concatenate([place, place + size])
        sums = csr_array((np.concatenate([weight, weight * outcome]), cells), shape=(count, 2 * size))
        selected = np.triu(np.ones((size, at.size))) / f
        add = np.concatenate([-local * selected - lead, selected])
        total = add.T @ (sums.T @ sums).toarray() @ add
        return np.asarray(total / self.weight.sum() ** 2 * count / (count - 1))

    def interval(self, at: Array, effect: Array, deviate: float) -> tuple[Array, Array]:
        """Return Clopper-Pearson intervals for the effective number of rows at each level."""
        from scipy.special import ndtr

        accuracy, level = self.accuracy[at], float(2 * ndtr(deviate) - 1)
        rows = self.coverage[at] ** 2 / self._squares[0][at]
        # If all rows are correct, or all wrong, the empirical variance is zero: use a smoothed one.
        shrunken_accuracy = (accuracy * rows + 0.5) / (rows + 1)
        spread, observed_variance = shrunken_accuracy * (1 - shrunken_accuracy), accuracy * (1 - accuracy)
        variance = effect * (self.variance(at) + np.maximum(spread - observed_variance, 0.0) / rows)
        size = np.minimum(spread / variance, rows)
        if self.rows is not None:
            size = np.where(
                observed_variance > 0,
                size,
                np.minimum(size, np.maximum(self.clusters * self.coverage[at], 1.0)),
            )
        low, high = clopper_pearson(accuracy, size, level)
        return np.minimum(low, accuracy), np.maximum(high, accuracy)

    def areas(self, level: float) -> tuple[IntervalEstimate, IntervalEstimate]:
        """Return AURC and E-AURC with their intervals."""
        from scipy.special import xlogy

        wrong = float(1 - self.accuracy[-1])
        area = area_of(self.n / self.weight.sum() * self.weight, self.correct / self.weight)
        best = area_of(np.array([self.n * (1 - wrong), self.n * wrong]), np.array([1.0, 0.0]))
        ends, mass = self.coverage, self.weight.sum()
        before = np.append(0.0, ends[:-1])
        # Rows of a level are selected in random order: use the mean logarithm of the coverage within the
        # level.
        log = (xlogy(ends, ends) - xlogy(before, before)) / (ends - before) - 1
        steps = self.local[1:] * np.log(ends[1:] / before[1:])
        # Integral of the local accuracy over the coverage, divided by the coverage, beyond each level.
        beyond = np.append(np.cumsum(steps[::-1])[::-1], 0.0) + self.local * (np.log(ends) - log)
        of_wrong, of_right = beyond, beyond + log
        size = min(self.n, self.clusters)
        if wrong in (0, 1):
            low, high = (float(end) for end in clopper_pearson(np.array(wrong), np.array(size), level))
            above = IntervalEstimate(0.0, 0.0, 1 - low if wrong else high)
            return IntervalEstimate(area, min(low, area), max(high, area)), above
        areas, deviate = [], interval_deviate(level, self.clusters)
        for value, tilt in ((area, 0.0), (max(area - best, 0.0), float(np.log1p(-wrong)))):
            add = np.stack([of_wrong + tilt * (1 - wrong), of_right - tilt * wrong])
            variance, times = self._mean_variance(add, mass)
            areas.append(_gamma_interval(value, variance, min(times / self.n, 1 / size), deviate))
        return areas[0], areas[1]

    def _mean_variance(self, add: Array, mass: float) -> tuple[float, float]:
        """Return the variance of a mean, given the influence of wrong and correct rows at each level.

        The second value is the design effect: the ratio to the variance of independent rows.
        """
        wrong, correct = self.weight - self.correct, self.correct
        add = add - (wrong @ add[0] + correct @ add[1]) / mass
        squares = self.square - self.square_correct, self.square_correct
        independent = float(squares[0] @ add[0] ** 2 + squares[1] @ add[1] ** 2) / mass**2
        if self.rows is None:
            return independent, 1.0
        level, outcome, weight, cluster = self.rows
        sums = np.bincount(cluster, weight * add[outcome.astype(np.intp), level])
        clustered = float(sums @ sums) * sums.size / (sums.size - 1) / mass**2
        return max(clustered, independent), max(clustered / independent, 1.0)


def _gamma_interval(value: float, variance: float, unit: float, deviate: float) -> IntervalEstimate:
    """Return a gamma interval of a weighted sum of errors with largest weight `unit` (Fay and Feuer 1997)."""
    from scipy.special import gammaincinv, ndtr

    low, more = value, variance + unit**2
    if value > 0 and variance > 0:
        low = variance / value * float(gammaincinv(value**2 / variance, ndtr(-deviate)))
    high = more / (value + unit) * float(gammaincinv((value + unit) ** 2 / more, ndtr(deviate)))
    return IntervalEstimate(value, min(low, value), min(max(high, value), 1.0))


def area_of(weight: Array, accuracy: Array) -> float:
    """Return the mean risk over all numbers of selected rows, with levels in decreasing order of confidence.

    The rows of a level are selected in random order, so the sum over rows has a closed form in harmonic
    numbers. For fractional weights these are given by the digamma function.

    >>> area_of(np.array([1.0, 1.0, 2.0]), np.array([1.0, 0.0, 0.5])), (0 / 1 + 1 / 2 + 1.5 / 3 + 2 / 4) / 4
    (0.375, 0.375)
    """
    from scipy.special import digamma

    upto = np.cumsum(weight)
    before = upto - weight
    wrong = weight * (1 - accuracy)
    observed_variance = np.cumsum(wrong) - wrong
    added = wrong + (observed_variance - before * (1 - accuracy)) * (digamma(upto + 1) - digamma(before + 1))
    return float(added.sum() / upto[-1])
