"""Comparison of the calibration errors of several models, paired by row or cluster or of independent samples.

The interval of a difference combines the intervals of docs/methods/confidence-intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import atan2, erfc, hypot, pi, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from calibrant import inputs
from calibrant.curves.band import wilson
from calibrant.curves.shown import Page
from calibrant.estimators import EstimatorLike, Norm
from calibrant.inference.canonical import contributions_of_rows
from calibrant.inference.clusters import by_cluster
from calibrant.inference.estimate import estimate, influence, signs
from calibrant.inference.interval import ClusterAdjustment
from calibrant.inference.result import LEAST_P, Estimate, estimate_table
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Bounds, Level, Probability, check_order
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import (
    about,
    number,
    p_value,
    percent,
    sample_size,
    short,
    with_ends,
    with_interval,
)
from calibrant.parallel import one_blas_thread
from calibrant.posterior import posterior_of
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks import CalibrationTask, get_notion

# Range of the differences between two errors.
CHANGE = Bounds(-2, 2, slack=ROUNDING)
UNIT = Bounds(-1, 1, slack=ROUNDING)
INDEPENDENT = "independent samples"
UNEQUAL = (
    "The error of {!r} is much less certain than that of {!r} (its interval is {:.1f} times as wide): a "
    "smaller estimate is weak evidence that it is better calibrated."
)
ACCURACIES = (
    "The accuracies of {!r} and {!r} are {} and {}, a difference of {}: errors of models with different "
    "accuracy are not directly comparable."
)


@dataclass(frozen=True)
class AccuracyDifference(Serializable):
    """Accuracy of a model minus that of a baseline.

    Attributes
    ----------
    model_accuracy, baseline_accuracy : float
    value, low, high : float
        The difference and its interval.
    """

    model_accuracy: Probability
    baseline_accuracy: Probability
    value: Annotated[float, UNIT]
    low: Annotated[float, UNIT]
    high: Annotated[float, UNIT]

    def _check_fields(self) -> None:
        """Raise an error for an interval that does not contain the value."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class ErrorDifference(Printed, Serializable):
    """Calibration error of a model minus that of a baseline.

    Attributes
    ----------
    model, baseline : str
    value : float
        Difference of the two estimates; negative where the model is better calibrated.
    low, high : float
        Interval for the true difference.
    p_value : float
        p-value of H0: both models have the same calibration error.
    correlation : float
        Correlation of the contributions of the rows, or of the clusters, to the two errors; 0 for independent
        samples.
    paired : bool
        Whether rows or clusters of the two models belong together; otherwise the interval assumes independent
        samples.
    accuracy : AccuracyDifference or None
        Difference of the accuracies, for notions that compare confidence with accuracy.
    """

    model: str
    baseline: str
    value: Annotated[float, CHANGE]
    low: Annotated[float, CHANGE]
    high: Annotated[float, CHANGE]
    level: Level
    p_value: Probability
    correlation: Annotated[float, UNIT]
    paired: bool = True
    accuracy: AccuracyDifference | None = None

    @property
    def sentence(self) -> str:
        """Which of the two errors is larger, if the interval tells."""
        differs = "is larger than" if self.low > 0 else "is smaller than" if self.high < 0 else ""
        verb = differs or "does not differ significantly from"
        return f"The calibration error of {short(self.model)} {verb} that of {short(self.baseline)}."

    @property
    def p_text(self) -> str:
        """The p-value as text."""
        return p_value(self.p_value, LEAST_P, "<")

    def _printed(self) -> Iterator[Block]:
        difference = with_interval(self.value, self.low, self.high, self.level, "+")
        yield f"{short(self.model, 12)} - {short(self.baseline, 12)}", difference
        yield "test", f"{self.p_text} (H0: equal calibration errors)"
        yield "comparison", "paired" if self.paired else INDEPENDENT

    def __repr__(self) -> str:
        value, low, high = with_ends(self.value, self.low, self.high, "+")
        return f"Difference({self.model} - {self.baseline}, {value} [{low}, {high}])"

    def _check_fields(self) -> None:
        """Raise an error for an interval that does not contain the value."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class Comparison(Page, Serializable):
    """Estimates of several models, and their differences from a baseline.

    Attributes
    ----------
    estimates : mapping from name to Estimate
        Estimate of each model.
    differences : mapping from name to ErrorDifference
        For every model but the baseline.
    baseline : str
        Name of the model that the others are compared with.

    See Also
    --------
    compare : Returns this result.
    Estimate : The estimate of one model.

    Examples
    --------
    >>> import calibrant
    >>> y_true = [0, 0, 1, 1] * 50
    >>> scores = {"a": [0.1, 0.3, 0.6, 0.9] * 50, "b": [0.4, 0.4, 0.6, 0.6] * 50}
    >>> comparison = calibrant.compare(y_true, scores)
    >>> comparison.baseline
    'a'
    >>> comparison.differences["b"].low > 0
    True
    """

    estimates: Mapping[str, Estimate]
    differences: Mapping[str, ErrorDifference]
    baseline: str
    _drawn_by, _page_by = "compare", "comparison_page"

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions about unequal widths of intervals and unequal accuracies, each against the baseline."""
        reference = self.estimates[self.baseline]
        accuracies = (
            ACCURACIES.format(
                *(name, self.baseline, number(each.model_accuracy), number(each.baseline_accuracy)),
                with_interval(each.value, each.low, each.high, reference.level, "+"),
            )
            for name, difference in self.differences.items()
            if (each := difference.accuracy) is not None and not each.low <= 0 <= each.high
        )
        widths = []
        for name, result in self.estimates.items():
            pair = (result.high - result.low, name), (reference.high - reference.low, self.baseline)
            (narrow, second), (wide, first) = sorted(pair)
            if (ratio := wide / max(narrow, 1e-12)) > REPORT.width_ratio:
                widths.append(UNEQUAL.format(first, second, ratio))
        return *widths, *accuracies

    @property
    def pairing(self) -> str:
        """What the intervals of the differences assume, in words."""
        if not any(each.paired for each in self.differences.values()):
            return INDEPENDENT
        return "paired by row" if self.estimates[self.baseline].clusters is None else "paired by cluster"

    @property
    def notes(self) -> list[str]:
        """Remarks and cautions about each model, and cautions about the comparison."""
        of_models = [
            f"{name}: {note}"
            for name, model in self.estimates.items()
            for note in (*model.remarks, *model.cautions)
        ]
        return [*of_models, *self.cautions]

    def _printed(self) -> Iterator[Block]:
        yield estimate_table("model", list(self.estimates.items()))
        first, rows = self.estimates[self.baseline], []
        for name, each in self.differences.items():
            value, low, high = with_ends(each.value, each.low, each.high, "+")
            p = each.p_text.removeprefix("p ").removeprefix("= ")
            rows.append([f"{name} - {self.baseline}", value, f"{low} to {high}", p])
        yield Table(["models", "difference", f"{percent(first.level)} interval", "p"], rows, names=1)
        yield "tests", "H0: the model is calibrated; H0: equal calibration errors"
        yield "notion", about(first.notion, first.label)
        yield "estimator", first.estimator
        yield "comparison", self.pairing
        sizes = {name: sample_size(each.n, each.clusters) for name, each in self.estimates.items()}
        different = len({*sizes.values()}) > 1
        yield "data", "; ".join(f"{k}: {v}" for k, v in sizes.items()) if different else sizes[self.baseline]
        yield from self.notes

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.estimates)}; baseline {self.baseline})"

    def _check_fields(self) -> None:
        """Raise an error unless there is one difference for every model except the baseline."""
        if {*self.differences, self.baseline} != {*self.estimates} or self.baseline in self.differences:
            rule = f"hold a difference from {self.baseline!r} for every other model"
            raise InputError("differences", rule, tuple(self.differences))


