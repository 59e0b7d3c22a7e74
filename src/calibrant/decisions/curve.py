"""Decision curves: net benefit and decision regret over all thresholds, with simultaneous bands.

The method is described in docs/methods/decision-regret.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from calibrant.curves.shown import Drawn
from calibrant.decisions.binary import BinaryDecisions, CostLines
from calibrant.decisions.clinical import OutcomeRows
from calibrant.decisions.interval import BAND_DATA_SETS, SEED, regret_intervals, simultaneous_deviate
from calibrant.inference.interval_estimate import interval_deviate
from calibrant.inputs import InputError, Serializable
from calibrant.inputs import level as check_level
from calibrant.inputs import scores as check_scores
from calibrant.inputs.codec import (
    UNIT,
    Ascending,
    Bounds,
    Level,
    Number,
    Shape,
    Size,
    check_lengths,
    check_order,
)
from calibrant.inputs.printed import Block, Printed, Table, data_frame
from calibrant.inputs.wording import brief_size, number, percent, sample_size, with_ends, with_interval
from calibrant.parallel import one_blas_thread
from calibrant.score_data import Array, ScoreData
from calibrant.settings import DECISIONS
from calibrant.tasks import CalibrationTask

#: Default thresholds of a curve.
THRESHOLDS = np.arange(1, 100) / 100
# Maximum number of thresholds; each of them adds a group of rows.
MAX_THRESHOLDS = 1000


class WorstDecision(NamedTuple):
    """The largest decision regret over all thresholds.

    Up to a constant factor this is the calibration decision loss (Hu and Wu 2024).

    Attributes
    ----------
    threshold, value : float
        The threshold, and its regret per row.
    low, high : float
        Interval for the largest regret, from the simultaneous band.
    """

    threshold: float
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        regret = with_interval(self.value, self.low, self.high, unit=" per row")
        return f"largest decision regret {regret} at threshold {number(self.threshold)}"


class NetBenefitDifference(NamedTuple):
    """Difference of the net benefits of two models on the same rows, with its interval at each threshold."""

    value: Array
    low: Array
    high: Array

    def _check_fields(self) -> None:
        """Raise an error if the band does not contain the values."""
        check_lengths(self, len(self.value), "low", "high")
        check_order(self, "low", "value", "high")


@dataclass(frozen=True, eq=False)
class RegretCurve(Drawn, Serializable):
    """Net benefit and decision regret of acting at or above each threshold.

    Attributes
    ----------
    thresholds : array
    value : array
        Decision regret per row; the costs of a false alarm and a miss sum to 1.
    low, high : arrays
        Simultaneous confidence band of the regret over all thresholds.
    level : float
        Level of the band.
    net_benefit : array
        Net benefit of acting on the scores: true positives minus t / (1 - t) times false positives, per row.
    treat_all : array
        Net benefit of always acting; that of never acting is 0.
    recalibrated : array
        Net benefit of acting on recalibrated scores, by calibration maps fitted to other rows.
    n : float
        Effective number of rows.
    label : object
        The class that the decisions are about.
    difference : NetBenefitDifference or None
        Net benefit minus that of another model.
    clusters : int or None
        Number of clusters, if cluster ids were given.

    See Also
    --------
    regret_curve : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> curve = calibrant.regret_curve(rng.random(2000) < score**2, score)
    >>> print(curve.worst)
    largest decision regret 0.0346 per row (0.0196 to 0.0509) at threshold 0.360
    """

    _computed: ClassVar[tuple[str, ...]] = ("worst",)
    thresholds: Annotated[Array, Shape((None,)), Bounds(0, 1, above=True, below=True), Ascending()]
    value: Annotated[Array, UNIT]
    low: Annotated[Array, UNIT]
    high: Annotated[Array, UNIT]
    level: Level
    net_benefit: Array
    treat_all: Array
    recalibrated: Array
    n: Size
    label: Any = None
    difference: NetBenefitDifference | None = None
    clusters: Number | None = None
    _drawn_by = "regret"

    @property
    def worst(self) -> WorstDecision:
        """The threshold with the largest decision regret."""
        k = int(np.argmax(self.value))
        ends = float(self.low.max()), float(self.high.max())
        return WorstDecision(float(self.thresholds[k]), float(self.value[k]), *ends)

    def __repr__(self) -> str:
        return f"RegretCurve({len(self.thresholds)} thresholds, {self.worst}, {brief_size(self.n)})"

    def _printed(self) -> Iterator[Block]:
        worst = self.worst
        regret = with_interval(worst.value, worst.low, worst.high, self.level, unit=" per row")
        yield "largest decision regret", regret
        yield "at threshold", number(worst.threshold)
        yield "data", sample_size(self.n, self.clusters)
        step = max(1, len(self.thresholds) // 10)
        rows = []
        for k in range(step - 1, len(self.thresholds), step):
            value, low, high = with_ends(float(self.value[k]), float(self.low[k]), float(self.high[k]))
            benefits = (self.net_benefit, self.recalibrated, self.treat_all)
            rows.append(
                [f"{self.thresholds[k]:.4g}", value, f"{low} to {high}", *(f"{b[k]:z.4f}" for b in benefits)]
            )
        band = f"{percent(self.level)} band"
        yield Table(["threshold", "regret", band, "net benefit", "if recalibrated", "treat all"], rows)

    def _check_fields(self) -> None:
        """Raise an error for arrays of wrong length and for bands that do not contain the values."""
        size = len(self.thresholds)
        check_lengths(self, size, "value", "low", "high", "net_benefit", "treat_all", "recalibrated")
        check_order(self, "low", "value", "high")
        if self.difference is not None:
            for name, array in self.difference._asdict().items():
                Shape((size,)).check(f"difference.{name}", array)


@dataclass(frozen=True, eq=False)
class NetBenefit(Printed, Serializable):
    """Net benefit of a model, of treating all and of treating none, with intervals.

    Attributes
    ----------
    thresholds : array
    model, treat_all : NetBenefitDifference
        Net benefit of acting on the scores, and of always acting: `value`, `low` and `high` by threshold.
        That of treating none is 0, so `model` is also the difference to treating none.
    minus_all : NetBenefitDifference
        Net benefit of the model minus that of treating all.
    level, simultaneous : float, bool
        Level of the intervals, and whether those of all thresholds hold together.
    n, label, clusters
        As in `RegretCurve`.

    See Also
    --------
    net_benefit : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> calibrant.net_benefit([0, 1, 1, 0] * 50, [0.2, 0.7, 0.8, 0.3] * 50, [0.1, 0.5])
    NetBenefit(2 thresholds, n=200)
    """

    thresholds: Annotated[Array, Shape((None,)), Bounds(0, 1, above=True, below=True), Ascending()]
    model: NetBenefitDifference
    treat_all: NetBenefitDifference
    minus_all: NetBenefitDifference
    level: Level
    simultaneous: bool
    n: Size
    label: Any = None
    clusters: Number | None = None

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield threshold, strategy, net benefit and difference, each of the last two with its interval."""
        for k, threshold in enumerate(self.thresholds.tolist()):
            parts = (self.model, self.treat_all, self.minus_all)
            model, everyone, minus = ([float(array[k]) for array in each] for each in parts)
            yield threshold, "model", *model, None, None, None
            yield threshold, "all", *everyone, *minus
            yield threshold, "none", 0.0, 0.0, 0.0, *model

    def to_frame(self) -> Any:
        """Return a data frame with a row for each threshold and strategy, of polars or else of pandas."""
        names = ["threshold", "treated", "net_benefit", "low", "high"]
        names += ["difference", "difference_low", "difference_high"]
        return data_frame(dict(zip(names, map(list, zip(*self._rows(), strict=True)), strict=True)))

    def __repr__(self) -> str:
        return f"NetBenefit({len(self.thresholds)} thresholds, {brief_size(self.n)})"

    def _printed(self) -> Iterator[Block]:
        def cells(value: float | None, low: float, high: float) -> list[str]:
            if value is None or low == high:
                return ["" if value is None else "0", ""]
            text, low_text, high_text = with_ends(value, low, high)
            return [text, f"{low_text} to {high_text}"]

        interval = f"{percent(self.level)} interval"
        head = ["threshold", "treated", "net benefit", interval, "difference", interval]
        names = {"model": "by model"}
        rows = [
            [f"{t:.4g}", names.get(who, who), *cells(*x[:3]), *cells(*x[3:])] for t, who, *x in self._rows()
        ]
        yield Table(head, rows, names=2)
        yield "difference", "net benefit of the model minus that of treating all, or none"
        yield "intervals", "simultaneous for all thresholds" if self.simultaneous else "for each threshold"
        yield "data", sample_size(self.n, self.clusters)

    def _check_fields(self) -> None:
        """Raise an error for arrays of wrong length."""
        for name in ("model", "treat_all", "minus_all"):
            for end, array in getattr(self, name)._asdict().items():
                Shape((len(self.thresholds),)).check(f"{name}.{end}", array)


