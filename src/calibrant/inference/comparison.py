"""Paired comparison of the calibration errors of several models on the same labels.

The interval of a difference combines the intervals of docs/methods/confidence-intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from calibrant import inputs
from calibrant.estimators import EstimatorLike, Norm
from calibrant.inference.canonical import contributions_of_rows
from calibrant.inference.clusters import by_cluster
from calibrant.inference.estimate import estimate, influence, signs
from calibrant.inference.result import LEAST_P, Estimate, estimate_table
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Bounds, Level, Probability, check_order
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import about, p_value, percent, sample_size, short, with_ends, with_interval
from calibrant.parallel import one_blas_thread
from calibrant.posterior import posterior_of
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks import CalibrationTask, get_notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Range of the differences between two errors.
CHANGE = Bounds(-2, 2, slack=ROUNDING)
UNEQUAL = (
    "The error of {!r} is much less certain than that of {!r} (its interval is {:.1f} times as wide): a "
    "smaller estimate is weak evidence that it is better calibrated."
)


@dataclass(frozen=True)
class ErrorDifference(Printed, Serializable):
    """Calibration error of a model minus that of a baseline on the same labels.

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
        Correlation of the contributions of the rows to the two errors.
    """

    model: str
    baseline: str
    value: Annotated[float, CHANGE]
    low: Annotated[float, CHANGE]
    high: Annotated[float, CHANGE]
    level: Level
    p_value: Probability
    correlation: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]

    def _printed(self) -> Iterator[Block]:
        difference = with_interval(self.value, self.low, self.high, self.level, "+")
        yield f"{short(self.model, 12)} - {short(self.baseline, 12)}", difference
        yield "test", f"{p_value(self.p_value, LEAST_P, '<')} (H0: equal calibration errors)"

    def __repr__(self) -> str:
        value, low, high = with_ends(self.value, self.low, self.high, "+")
        return f"Difference({self.model} - {self.baseline}, {value} [{low}, {high}])"

    def _check_fields(self) -> None:
        """Raise an error for an interval that does not contain the value."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class Comparison(Printed, Serializable):
    """Estimates of several models on the same labels, and their paired differences from a baseline.

    Attributes
    ----------
    estimates : mapping from name to Estimate
    differences : mapping from name to ErrorDifference
        For every model but the baseline.
    baseline : str
    """

    estimates: Mapping[str, Estimate]
    differences: Mapping[str, ErrorDifference]
    baseline: str

    @property
    def cautions(self) -> tuple[str, ...]:
        """Cautions about intervals much wider or narrower than that of the baseline."""
        reference = self.estimates[self.baseline]
        return tuple(
            UNEQUAL.format(*names, ratio)
            for name, result in self.estimates.items()
            for ratio, *names in (_width_ratio((name, result), (self.baseline, reference)),)
            if ratio > REPORT.width_ratio
        )

    def _printed(self) -> Iterator[Block]:
        yield estimate_table("model", list(self.estimates.items()))
        first, rows = self.estimates[self.baseline], []
        for name, each in self.differences.items():
            value, low, high = with_ends(each.value, each.low, each.high, "+")
            p = p_value(each.p_value, LEAST_P, "<").removeprefix("p ").removeprefix("= ")
            rows.append([f"{name} - {self.baseline}", value, f"{low} to {high}", p])
        yield Table(["models", "difference", f"{percent(first.level)} interval", "p"], rows, names=1)
        yield "tests", "H0: the model is calibrated; H0: equal calibration errors"
        yield "notion", about(first.notion, first.label)
        yield "estimator", first.estimator
        yield "data", sample_size(first.n, first.clusters)
        for name, model in self.estimates.items():
            yield from (f"{name}: {caution}" for caution in (*model.remarks, *model.cautions))
        yield from self.cautions

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.estimates)}; baseline {self.baseline})"

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the errors and the differences from the baseline; see `calibrant.plot.compare`."""
        from calibrant import plot

        return plot.compare(self, ax, **options)

    def _check_fields(self) -> None:
        """Raise an error unless there is one difference for every model except the baseline."""
        if {*self.differences, self.baseline} != {*self.estimates} or self.baseline in self.differences:
            rule = f"hold a difference from {self.baseline!r} for every other model"
            raise InputError("differences", rule, tuple(self.differences))


def _width_ratio(
    first_estimate: tuple[str, Estimate], second_estimate: tuple[str, Estimate]
) -> tuple[float, str, str]:
    """Return the ratio of the widths of two intervals, and their names, the wider first."""
    (first, a), (second, b) = first_estimate, second_estimate
    wide, narrow = a.high - a.low, b.high - b.low
    if wide < narrow:
        (first, wide), (second, narrow) = (second, narrow), (first, wide)
    return wide / max(narrow, 1e-12), first, second


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
) -> Comparison:
    """Compare models by the same notion on the same rows; `step` is called to report progress."""
    estimates = {}
    for name, task in tasks.items():
        with inputs.within(f"model {name!r}"):
            options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": rng}
            estimates[name] = estimate(task, step=step, n_resamples=n_resamples, **options)
        step()
    row_contributions = {name: contributions(task) for name, task in tasks.items()}
    weight, code = tasks[baseline].weight, tasks[baseline].cluster
    weight = None if weight is None else weight.astype(np.float64)
    if code is not None and tasks[baseline].designs is not None:
        # Contributions are summed by cluster, because only clusters are independent.
        row_contributions = {name: by_cluster(rows, code, weight) for name, rows in row_contributions.items()}
        weight = None
    differences = {
        name: difference(
            (name, baseline),
            (result, estimates[baseline]),
            (row_contributions[name], row_contributions[baseline]),
            weight,
        )
        for name, result in estimates.items()
        if name != baseline
    }
    return Comparison(MappingProxyType(estimates), MappingProxyType(differences), baseline)


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
    contributions_pair: tuple[Array, Array],
    weight: Array | None,
) -> ErrorDifference:
    """Return the interval of a difference from two intervals and the correlation of the estimates.

    The variance of each estimate is recovered from the limit of its interval on the relevant side (MOVER, Zou
    and Donner), so that the asymmetry of the intervals is kept.
    """
    model, baseline = estimates
    max_error = get_notion(model.notion).max_error(model.norm)
    rho = _correlation(*contributions_pair, weight)
    value = model.value - baseline.value
    lower_margin = _mover_margin(model.value - model.low, baseline.high - baseline.value, rho)
    upper_margin = _mover_margin(model.high - model.value, baseline.value - baseline.low, rho)
    margin = lower_margin if value > 0 else upper_margin
    z = NormalDist().inv_cdf(0.5 + model.level / 2) * abs(value) / margin if margin > 0 else 0.0
    return ErrorDifference(
        model=names[0],
        baseline=names[1],
        value=value,
        low=max(-max_error, value - lower_margin),
        high=min(max_error, value + upper_margin),
        level=model.level,
        p_value=float(erfc(z / sqrt(2))),
        correlation=rho,
    )


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