@one_blas_thread()
def compare_tasks(
    tasks: Mapping[str, CalibrationTask],
    baseline: str,
    *,
    estimator: EstimatorLike = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = 0,
    step: Callable[[], object] = lambda: None,
    n_resamples: int | None = None,
    paired: bool = True,
    unit_of_row: Mapping[str, Array] | None = None,
) -> Comparison:
    """Compare models by the same notion; `step` is called to report progress.

    Row k of every model belongs together if they are `paired`, unless `unit_of_row` numbers the unit (a
    cluster or a place) of each row of each model.
    """
    estimates = {}
    for name, task in tasks.items():
        with inputs.within(f"model {name!r}"):
            options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": rng}
            estimates[name] = estimate(task, step=step, n_resamples=n_resamples, **options)
        step()
    of_errors = _correlations(tasks, baseline, contributions, unit_of_row) if paired else {}
    of_outcomes: dict[str, float] = {}
    tells_accuracy = tasks[baseline].notion.tells_accuracy
    if paired and tells_accuracy:
        of_outcomes = _correlations(tasks, baseline, _outcomes, unit_of_row)
    differences = {}
    for name, result in estimates.items():
        if name != baseline:
            change = difference((name, baseline), (result, estimates[baseline]), of_errors.get(name))
            if tells_accuracy:
                pair, rho = (tasks[name], tasks[baseline]), of_outcomes.get(name, 0.0)
                change = replace(change, accuracy=_accuracy_difference(pair, rho, level))
            differences[name] = change
    return Comparison(MappingProxyType(estimates), MappingProxyType(differences), baseline)


