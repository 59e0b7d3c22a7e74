"""Two or more models on the same labels: is one better calibrated than the other?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import erfc, sqrt
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from calibrant import inputs
from calibrant.compiled.blas import one_blas_thread
from calibrant.estimators import EstimatorLike, Norm
from calibrant.inference.canonical import added
from calibrant.inference.clusters import by_cluster
from calibrant.inference.estimate import estimate, influence, signs
from calibrant.inference.result import Estimate
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import Bounds, Level, Probability, check_order
from calibrant.inputs.wording import percent
from calibrant.posterior import posterior_of
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Differences between errors.
CHANGE = Bounds(-2, 2, slack=ROUNDING)
# Intervals that differ by this factor in width are of errors that are not equally visible.
WIDER = 2.0
UNEQUAL = (
    "The error of {!r} is much less certain than that of {!r} (its interval is {:.1f} times as wide): a "
    "smaller estimate is weak evidence that it is better calibrated."
)


@dataclass(frozen=True)
class Difference(Serializable):
    """Calibration error of a model less that of another on the same labels.

    Attributes
    ----------
    model, baseline : str
    value : float
        Difference of the two estimates; negative where the model is better calibrated.
    low, high : float
        Interval for the true difference.
    p_value : float
        Of the hypothesis that both have the same error.
    correlation : float
        Of what each row adds to the two errors.
    """

    model: str
    baseline: str
    value: Annotated[float, CHANGE]
    low: Annotated[float, CHANGE]
    high: Annotated[float, CHANGE]
    level: Level
    p_value: Probability
    correlation: Annotated[float, Bounds(-1, 1, slack=ROUNDING)]

    def __str__(self) -> str:
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        return (
            f"{self.model} - {self.baseline}: {self.value:+.4f} [{self.low:+.4f}, {self.high:+.4f}] "
            f"at {percent(self.level)}; {p} (H0: equal errors)"
        )

    def __repr__(self) -> str:
        ends = f"[{self.low:+.4f}, {self.high:+.4f}]"
        return f"Difference({self.model} - {self.baseline}, {self.value:+.4f} {ends})"

    def check_fields(self) -> None:
        """Refuse an interval that does not hold the value."""
        check_order(self, "low", "value", "high")


@dataclass(frozen=True)
class Comparison(Serializable):
    """Estimates of several models on the same labels, and their paired differences from a baseline.

    Attributes
    ----------
    estimates : mapping from name to Estimate
    differences : mapping from name to Difference
        For every model but the baseline.
    baseline : str
    """

    estimates: Mapping[str, Estimate]
    differences: Mapping[str, Difference]
    baseline: str

    @property
    def cautions(self) -> tuple[str, ...]:
        """Sentences about errors that are much less certain than that of the baseline, or the reverse."""
        reference = self.estimates[self.baseline]
        return tuple(
            UNEQUAL.format(*names, ratio)
            for name, result in self.estimates.items()
            for ratio, *names in (_less_certain((name, result), (self.baseline, reference)),)
            if ratio > WIDER
        )

    def __str__(self) -> str:
        lines = [f"{name}: {estimate}" for name, estimate in self.estimates.items()]
        return "\n".join([*lines, *map(str, self.differences.values()), *self.cautions])

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.estimates)}; baseline {self.baseline})"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the errors and the differences from the baseline; see `calibrant.plot.comparison`."""
        from calibrant import plot

        return plot.comparison(self, ax)

    def check_fields(self) -> None:
        """Refuse other differences than one from the baseline for every other model."""
        if {*self.differences, self.baseline} != {*self.estimates} or self.baseline in self.differences:
            rule = f"hold a difference from {self.baseline!r} for every other model"
            raise InputError("differences", rule, tuple(self.differences))


def _less_certain(one: tuple[str, Estimate], other: tuple[str, Estimate]) -> tuple[float, str, str]:
    """Return how many times as wide the wider of two intervals is, and the names, the wider one first."""
    (first, a), (second, b) = one, other
    wide, narrow = a.high - a.low, b.high - b.low
    if wide < narrow:
        (first, wide), (second, narrow) = (second, narrow), (first, wide)
    return wide / max(narrow, 1e-12), first, second


