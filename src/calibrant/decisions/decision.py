"""A decision at given costs: its regret, and the best threshold on the scores as they are.

The method is described in docs/methods/decision-regret.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.curves.histogram import TAIL
from calibrant.curves.shown import DrawnOnAxes
from calibrant.decisions.cost import Cost
from calibrant.decisions.curve import THRESHOLDS
from calibrant.decisions.interval import cost_intervals
from calibrant.decisions.regret import Regret, regret_of
from calibrant.inference.interval_estimate import Extended
from calibrant.inputs import Serializable
from calibrant.inputs import level as check_level
from calibrant.inputs.codec import UNIT, Level, Number, Size, check_order
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import brief_size, number, percent, sample_size, with_interval
from calibrant.parallel import one_blas_thread
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask

# Thresholds at which the cost is shown, finer near 0 and 1.
COST_THRESHOLDS = np.unique(np.concatenate([THRESHOLDS, TAIL, 1 - TAIL]))
NEAR = 0.02  # thresholds nearer to 0 or 1 ask for a log-odds axis
# Costs are reported per this many rows.
ROWS = 1000
# Name, value, both ends where known, and meaning.
Row = tuple[str, float, float | None, float | None, str]


@dataclass(frozen=True)
class BestThreshold(DrawnOnAxes, Serializable):
    """The threshold of least expected cost, and that cost.

    Attributes
    ----------
    value : float
        The threshold: act when the score is at least this; 0 means always, infinity means never.
    low, high : float
        Confidence interval of the best threshold.
    cost : float
        Cost per row, with the threshold chosen on other rows than those it is evaluated on.
    cost_low, cost_high : float
        Confidence interval of the cost.
    cost_as_is : float
        Cost of acting at the threshold implied by the costs, as if scores were probabilities.
    cost_recalibrated : float
        Cost of acting on recalibrated scores, by calibration maps fitted to other rows.
    gain, gain_low, gain_high : float
        Reduction of the cost relative to `cost_as_is`, and its interval. Neither the gain nor an end exceeds
        that of the regret, whose interval is of the best policy on these scores, not of this one alone.
    level : float
        Level of all intervals.
    implied_threshold : float
        The threshold implied by the costs.
    n : float
        Effective number of rows.
    label : object
        The class that the decision is about.
    costs : tuple of floats
        Cost per row of these data at each of `COST_THRESHOLDS`: 0.01, 0.02, ..., 0.99, and finer beyond.
    clusters : int or None
        Number of clusters, if cluster ids were given.

    See Also
    --------
    best_threshold : Returns this result.
    Regret : Cost of acting on the scores as they are.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> best = calibrant.best_threshold(rng.random(5000) < score**2, score, (1, 9), rng=0)
    >>> print(best)
    best decision           act when the score is at least 0.318 (95 % interval of
                            the threshold 0.296 to 0.337)
    threshold of the costs  0.1
    cost                    0.447 per row (95 % interval 0.419 to 0.475)
    difference              0.111 per row (0.083 to 0.139) less than at the
                            threshold of the costs, by this threshold alone (the
                            interval of the decision regret is of the best use of
                            the scores)
    cost if recalibrated    0.447 per row
    data                    5,000 rows
    """

    value: Extended
    low: Extended
    high: Extended
    cost: float
    cost_low: float
    cost_high: float
    cost_as_is: float
    cost_recalibrated: float
    gain: float
    gain_low: float
    gain_high: float
    level: Level
    implied_threshold: float
    n: Size
    label: Any = None
    costs: tuple[float, ...] = ()
    clusters: Number | None = None
    _drawn_by = "regret"

    @property
    def _axes(self) -> tuple[bool, float, float]:
        """Whether a drawing of the costs needs an axis of log-odds, and its lowest and highest cost."""
        ends = [min(each, 1 - each) for each in (self.value, self.implied_threshold) if 0 < each < 1]
        # Costs far above both marks would press these together.
        bottom, worst = min(*self.costs, self.cost), max(self.cost_as_is, self.cost)
        height = max(4 * (worst - bottom), 0.3 * (max(self.costs) - bottom), 1e-9)
        return min(ends, default=0.5) < NEAR, bottom - 0.2 * height, bottom + height

    def __float__(self) -> float:
        return self.value

    @property
    def policy(self) -> str:
        """What to do, as a phrase."""
        act = f"act when the score is at least {_threshold_text(self.value)}"
        return {0.0: "always act", math.inf: "never act"}.get(self.value, act)

    def __repr__(self) -> str:
        size, cost = brief_size(self.n), number(self.cost)
        return f"BestThreshold({_threshold_text(self.value)}, cost {cost} per row, {size})"

    def _printed(self) -> Iterator[Block]:
        side, gain, far = "less", self.gain, (self.gain_low, self.gain_high)
        if gain < 0:
            side, gain, far = "more", -gain, (-self.gain_high, -self.gain_low)
        low, high = map(_threshold_text, (self.low, self.high))
        yield (
            "best decision",
            f"{self.policy} ({percent(self.level)} interval of the threshold {low} to {high})",
        )
        yield "threshold of the costs", f"{self.implied_threshold:.4g}"
        cost = with_interval(self.cost, self.cost_low, self.cost_high, self.level, unit=" per row")
        yield "cost", cost
        yield (
            "difference",
            f"{with_interval(gain, *far, unit=' per row')} {side} than at the threshold of the costs, by "
            "this threshold alone (the interval of the decision regret is of the best use of the scores)",
        )
        yield "cost if recalibrated", f"{number(self.cost_recalibrated)} per row"
        yield "data", sample_size(self.n, self.clusters)

    def _check_fields(self) -> None:
        """Raise an error for thresholds outside [0, 1] and intervals that do not contain their value."""
        for name in ("value", "low", "high"):
            if math.isfinite(threshold := getattr(self, name)):
                UNIT.check(name, threshold)
        check_order(self, "low", "value", "high")
        check_order(self, "cost_low", "cost", "cost_high")
        check_order(self, "gain_low", "gain", "gain_high")


@dataclass(frozen=True)
class Decision(Printed, Serializable):
    """Decision regret of the scores at given costs and, for two costs, the best threshold.

    Attributes
    ----------
    regret : Regret
    best : BestThreshold or None
    """

    regret: Regret
    best: BestThreshold | None = None

    @classmethod
    def of(cls, task: CalibrationTask, cost: Cost, *, level: float, seed: int) -> Decision:
        """Estimate the regret and the best threshold."""
        regret = regret_of(task, cost, level=level, seed=seed)
        return cls(regret, None if cost.threshold is None else best_threshold_of(task, cost, level=level))

    def _printed(self) -> Iterator[Block]:
        yield from self.regret._printed()
        if self.best is not None:
            yield from self.best._printed()

    @property
    def sentences(self) -> list[str]:
        """The regret per 1,000 rows, and what recalibration or another threshold recovers of it."""
        lost, least = self.regret, "at least " if self.regret.lower_bound else ""
        value, low, high, back = (ROWS * x for x in (lost.value, lost.low, lost.high, lost.recovered))
        lost_text = with_interval(value, low, high, lost.level, unit=" per 1,000 rows")
        text = f"With {self.about} the decision regret is {least}{lost_text}"
        sentences = [
            f"{text}, which is compatible with none."
            if low == 0
            else f"{text}; recalibrating recovers {number(back)}."
        ]
        if self.best is not None and self.best.gain_low > 0:
            best = self.best
            gained = with_interval(ROWS * best.gain, ROWS * best.gain_low, ROWS * best.gain_high)
            sentences.append(f"On the scores as they are, to {best.policy} recovers {gained}.")
        return [*sentences, *(f"{caution[0].upper()}{caution[1:]}." for caution in lost.cautions)]

    @property
    def table(self) -> list[Row]:
        """Costs per 1,000 rows of each policy: name, value, both ends where known, description."""
        lost, best = self.regret, self.best

        def row(name: str, meaning: str, value: float, *ends: float) -> Row:
            low, high = (ROWS * end for end in ends) if ends else (None, None)
            return name, ROWS * value, low, high, meaning

        rows = [
            row(
                "decision regret", "extra cost of acting on the scores instead of calibrated ones",
                lost.value, lost.low, lost.high,
            ),
            row("acting on the scores", "as if they were probabilities", lost.cost),
            row("recalibrated", "by maps fitted to other rows", lost.cost - lost.recovered),
        ]  # fmt: skip
        if best is not None:
            meaning = "on the scores as they are, chosen on other rows"
            rows.append(row("best threshold", meaning, best.cost, best.cost_low, best.cost_high))
        return rows

    @property
    def about(self) -> str:
        """The decision and its costs, as a phrase."""
        lost = self.regret
        if lost.threshold is None:
            return f"the actions {', '.join(lost.actions)}"
        (alarm, _), (_, miss) = lost.matrix
        return (
            f"a false alarm at {alarm:.6g} and a miss at {miss:.6g}, acting when the score is at least "
            f"{lost.threshold:.4g},"
        )


@one_blas_thread()
def best_threshold_of(task: CalibrationTask, cost: Cost, *, level: float) -> BestThreshold:
    """Choose the threshold of least expected cost, and evaluate such choices on held-out rows."""
    check_level(level)
    assert cost.threshold is not None
    given = cost.threshold
    lines, decisions, estimate = cost_intervals(task, cost, level)
    score = decisions.groups.score
    ((first,),) = lines.first(decisions.groups.mass[None], decisions.curve[None], score)
    frequency, share = decisions.draws
    drawn = np.sort(lines.first(share, frequency, score)[0])
    tail = round((1 - level) / 2 * (len(drawn) - 1))
    low, high = (_separating_threshold(score, int(drawn[k]), given) for k in (tail, len(drawn) - 1 - tail))
    chosen = _separating_threshold(score, int(first), given)
    assert estimate.threshold is not None
    gain = float(estimate.threshold.value[0])
    gain_low, gain_high = estimate.threshold.interval(estimate.deviate)
    spent = decisions.gain(lines, decisions.best_threshold(lines))
    cost_low, cost_high = spent.interval(estimate.deviate)
    as_is = float(estimate.as_is[0])
    # The cost per row lies between the smallest and the largest entry of the cost matrix.
    least, most = float(cost.matrix.min()), float(cost.matrix.max())
    return BestThreshold(
        value=chosen, low=min(low, chosen), high=max(high, chosen), cost=as_is - gain,
        cost_low=max(min(float(cost_low[0]), as_is - gain), least),
        cost_high=min(max(float(cost_high[0]), as_is - gain), most),
        cost_as_is=as_is, cost_recalibrated=as_is - float(estimate.recalibrated.value[0]),
        gain=gain, gain_low=max(float(gain_low[0]), -float(lines.top[0])),
        gain_high=min(float(gain_high[0]), float(lines.top[0])), level=level, implied_threshold=given,
        n=task.n, label=task.label, costs=_costs(task, cost), clusters=task.clusters,
    )  # fmt: skip


def _costs(task: CalibrationTask, cost: Cost) -> tuple[float, ...]:
    """Return the cost per row of acting at or above each of `COST_THRESHOLDS`."""
    sums = task.problems[0].bins(COST_THRESHOLDS)
    by_class = np.stack([sums.w - sums.wy, sums.wy]) / sums.w.sum()
    below = np.cumsum(by_class, axis=1)[:, :-1]
    act, leave = cost.matrix.T
    return tuple((act @ (by_class.sum(axis=1, keepdims=True) - below) + leave @ below).tolist())


def _separating_threshold(score: Array, first: int, given: float) -> float:
    """Return a threshold between groups `first - 1` and `first`; `given` if it lies there."""
    if first == np.searchsorted(score, given - 1e-9):
        # If a false alarm or a miss has a negative cost, the optimal policy is always or never to act.
        return 0.0 if given <= 0 else given if given <= 1 else math.inf
    if first == 0:
        return 0.0
    return math.inf if first == len(score) else float((score[first - 1] + score[first]) / 2)


def _threshold_text(threshold: float) -> str:
    return {0.0: "always", math.inf: "never"}.get(threshold, number(threshold))
