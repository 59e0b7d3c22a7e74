"""What to do about it: how much a calibration map takes away on rows that it has not learned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from calibrant.assessment.decomposition import FOLDS, Score, log_loss_of_classes, of_event
from calibrant.curves import ReliabilityCurve, curve_of
from calibrant.inference.interval_estimate import Extended, IntervalEstimate
from calibrant.inference.map_comparison import log_loss_of_rows, mean_of_rows
from calibrant.inference.result import Estimate
from calibrant.inputs import Array, Predictions, Serializable, select_rows
from calibrant.inputs.codec import Bounds, Number, Probability, Size
from calibrant.maps import Calibrator
from calibrant.maps.folds import content_order, cross_fitted, joined, mapped, rows_in_folds
from calibrant.maps.multiclass import (
    SoftmaxMap,
    fit_temperature,
    newton_slope,
    slope_derivatives,
    slope_doubt,
)
from calibrant.maps.remaining import RemainingError
from calibrant.posterior import posterior_of
from calibrant.score_data.simplex import Simplex
from calibrant.tasks import CalibrationTask, Notion, get_notion

# Rows that are looked at: of one score, and of many classes so many numbers in all.
MOST_ROWS, MOST_NUMBERS = 200_000, 100_000
# Classes beyond which fitting "auto" takes too long, and only a temperature is tried, on so many numbers.
MOST_CLASSES, MOST_TEMPERED = 100, 10_000_000

#: What waits for the rows that a map was fitted for.
Fitted = Callable[[], Predictions]


class FittedMaps(NamedTuple):
    """What waits for fitted maps.

    Attributes
    ----------
    mapped : mapping
        By the name of a method, the rows with the scores that maps of the other folds give them.
    remaining : callable
        Returns the error that the map of all rows leaves.
    """

    mapped: Mapping[str, Fitted]
    remaining: Callable[[], RemainingError | None]


@dataclass(frozen=True, eq=False)
class RecalibrationGain(Serializable):
    """What recalibrating would do, cross-validated.

    Attributes
    ----------
    gain : Measured
        What the map `method` takes away from the log loss of a row, with its interval; infinite where it
        makes an infinite one finite.
    excess : float or None
        What the best recalibration in hindsight would take away, if that is known.
    before : float
        The calibration error of the headline as it is.
    after : IntervalEstimate
        The calibration error that the map, fitted to all these rows, is expected to leave on new rows, with a
        posterior interval.
    temperature : float or None
        The number that log-odds are best divided by; of more than two classes, fitted to all rows.
    by_temperature : float
        What that alone takes away from the log loss of a row.
    curve : ReliabilityCurve or None
        That of the mapped scores, where they are better; class-wise, of the class that was furthest off.
    rows, folds : int
        How many rows were looked at, in how many folds.
    ratio : float or None
        How many times too high or too low the mapped scores are expected to be on average, at least 1; None
        for notions without a positive class.
    command, apply_command : str or None
        What to type on the command line to fit the map, and to apply it.
    method : str
        The map: "auto", and beyond 100 classes "temperature".
    """

    gain: IntervalEstimate
    excess: Extended | None
    before: Probability
    after: IntervalEstimate
    temperature: Size | None
    by_temperature: Extended
    curve: ReliabilityCurve | None
    rows: Number
    folds: Annotated[int, Bounds(2)]
    command: str | None = None
    method: str = "auto"
    apply_command: str | None = None
    ratio: Extended | None = None

    @property
    def helps(self) -> bool:
        """Whether recalibrating improves the scores significantly."""
        return self.gain.low > 0


@dataclass(frozen=True, eq=False)
class CrossFit:
    """Rows that maps are tried on, each in a fold that is mapped by what the others taught."""

    data: Predictions
    fold: Array
    # Returns the temperature map of more than two classes, fitted to all rows, or None.
    tempered: Callable[[], SoftmaxMap | None]

    @classmethod
    def of(cls, data: Predictions, seed: int, tempered: Callable[[], SoftmaxMap | None]) -> CrossFit | None:
        """Divide the rows; None of too few to learn and to judge."""
        data = _subsample(data)
        n_units = data.n_rows if data.cluster is None else int(data.cluster.max()) + 1
        if n_units < 2 * FOLDS or data.code.min() == data.code.max():
            return None
        return cls(*rows_in_folds(data, FOLDS, np.random.default_rng(seed)), tempered)

    @property
    def temperature(self) -> float | None:
        """The number that log-odds are best divided by."""
        if (tempered := self.tempered()) is not None:
            return 1 / tempered.slope
        return Calibrator("temperature")._fit_predictions(self.data).temperature_

    def fit(self, begin: Callable[[Callable[[], Any]], Callable[[], Any]], notion: Notion) -> FittedMaps:
        """Begin to fit the maps, and return what waits for them; errors are those of a notion."""
        remaining = begin(partial(self._remaining, notion))
        if len(self.data.labels) > MOST_CLASSES:
            return FittedMaps({"temperature": begin(self._tempered)}, remaining)

        def cross_fitted(method: str) -> Fitted:
            folds = range(int(self.fold.max()) + 1)
            parts = [begin(partial(mapped, self.data, method, self.fold, k)) for k in folds]
            return lambda: joined(self.data, self.fold, (fold_scores() for fold_scores in parts))

        return FittedMaps({method: cross_fitted(method) for method in ("auto", "temperature")}, remaining)

    def _remaining(self, notion: Notion) -> RemainingError | None:
        """Return the error that the map of all rows leaves."""
        data = self.data
        if (start := self.tempered()) is None or len(data.labels) <= MOST_CLASSES:
            return RemainingError.of(Calibrator()._fit_predictions(data), data, notion)
        rows = Simplex.of(data.score, data.code, data.weight, counts=data.counts)
        return RemainingError.of_classes(replace(start, doubt=slope_doubt(rows, start)), data, notion)

    def _tempered(self) -> Predictions:
        """Return the rows, each fold at the temperature of the others: one Newton step from that of all."""
        start, data = self.tempered(), self.data
        assert start is not None
        weight = np.ones(len(data.code)) if data.weight is None else data.weight
        sums = [
            (by_fold := np.bincount(self.fold, weight * each)).sum() - by_fold
            for each in slope_derivatives(start, data.score, data.code)
        ]
        slopes = newton_slope(start.slope, *sums)
        score = data.score.astype(np.float64, copy=False)
        mapped = (replace(start, slope=a).tempered(score[self.fold == k]) for k, a in enumerate(slopes))
        return joined(data, self.fold, mapped)


def recalibration_gain(
    trial: CrossFit,
    fitted: FittedMaps,
    headline: Notion,
    scores: Sequence[Score],
    *,
    before: Estimate,
    worst: int,
    level: float,
) -> RecalibrationGain:
    """Return what recalibrating would do.

    `fitted` waits for the maps of the rows of the trial, and `before` is the headline's error. The scores of
    the assessment say what could be gained. `worst` is the class whose curve is drawn if there are several.
    """
    data, method = trial.data, "auto" if "auto" in fitted.mapped else "temperature"
    mapped, tempered = (fitted.mapped[name]() for name in (method, "temperature"))
    gain, by_temperature = (
        mean_of_rows(data, _loss_reduction(data, calibrated), level) for calibrated in (mapped, tempered)
    )
    logs = [score for score in scores if score.name == "log loss"]
    excess = next((s.calibration for s in logs if s.about == "all classes"), None)
    if excess is None and logs:
        excess = logs[0].calibration
    recalibrated = CalibrationTask.of(mapped, headline)
    curve = _curve(recalibrated, mapped, worst, level) if gain.low > 0 else None
    remaining = fitted.remaining()
    return RecalibrationGain(
        gain=gain, excess=excess, before=before.value, after=_after(remaining, recalibrated, before, level),
        temperature=trial.temperature, by_temperature=by_temperature.value, curve=curve, rows=data.n_rows,
        folds=int(trial.fold.max()) + 1, method=method, ratio=None if remaining is None else remaining.factor,
    )  # fmt: skip


def _after(
    remaining: RemainingError | None, held_out: CalibrationTask, before: Estimate, level: float
) -> IntervalEstimate:
    """Return the error that the map of all rows is expected to leave.

    It has two parts. The random one comes from the posterior of the map. The systematic one, a gap that maps
    of this kind do not fit, is the gap of the held-out rows, as far as these show one: maps of several folds
    are wrong at random in different directions, so their random errors are hardly in it.
    """
    if remaining is None:  # the scores stay as they are
        return IntervalEstimate(before.value, before.low, before.high)
    posterior = posterior_of(held_out)
    gaps = (posterior.points(k) for k in range(len(posterior.z)))
    errors = np.array([np.abs(points.gap) @ points.mass / points.mass.sum() for points in gaps])
    errors *= np.maximum(1 - np.exp(-posterior.log_bayes_factor), 0.0)
    systematic = held_out.notion.combine(errors, "l1", held_out.shares)
    ends = (remaining.quantile(share) for share in ((1 - level) / 2, (1 + level) / 2))
    value, low, high = (min(float(np.hypot(x, systematic)), 1.0) for x in (remaining.mean, *ends))
    return IntervalEstimate(value, min(low, value), max(high, value))


def excess_log_loss(data: Predictions, *, level: float, seed: int) -> IntervalEstimate | None:
    """Return the log loss per row that recalibration removes; None of too few rows, or of one class.

    Value and lower end are those of a cross-fitted map. This map is worse than the best one, so the upper end
    is at least that of the best recalibration in hindsight, with the same margin.

    >>> from calibrant.inputs import predictions
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(1000)
    >>> data = predictions(rng.random(1000) < score**2, score)
    >>> found = excess_log_loss(data, level=0.95, seed=0)
    >>> [round(v, 2) for v in (found.value, found.low, found.high)]
    [0.07, 0.05, 0.11]
    """
    trial = CrossFit.of(data, seed, lambda: None)
    if trial is None:
        return None
    data = trial.data
    calibrated = cross_fitted(data, "auto" if len(data.labels) <= MOST_CLASSES else "temperature", trial.fold)
    gain = mean_of_rows(data, _loss_reduction(data, calibrated), level)
    if not np.isfinite(gain.value):
        return gain
    if len(data.labels) == 2:
        positive = data.positive if data.score.ndim == 1 else 1
        task = CalibrationTask.of(replace(data, positive=positive), get_notion("binary"))
        hindsight = of_event(task.problems[0], "")[1].calibration
    else:
        rows = Simplex.of(data.score, data.code, data.weight, counts=data.counts)
        hindsight = log_loss_of_classes(rows, fit_temperature(rows), data.cluster).calibration
    high = max(gain.high, hindsight + gain.high - gain.value)
    return IntervalEstimate(max(gain.value, 0.0), max(gain.low, 0.0), max(high, 0.0))


def _subsample(data: Predictions) -> Predictions:
    """Return the rows, or a share of very many, evenly spread over their content; clusters stay whole."""
    n, classes = len(data.code), len(data.labels)
    numbers = MOST_NUMBERS if classes <= MOST_CLASSES else MOST_TEMPERED
    every = -(-n // (MOST_ROWS if classes == 2 else max(1, numbers // classes)))
    if every == 1:
        return data
    order = content_order(data)
    selected = np.zeros(order.size, dtype=bool)
    selected[order[::every]] = True
    return select_rows(data, selected if data.cluster is None else selected[data.cluster])


def _loss_reduction(data: Predictions, calibrated: Predictions) -> Array:
    """Return the log loss that each row gains; where both losses are infinite, nothing."""
    before, after = log_loss_of_rows(data), log_loss_of_rows(calibrated)
    return np.subtract(before, after, out=np.zeros(len(before)), where=before != after)


def _curve(task: CalibrationTask, data: Predictions, worst: int, level: float) -> ReliabilityCurve:
    """Return the curve of a question, or of the class that is furthest off where it has several."""
    if task.notion.classwise:
        data = data if data.score.ndim == 1 else replace(data, positive=worst)
        task = CalibrationTask.of(data, get_notion("binary"))
    curve = curve_of(task, level=level)
    assert isinstance(curve, ReliabilityCurve)
    return curve
