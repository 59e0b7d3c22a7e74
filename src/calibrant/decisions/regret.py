"""Regret: what acting on the scores costs more than acting on calibrated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calibrant.compiled import shared
from calibrant.compiled.blas import one_blas_thread
from calibrant.decisions.binary import BinaryDecisions, Lines, recalibrated
from calibrant.decisions.canonical import CanonicalDecisions
from calibrant.decisions.cost import Cost
from calibrant.decisions.interval import ends
from calibrant.inference.null import drawn
from calibrant.inference.result import Null
from calibrant.inputs import ROUNDING, InputError, Predictions, Serializable, class_labels, generator
from calibrant.inputs import level as check_level
from calibrant.inputs.codec import Amount, Bounds, Count, Level, Probability, Size, check_order
from calibrant.inputs.wording import percent, sample_size
from calibrant.posterior.softmax import FEW, SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, named

# Simulated calibrated data, whose steps are pooled; the quantiles that are kept; and the least p-value
# written.
SIMULATED, STEPS, KEPT, LEAST_P = 50, 512, (0.5, 0.95), 1e-6
# Whole rows of calibrated data, and how often labels are drawn for them.
SEEN, TIMES = 1000, 3


@dataclass(frozen=True)
class Regret(Serializable):
    """Decision regret: the extra cost per row of acting on the scores instead of on calibrated ones.

    Attributes
    ----------
    value : float
        The estimate, in the unit of the costs. It is never below `recovered` or the gain of `best_threshold`.
    low, high : float
        Interval for the true regret.
    level : float
        Its level.
    p_value : float
        Of the null hypothesis that there is no regret.
    null : Null
        What is expected of a calibrated model of this size.
    recovered : float
        The gain of acting on scores that a default `Calibrator` recalibrated, fitted to other rows; it may be
        negative.
    cost : float
        What acting on the scores costs.
    n : float
        Effective number of rows.
    matrix : tuple of tuples of float
        Costs: a row for each class in the order of `labels`, a column for each action.
    actions, labels : tuples
    threshold : float or None
        Of a threshold or two costs: one acts when the score is at least this.
    label : object
        The class that such a decision is about.
    lower_bound : bool
        Whether there are too many classes to see how they take probability from each other, so that value and
        interval tell only the part that can be seen.
    cautions : tuple of str
    seed : int or None
        The same call with `rng=seed` gives the same answer.

    Examples
    --------
    >>> import calibrant
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> answer = calibrant.regret(rng.random(2000) < score**2, score, (1, 9), rng=0)
    >>> answer
    Regret(0.103 [0.0567, 0.19] per row, n=2000)
    >>> print(str(answer).split(": ")[0])
    a false alarm costs 1, a miss 9 (act when the score is at least 0.1)
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

    def __float__(self) -> float:
        return self.value

    @property
    def total(self) -> float:
        """The regret of all rows together."""
        return self.value * self.n

    @property
    def decision(self) -> str:
        """What is decided, at which costs."""
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
        p = f"p <= {LEAST_P:g}" if self.p_value <= LEAST_P else f"p = {self.p_value:.2g}"
        return f"{p} (H0: no decision regret)"

    def __repr__(self) -> str:
        return (
            f"Regret({self.value:.3g} [{self.low:.3g}, {self.high:.3g}] per row, {sample_size(self.n, '=')})"
        )

    def __str__(self) -> str:
        least = "at least " if self.lower_bound else ""
        return (
            f"{self.decision}: decision regret {least}{self.value:.3g} per row "
            f"[{self.low:.3g}, {self.high:.3g}] at {percent(self.level)}, {self.total:.3g} for the data; "
            f"recalibrating recovers {self.recovered:.3g}; expected if calibrated: {self.null.mean:.2g}; "
            f"{self.p_text}; {sample_size(self.n)}" + "".join(f"\n{caution}" for caution in self.cautions)
        )

    def check_fields(self) -> None:
        """Refuse numbers that these costs do not allow."""
        for k, row in enumerate(self.matrix):
            if len(row) != len(self.actions):
                raise InputError(f"matrix[{k}]", f"have {len(self.actions)} entries", got=str(len(row)))
        cost = Cost(np.array(self.matrix), self.actions, self.labels, self.threshold)
        cost.check_fields()
        # In a large unit rounding is large.
        room = ROUNDING * max(float(np.abs(cost.matrix).max()), 1.0)
        top = float(np.ptp(cost.matrix, axis=1).max())
        bounds = Bounds(0, top, slack=room)
        for name in ("value", "low", "high"):
            bounds.check(name, getattr(self, name))
        self.null.check_within(bounds)
        check_order(self, "low", "value", "high")
        Bounds(-top, top, slack=room).check("recovered", self.recovered)
        Bounds(float(cost.matrix.min()), float(cost.matrix.max()), slack=room).check("cost", self.cost)

    def plot(self, ax: Any = None) -> Any:
        """Draw value and interval beside what a calibrated model reads and what is recovered."""
        from calibrant.plot.decisions import plot_regret

        return plot_regret(self, ax=ax)