def _correlations(
    tasks: Mapping[str, CalibrationTask],
    baseline: str,
    value: Callable[[CalibrationTask], Array],
    unit_of_row: Mapping[str, Array] | None,
) -> dict[str, float]:
    """Return the correlation of each model's sums of a value of its rows with those of the baseline.

    Models that have no unit in common with the baseline are left out.
    """
    values, task = {name: value(task) for name, task in tasks.items()}, tasks[baseline]
    weight = _weight(task)
    if unit_of_row is not None:
        # Units that a model has no rows of add nothing to its estimate.
        size = 1 + max(int(code.max()) for code in unit_of_row.values())
        values = {k: by_cluster(rows, unit_of_row[k], _weight(tasks[k]), size) for k, rows in values.items()}
        weight = None
    elif task.cluster is not None and task.designs is not None:
        # Contributions are summed by cluster, because only clusters are independent.
        values, weight = {k: by_cluster(rows, task.cluster, weight) for k, rows in values.items()}, None
    return {
        name: _correlation(each, values[baseline], weight)
        for name, each in values.items()
        if unit_of_row is None or np.intersect1d(unit_of_row[name], unit_of_row[baseline]).size
    }


def _weight(task: CalibrationTask) -> Array | None:
    return None if task.weight is None else task.weight.astype(np.float64)


def _outcomes(task: CalibrationTask) -> Array:
    """Return the outcome of each row of the only problem of a task."""
    return next(iter(task.problems[0].rows()))[1].astype(np.float64)


def _accuracy_difference(
    tasks: tuple[CalibrationTask, CalibrationTask], rho: float, level: float
) -> AccuracyDifference:
    """Return the difference of two accuracies, with the hybrid score interval of Newcombe."""
    (model, low, high), (baseline, its_low, its_high) = (_accuracy(task, level) for task in tasks)
    return AccuracyDifference(
        model_accuracy=model,
        baseline_accuracy=baseline,
        value=model - baseline,
        low=model - baseline - _mover_margin(model - low, its_high - baseline, rho),
        high=model - baseline + _mover_margin(high - model, baseline - its_low, rho),
    )


def _accuracy(task: CalibrationTask, level: float) -> tuple[float, float, float]:
    """Return the accuracy and its interval by the score method; clusters reduce the sample size."""
    accuracy, n = float(task.problems[0].bins(np.array([])).frequency[0]), task.n
    adjustment = ClusterAdjustment.of(task)[0]
    if task.cluster is not None and task.designs is not None and 0 < accuracy < 1:
        sums = by_cluster(_outcomes(task), task.cluster, _weight(task))
        effect = max(1.0, n * float(sums @ sums) / (accuracy * (1 - accuracy)))
        n /= effect * adjustment.tails(level) ** 2
    low, high = wilson(np.array(accuracy), np.array(n), level)
    return accuracy, min(float(low), accuracy), max(float(high), accuracy)