def check_thresholds(thresholds: Any) -> Array:
    """Return the sorted thresholds; all must lie strictly between 0 and 1."""
    if thresholds is None:
        return THRESHOLDS
    values = np.unique(check_scores("thresholds", thresholds))
    outside = values[(values <= 0) | (values >= 1)]
    if values.size > MAX_THRESHOLDS:
        raise InputError("thresholds", f"be at most {MAX_THRESHOLDS}", got=f"{values.size}")
    if not values.size or outside.size:
        rule = "be one or more numbers strictly between 0 and 1"
        raise InputError("thresholds", rule, outside[0] if outside.size else values)
    return values


@one_blas_thread()
def regret_curve_of(
    task: CalibrationTask, thresholds: Array, *, level: float, other: CalibrationTask | None = None
) -> RegretCurve:
    """Return the decision regret and the net benefit at each threshold."""
    check_level(level)
    lines = CostLines.of_thresholds(thresholds)
    decisions = BinaryDecisions.of(task, thresholds)
    estimate = regret_intervals(decisions, lines, level, simultaneous=True)
    model, everyone = net_benefit(task.problems[0], thresholds)
    # Net benefit is measured in units of a miss, whose cost here is 1 - t.
    gained = estimate.recalibrated.value / (1 - thresholds)
    difference = None
    if other is not None:
        rows, others = (OutcomeRows.of(each) for each in (task, other))
        difference = _difference(rows, (rows.score, others.score), thresholds, level, simultaneous=True)
    return RegretCurve(
        thresholds, estimate.value, estimate.low, estimate.high, level, model, everyone, model + gained,
        task.n, task.label, difference, task.clusters,
    )  # fmt: skip