def deciding(
    data: Predictions, cost: Any, actions: Sequence[str] | None = None, labels: Any = None
) -> tuple[CalibrationTask, Cost]:
    """Return the question that a cost asks of predictions: about one class, or about whole rows.

    `labels` are the classes as they were named, if they were, and `cost_of` says what for.
    """
    if data.score.ndim == 2 and len(data.labels) > 2 and data.positive is None:
        costs = Cost.of(cost, data.labels, actions)
        return CalibrationTask.of(data, named("canonical")), costs
    task = CalibrationTask.of(data, named("binary"))
    return task, cost_of(task, cost, actions, labels)


def cost_of(
    task: CalibrationTask, cost: Any, actions: Sequence[str] | None = None, labels: Any = None
) -> Cost:
    """Read a cost about the class asked about; rows of a matrix are in the order of the labels as named."""
    classes, positive = task.labels, task.positive
    if labels is not None and set(given := class_labels(labels)) == set(classes):
        # Of a single column of scores the other class comes first, however they were named.
        classes, positive = given, given.index(task.label)
    return Cost.of_outcome(cost, classes, positive, actions)


@one_blas_thread()
def regret_of(task: CalibrationTask, cost: Cost, *, level: float, seed: int) -> Regret:
    """Return the regret of the scores of a question at a cost."""
    check_level(level)
    rng = generator(seed)
    found = _of_rows if task.notion.canonical else _of_one_score
    parts = found(task, cost, level, rng)
    cautions = tuple(
        f"the action {name!r} costs at least as much as another one in every class" for name in cost.dominated
    )
    lower_bound = task.notion.canonical and len(task.labels) > FEW
    if lower_bound:
        cautions += (
            f"beyond {FEW} classes what they take from each other cannot be seen: this is a lower bound",
        )
    cautions += tuple(each.removesuffix(".") for each in task.cautions)
    return Regret(
        level=level, matrix=tuple(map(tuple, cost.matrix.tolist())), actions=cost.actions, labels=cost.labels,
        threshold=cost.threshold, label=task.label, cautions=cautions, seed=seed,
        lower_bound=lower_bound, **parts,
    )  # fmt: skip


def _of_one_score(
    task: CalibrationTask, cost: Cost, level: float, rng: np.random.Generator
) -> dict[str, Any]:
    from scipy.special import stdtr

    lines = Lines.of(cost)
    known = BinaryDecisions.of(task, lines.changes)
    found = ends(known, lines, level)
    return {
        "value": float(found.value[0]), "low": float(found.low[0]), "high": float(found.high[0]),
        "p_value": max(float(stdtr(max(known.clusters - 1, 1.0), -found.z[0])), LEAST_P),
        "recovered": float(found.recalibrated.value[0]), "cost": float(found.as_is[0]), "n": task.n,
        "null": _null(known, lines, rng),
    }  # fmt: skip


def _of_rows(task: CalibrationTask, cost: Cost, level: float, rng: np.random.Generator) -> dict[str, Any]:
    from scipy.special import ndtr, ndtri

    known = CanonicalDecisions.of(task, cost)
    low, high = known.ends(float(ndtri((1 + level) / 2)), level)
    gain = known.gain
    z = float(gain.mean[0] / gain.error[0])
    costs = known.cost[known.rows.code, known.actions]
    return {
        "value": known.value, "low": low, "high": high, "p_value": max(float(ndtr(-z)), LEAST_P),
        "recovered": float(gain.value[0]), "cost": known.rows.mean(costs)[0], "n": task.n,
        "null": _null_of_rows(known, rng),
    }  # fmt: skip


def _null(known: BinaryDecisions, lines: Lines, rng: np.random.Generator) -> Null:
    """Simulate what calibrated data of these scores would read."""
    steps = known.groups.coarser(STEPS)
    sets = drawn(steps, rng, SIMULATED).astype(np.float64)

    def read(residual: Array) -> float:
        simulated = replace(steps, residual=residual)
        return float(known.regret(lines, recalibrated(simulated, known.groups.score))[0])

    reads = list(shared(read, list(sets)))
    levels = {level: float(np.quantile(reads, level)) for level in KEPT}
    return Null(float(np.mean(reads)), MappingProxyType(levels))


def _null_of_rows(known: CanonicalDecisions, rng: np.random.Generator) -> Null:
    """Fit labels drawn from the scores of some rows; with more rows less is read, as noise shrinks."""
    some = known.rows[: min(len(known.rows.code), SEEN)]
    reads = []
    for _ in range(TIMES):
        edge = np.cumsum(some.score, axis=1)[:, :-1]
        code: Array = (rng.random((len(some.code), 1)) >= edge).sum(axis=1)
        again = replace(some, code=code)
        posterior = SoftmaxPosterior.of(again)
        lost = known.lost(posterior.predict(some.score), known.actions[: len(some.code)])
        reads.append(posterior.chance * again.mean(lost)[0] * some.n / known.rows.n)
    return Null(float(np.mean(reads)))
