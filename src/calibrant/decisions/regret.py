"""Decision regret: the extra cost of acting on the scores instead of on calibrated scores.

The method is described in docs/methods/decision-regret.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.decisions.binary import BinaryDecisions, CostLines, recalibrated
from calibrant.decisions.canonical import CanonicalDecisions
from calibrant.decisions.cost import Cost
from calibrant.decisions.interval import CostIntervals, cost_intervals
from calibrant.inference.null import null_distribution, simulated_residuals
from calibrant.inference.result import Null
from calibrant.inputs import ROUNDING, InputError, Predictions, Serializable, class_labels, generator
from calibrant.inputs import level as check_level
from calibrant.inputs.codec import Amount, Bounds, Count, Level, Number, Probability, Size, check_order
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import brief_size, number, p_value, sample_size, with_ends, with_interval
from calibrant.parallel import one_blas_thread, parallel_map
from calibrant.posterior.softmax import FEW, SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, get_notion

# Number of steps that simulated data sets are pooled to, which bounds the cost.
STEPS = 512
# Data sets simulated under H0 for a single score; rows and data sets for several classes.
NULL_DATA_SETS, CANONICAL_NULL_ROWS, CANONICAL_NULL_DATA_SETS = 50, 1000, 3
# Smallest p-value reported: approximations by normal distributions are not accurate further out.
MIN_P_VALUE = 1e-6


@dataclass(frozen=True)
class Regret(Printed, Serializable):
    """Decision regret: the extra cost per row of acting on the scores instead of on calibrated ones.

    Attributes
    ----------
    value : float
        The estimate, in the unit of the costs. It is never below `recovered` or the gain of `best_threshold`.
    low, high : float
        Interval for the true regret.
    level : float
        Level of the interval.
    p_value : float
        For H0: no decision regret.
    null : Null
        Distribution of the estimate for a calibrated model with this number of rows.
    recovered : float
        The gain of acting on scores that a default `Calibrator` recalibrated, fitted to other rows; it may be
        negative.
    cost : float
        Cost per row of acting on the scores.
    n : float
        Effective number of rows.
    matrix : tuple of tuples of float
        Costs: a row for each class in the order of `labels`, a column for each action.
    actions, labels : tuples
    threshold : float or None
        For a threshold or two costs: act when the score is at least this.
    label : object
        The positive class of such a decision.
    lower_bound : bool
        Whether there are too many classes to estimate the probability transfer between them. Value and
        interval are then those of a lower bound.
    cautions : tuple of str
    clusters : int or None
        Number of clusters, if cluster ids were given.
    seed : int or None
        The same call with `rng=seed` gives the same result.

    See Also
    --------
    regret : Returns this result.
    Cost : Cost of every action for every true class.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> answer = calibrant.regret(rng.random(2000) < score**2, score, (1, 9), rng=0)
    >>> answer
    Regret(0.104 [0.053, 0.190] per row, n=2000)
    >>> print(answer)
    decision regret         0.104 per row (95 % interval 0.053 to 0.190)
    of all rows             208
    recovered               0.102 per row by recalibration
    expected if calibrated  0.000016
    test                    p = 1.8e-05 (H0: no decision regret)
    decision                a false alarm costs 1, a miss 9 (act when the score is
                            at least 0.1)
    data                    2,000 rows
    """

    value: Amount
    low: Amount
    high: Amount
    level: Level
    p_value: Probability
    null: Null
    recovered: float
    cost: float
    n: Size
    matrix: tuple[tuple[float, ...], ...]
    actions: tuple[str, ...]
    labels: tuple[Any, ...]
    threshold: float | None = None
    label: Any = None
    lower_bound: bool = False
    cautions: tuple[str, ...] = ()
    seed: Count | None = None
    clusters: Number | None = None

    def __float__(self) -> float:
        return self.value

    @property
    def total(self) -> float:
        """The regret summed over all rows."""
        return self.value * self.n

    @property
    def decision(self) -> str:
        """Description of the decision and its costs."""
        if self.threshold is None:
            return f"{len(self.labels)} classes, actions {', '.join(self.actions)}"
        (alarm, _), (_, miss) = self.matrix
        return (
            f"a false alarm costs {alarm:.6g}, a miss {miss:.6g} "
            f"(act when the score is at least {self.threshold:.4g})"
        )

    @property
    def p_text(self) -> str:
        """The p-value and its null hypothesis."""
        return f"{p_value(self.p_value, MIN_P_VALUE)} (H0: no decision regret)"

    def __repr__(self) -> str:
        value, low, high = with_ends(self.value, self.low, self.high)
        return f"Regret({value} [{low}, {high}] per row, {brief_size(self.n)})"

    def _printed(self) -> Iterator[Block]:
        least = "at least " if self.lower_bound else ""
        regret = with_interval(self.value, self.low, self.high, self.level, unit=" per row")
        yield "decision regret", f"{least}{regret}"
        yield "of all rows", number(self.total)
        yield "recovered", f"{number(self.recovered)} per row by recalibration"
        yield "expected if calibrated", number(self.null.mean)
        yield "test", self.p_text
        yield "decision", self.decision
        yield "data", sample_size(self.n, self.clusters)
        yield from self.cautions

    def _check_fields(self) -> None:
        """Raise an error for values that are impossible with these costs."""
        for k, row in enumerate(self.matrix):
            if len(row) != len(self.actions):
                raise InputError(f"matrix[{k}]", f"have {len(self.actions)} entries", got=str(len(row)))
        cost = Cost(np.array(self.matrix), self.actions, self.labels, self.threshold)
        cost._check_fields()
        # Rounding errors scale with the unit of the costs.
        slack = ROUNDING * max(float(np.abs(cost.matrix).max()), 1.0)
        top = float(np.ptp(cost.matrix, axis=1).max())
        bounds = Bounds(0, top, slack=slack)
        for name in ("value", "low", "high"):
            bounds.check(name, getattr(self, name))
        self.null.check_within(bounds)
        check_order(self, "low", "value", "high")
        Bounds(-top, top, slack=slack).check("recovered", self.recovered)
        Bounds(float(cost.matrix.min()), float(cost.matrix.max()), slack=slack).check("cost", self.cost)


def deciding(
    data: Predictions, cost: Any, actions: Sequence[str] | None = None, labels: Any = None
) -> tuple[CalibrationTask, Cost]:
    """Return the calibration task and the cost of a decision: binary, or canonical for three or more classes.

    `labels` are the class names given by the caller, if any; see `cost_of`.
    """
    if data.score.ndim == 2 and len(data.labels) > 2 and data.positive is None:
        costs = Cost.of(cost, data.labels, actions)
        return CalibrationTask.of(data, get_notion("canonical")), costs
    task = CalibrationTask.of(data, get_notion("binary"))
    return task, cost_of(task, cost, actions, labels)


def cost_of(
    task: CalibrationTask, cost: Any, actions: Sequence[str] | None = None, labels: Any = None
) -> Cost:
    """Parse the cost of a binary task; the rows of a matrix are in the order of `labels`."""
    classes, positive = task.labels, task.positive
    if labels is not None and set(given := class_labels(labels)) == set(classes):
        # With a single column of scores, the task lists the negative class first, in any order of `labels`.
        classes, positive = given, given.index(task.label)
    return Cost.of_outcome(cost, classes, positive, actions)


@one_blas_thread()
def regret_of(task: CalibrationTask, cost: Cost, *, level: float, seed: int) -> Regret:
    """Estimate the decision regret of the scores of a task."""
    check_level(level)
    rng = generator(seed)
    if task.notion.canonical:
        parts = _canonical_fields(task, cost, level, rng)
    else:
        parts = _binary_fields(task, cost_intervals(task, cost, level), rng)
    cautions = tuple(
        f"the action {name!r} costs at least as much as another one in every class" for name in cost.dominated
    )
    lower_bound = task.notion.canonical and len(task.labels) > FEW
    if lower_bound:
        cautions += (
            f"beyond {FEW} classes the probability transfer between them cannot be estimated: "
            "this is a lower bound",
        )
    cautions += tuple(each.removesuffix(".") for each in task.cautions)
    return Regret(
        level=level, matrix=tuple(map(tuple, cost.matrix.tolist())), actions=cost.actions, labels=cost.labels,
        threshold=cost.threshold, label=task.label, cautions=cautions, seed=seed,
        lower_bound=lower_bound, clusters=task.clusters, **parts,
    )  # fmt: skip


def _binary_fields(
    task: CalibrationTask, intervals: CostIntervals, rng: np.random.Generator
) -> dict[str, Any]:
    from scipy.special import stdtr

    lines, decisions, estimate = intervals
    return {
        "value": float(estimate.value[0]), "low": float(estimate.low[0]), "high": float(estimate.high[0]),
        "p_value": max(float(stdtr(max(decisions.clusters - 1, 1.0), -estimate.z[0])), MIN_P_VALUE),
        "recovered": float(estimate.recalibrated.value[0]), "cost": float(estimate.as_is[0]), "n": task.n,
        "null": _binary_null(decisions, lines, rng),
    }  # fmt: skip


def _canonical_fields(
    task: CalibrationTask, cost: Cost, level: float, rng: np.random.Generator
) -> dict[str, Any]:
    from scipy.special import ndtr, ndtri

    decisions = CanonicalDecisions.of(task, cost)
    low, high = decisions.ends(float(ndtri((1 + level) / 2)), level)
    gain = decisions.gain
    z = float(gain.mean[0] / gain.error[0])
    costs = decisions.cost[decisions.rows.code, decisions.actions]
    return {
        "value": decisions.value, "low": low, "high": high,
        "p_value": max(float(ndtr(-z)), MIN_P_VALUE),
        "recovered": float(gain.value[0]), "cost": decisions.rows.mean(costs)[0], "n": task.n,
        "null": _canonical_null(decisions, rng),
    }  # fmt: skip


def _binary_null(decisions: BinaryDecisions, lines: CostLines, rng: np.random.Generator) -> Null:
    """Simulate the distribution of the regret estimate for calibrated data with these scores."""
    steps = decisions.groups.coarser(STEPS)
    sets = simulated_residuals(steps, rng, NULL_DATA_SETS).astype(np.float64)

    def simulated_estimate(residual: Array) -> float:
        simulated = replace(steps, residual=residual)
        return float(decisions.regret(lines, recalibrated(simulated, decisions.groups.score))[0])

    return null_distribution(np.array(list(parallel_map(simulated_estimate, list(sets)))))


def _canonical_null(decisions: CanonicalDecisions, rng: np.random.Generator) -> Null:
    """Estimate the mean of the null distribution from labels drawn for a subset of the rows.

    It is scaled by the number of rows, because the estimate under the null decreases with the noise.
    """
    subset = decisions.rows[: min(len(decisions.rows.code), CANONICAL_NULL_ROWS)]
    estimates = []
    for _ in range(CANONICAL_NULL_DATA_SETS):
        edge = np.cumsum(subset.score, axis=1)[:, :-1]
        code: Array = (rng.random((len(subset.code), 1)) >= edge).sum(axis=1)
        simulated = replace(subset, code=code)
        posterior = SoftmaxPosterior.of(simulated)
        actions = decisions.actions[: len(subset.code)]
        excess = decisions.excess_cost(posterior.predict(subset.score), actions)
        estimates.append(posterior.gap_probability * simulated.mean(excess)[0] * subset.n / decisions.rows.n)
    return Null(float(np.mean(estimates)))