def net_benefit(data: ScoreData, thresholds: Array) -> tuple[Array, Array]:
    """Return the net benefit of acting at or above each threshold, and of always acting.

    >>> from calibrant.score_data import Sample
    >>> sample = Sample(np.array([0.1, 0.4, 0.8]), np.array([False, True, True]))
    >>> model, everyone = net_benefit(sample, np.array([0.2]))
    >>> model.round(4), everyone.round(4)
    (array([0.6667]), array([0.5833]))
    """
    bins = data.bins(thresholds)
    total = bins.w.sum()
    hits, rows = (np.cumsum(array[::-1])[::-1] / total for array in (bins.wy, bins.w))
    odds = thresholds / (1 - thresholds)
    return hits[1:] - (rows - hits)[1:] * odds, hits[0] - (rows - hits)[0] * odds


@one_blas_thread()
def net_benefits_of(
    task: CalibrationTask, thresholds: Array, *, level: float, simultaneous: bool
) -> NetBenefit:
    """Return the net benefits of a model and of treating all at each threshold, and their difference."""
    check_level(level)
    rows = OutcomeRows.of(task)
    # Nobody is treated at a score of 0, and everybody at a score of 1.
    none, everyone = np.zeros(rows.score.shape), np.ones(rows.score.shape)
    pairs = ((rows.score, none), (everyone, none), (rows.score, everyone))
    made = [_difference(rows, pair, thresholds, level, simultaneous=simultaneous) for pair in pairs]
    # No net benefit is outside of these limits: all rows treated and none sick, or all sick.
    harm, one = thresholds / (1 - thresholds), np.ones(thresholds.shape)
    limits = ((-harm, one), (-harm, one), (-one, harm))
    made = [
        # A value on a limit may lie beyond it by rounding.
        each._replace(
            low=np.minimum(each.value, np.maximum(each.low, least)),
            high=np.maximum(each.value, np.minimum(each.high, most)),
        )
        for each, (least, most) in zip(made, limits, strict=True)
    ]
    about = level, bool(simultaneous), task.n, task.label, task.clusters
    return NetBenefit(thresholds, made[0], made[1], made[2], *about)


def _difference(
    rows: OutcomeRows, scores: tuple[Array, Array], thresholds: Array, level: float, *, simultaneous: bool
) -> NetBenefitDifference:
    """Return the difference of the net benefits of two scores of the same rows.

    The covariance is computed from rows or, for clustered rows, by the cluster-robust sandwich estimator.
    """
    regions = len(thresholds) + 1
    first, second = (np.searchsorted(thresholds, score, side="right") for score in scores)
    kind = (first * regions + second) * 2 + rows.outcome.astype(np.intp)
    # Rows with the same outcome whose two scores lie between the same thresholds contribute the same.
    present, kind = np.unique(kind, return_inverse=True)
    between, outcome = present // 2, present % 2
    step = np.arange(len(thresholds))[:, None]
    acts = (between // regions > step) * 1.0 - (between % regions > step)
    odds = (thresholds / (1 - thresholds))[:, None]
    each = acts * np.where(outcome == 1, 1.0, -odds)
    w = rows.weight
    total = w.sum()
    mean = each @ np.bincount(kind, w) / total
    square = np.bincount(kind, rows.square)
    spread = (each - mean[:, None]) * np.sqrt(square) / total
    # The largest contribution of a single row to the mean.
    most = np.maximum(1.0, odds[:, 0]) * square.sum() / total**2
    if rows.cluster is not None:
        size = np.bincount(rows.cluster, w)
        sums = np.stack([np.bincount(rows.cluster, w * contribution[kind]) for contribution in each])
        # Degrees-of-freedom correction for the estimated mean.
        correction = np.sqrt(rows.clusters / max(rows.clusters - 1, 1.0))
        by_cluster = correction * (sums - np.outer(mean, size)) / total
        ratios = [((array / most[:, None]) ** 2).sum() for array in (by_cluster, spread)]
        # Design effect of the differences, pooled over all thresholds.
        most *= max(ratios[0] / ratios[1], 1.0) if ratios[1] > 0 else 1.0
        spread = by_cluster
    covariance = spread @ spread.T
    # If few rows are classified differently, the empirical variance is too small: add a floor.
    error = np.sqrt(np.diag(covariance) + DECISIONS.variance_floor_rows * most**2)
    wide = interval_deviate(level, rows.clusters)
    if simultaneous:
        rng = np.random.default_rng(SEED)
        wide = simultaneous_deviate(covariance, error, level, rows.clusters, rng, BAND_DATA_SETS)
    return NetBenefitDifference(mean, mean - wide * error, mean + wide * error)