def contributions(task: CalibrationTask) -> Array:
    """Return the contribution of each row to the error of a model: its residual times the sign of the gap."""
    if task.notion.canonical:
        return contributions_of_rows(task) if len(task.labels) > 2 else contributions(task.about_class(1))
    posterior, rows = posterior_of(task), task.rows
    if task.notion.classwise and rows is not None:
        return np.asarray(influence(posterior, rows, np.arange(rows.n)).mean(axis=1))
    score, outcome, _ = next(iter(task.problems[0].rows()))
    return np.asarray(signs(posterior, 0, score) * (outcome - score))


def difference(
    names: tuple[str, str],
    estimates: tuple[Estimate, Estimate],
    correlation: float | None,
) -> ErrorDifference:
    """Return the interval of a difference from two intervals and the correlation of the estimates.

    Independent samples have no correlation.

    The variance of each estimate is recovered from its interval on the relevant side (MOVER, Zou and Donner),
    so that the asymmetry of the intervals is kept. The bias of a small error, which cannot be estimated to be
    below zero, is no variance, and is added to the margin as far as the two errors do not share it.
    """
    model, baseline = estimates
    max_error = get_notion(model.notion).max_error(model.norm)
    rho = correlation or 0.0
    value = model.value - baseline.value
    lower, upper = _margin(model, baseline, rho), _margin(baseline, model, rho)
    bias, margin = lower if value > 0 else upper
    # The normal quantile at which the interval would end at 0.
    quantile = NormalDist().inv_cdf(0.5 + model.level / 2)
    z = quantile * max(abs(value) - bias, 0.0) / margin if margin > 0 else 0.0
    return ErrorDifference(
        model=names[0],
        baseline=names[1],
        value=value,
        low=max(-max_error, value - sum(lower)),
        high=min(max_error, value + sum(upper)),
        level=model.level,
        p_value=float(erfc(z / sqrt(2))),
        correlation=rho,
        paired=correlation is not None,
    )


def _margin(minuend: Estimate, subtrahend: Estimate, rho: float) -> tuple[float, float]:
    """Return how much less a difference may be than estimated: by bias, and by chance."""
    (bias, *first), (_, *second) = _arms(minuend), _arms(subtrahend)
    unshared = sqrt(1 - rho * rho) if rho > 0 else 1.0
    return unshared * bias, _chance_margin(first, second, rho)


def _arms(estimate: Estimate) -> tuple[float, float, float]:
    """Return the bias of an estimate, and the random parts of the margins below and above it.

    A calibrated model has the error `null.mean` on average; the bias falls as the true error grows.
    """
    below = estimate.value - estimate.low
    bias = min(hypot(estimate.low, estimate.null.mean) - estimate.low, below)
    return bias, below - bias, estimate.high - estimate.value


def _chance_margin(first: Sequence[float], second: Sequence[float], rho: float) -> float:
    """Return how much a difference first - second may fall by chance, from the margins below and above each.

    The errors are off by margins times normal deviates of this correlation, each by the margin of its side.
    The largest fall lies where the ellipse of the deviates touches that of one side each, or has a zero.

    >>> round(_chance_margin((3, 1), (2, 4), 0.0), 6), round(_chance_margin((3, 1), (3, 1), 1.0), 6)
    (5.0, 0.0)
    """
    s = sqrt(1 - rho * rho)
    angles = [atan2(b * s, b * rho - a) for a in first for b in second]
    angle = np.array([*angles, pi / 2, -pi / 2, atan2(-rho, s), atan2(rho, -s)])
    z1, z2 = np.cos(angle), rho * np.cos(angle) + s * np.sin(angle)
    fall = np.where(z2 < 0, *second) * z2 - np.where(z1 < 0, *first) * z1
    return float(max(fall.max(), 0.0))


def _mover_margin(a: float, b: float, rho: float) -> float:
    """Return the margin of a difference from the margins of its terms and their correlation."""
    return sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0))


def _correlation(a: Array, b: Array, weight: Array | None) -> float:
    """Return the weighted correlation; 0 if either variable is constant."""
    w = np.ones(a.size) if weight is None else weight
    w = w / w.sum()
    a, b = a - w @ a, b - w @ b
    scale = np.sqrt((w @ (a * a)) * (w @ (b * b)))
    return float(np.clip((w @ (a * b)) / scale, -1.0, 1.0)) if scale > 0 else 0.0