@one_blas_thread()
def compare_questions(
    tasks: Mapping[str, CalibrationTask],
    baseline: str,
    *,
    estimator: EstimatorLike = "auto",
    norm: Norm = "l1",
    level: float = 0.95,
    rng: Any = None,
    step: Callable[[], object] = lambda: None,
    n_resamples: int | None = None,
) -> Comparison:
    """Compare models by the same question about each, of the same rows; `step` counts what is done."""
    estimates = {}
    for name, task in tasks.items():
        with inputs.within(f"model {name!r}"):
            options: dict[str, Any] = {"estimator": estimator, "norm": norm, "level": level, "rng": rng}
            estimates[name] = estimate(task, step=step, n_resamples=n_resamples, **options)
        step()
    added = {name: contributions(task) for name, task in tasks.items()}
    weight, code = tasks[baseline].weight, tasks[baseline].cluster
    weight = None if weight is None else weight.astype(np.float64)
    if code is not None and tasks[baseline].designs is not None:
        # The clusters of one model are numbered by its own rows.
        added = {name: by_cluster(rows, code, weight) for name, rows in added.items()}
        weight = None
    differences = {
        name: difference(
            (name, baseline), (result, estimates[baseline]), (added[name], added[baseline]), weight
        )
        for name, result in estimates.items()
        if name != baseline
    }
    return Comparison(MappingProxyType(estimates), MappingProxyType(differences), baseline)


def contributions(task: CalibrationTask) -> Array:
    """Return what each row adds to the error of a model: its residuals, signed by the gap at their scores."""
    if task.notion.canonical:
        return added(task) if len(task.labels) > 2 else contributions(task.about_class(1))
    posterior, rows = posterior_of(task), task.rows
    if task.notion.classwise and rows is not None:
        return np.asarray(influence(posterior, rows, np.arange(rows.n)).mean(axis=1))
    score, outcome, _ = next(iter(task.problems[0].rows()))
    return np.asarray(signs(posterior, 0, score) * (outcome - score))


def difference(
    names: tuple[str, str],
    estimates: tuple[Estimate, Estimate],
    added: tuple[Array, Array],
    weight: Array | None,
) -> Difference:
    """Join two intervals and the correlation of the estimates to an interval of the difference.

    The variance of each estimate is recovered from the limits of its own interval, on the side that
    matters (Zou and Donner's method), so the joined interval leans as they do.
    """
    model, baseline = estimates
    most = named(model.notion).most(model.norm)
    rho = _correlation(*added, weight)
    value = model.value - baseline.value
    down = _joined(model.value - model.low, baseline.high - baseline.value, rho)
    up = _joined(model.high - model.value, baseline.value - baseline.low, rho)
    side = down if value > 0 else up
    z = NormalDist().inv_cdf(0.5 + model.level / 2) * abs(value) / side if side > 0 else 0.0
    return Difference(
        model=names[0],
        baseline=names[1],
        value=value,
        low=max(-most, value - down),
        high=min(most, value + up),
        level=model.level,
        p_value=float(erfc(z / sqrt(2))),
        correlation=rho,
    )


def _joined(a: float, b: float, rho: float) -> float:
    """Return the reach of a difference whose terms reach as far as a and b."""
    return sqrt(max(a * a + b * b - 2 * rho * a * b, 0.0))


def _correlation(a: Array, b: Array, weight: Array | None) -> float:
    """Return the weighted correlation; 0 where either does not vary."""
    w = np.ones(a.size) if weight is None else weight
    w = w / w.sum()
    a, b = a - w @ a, b - w @ b
    scale = np.sqrt((w @ (a * a)) * (w @ (b * b)))
    return float(np.clip((w @ (a * b)) / scale, -1.0, 1.0)) if scale > 0 else 0.0
