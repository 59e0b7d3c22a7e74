"""Calibration error that the default map leaves on new rows: its posterior expectation.

A map that was fitted to few rows is wrong at random. The posterior that the map averages says by how much:
for each draw of the true frequencies, the error is the mean distance between them and the map. The method is
described in docs/methods/calibrators.md, "Error after recalibration".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.inputs import Predictions, select_rows
from calibrant.maps.binary import BinaryProblem, average_or_identity
from calibrant.maps.calibrator import Calibrator
from calibrant.maps.forms import Form
from calibrant.maps.multiclass import SoftmaxMap
from calibrant.posterior.log_odds import FittedComponents
from calibrant.posterior.log_odds.cells import expit, log_odds
from calibrant.posterior.log_odds.model_average import ScoreDeviations
from calibrant.score_data import Array
from calibrant.tasks import Notion

# Posterior draws of a map of one score, and their seed, fixed so that they depend on the data only.
DRAWS, SEED = 200, 20261120
# Numbers of a matrix of scores that are looked at, which bounds the cost.
MOST_NUMBERS = 1_000_000
# Rows of a bin of scores over which deviations are averaged, and least and largest number of bins.
BIN_ROWS, LEAST_BINS, MOST_BINS = 10, 10, 50


class RemainingError(NamedTuple):
    """Posterior draws of the calibration error of mapped scores, with their weights.

    Attributes
    ----------
    error, weight : arrays (draws,)
    ratio : array (draws,) or None
        Sum of the mapped scores over the expected number of outcomes; None unless one class is evaluated.
    """

    error: Array
    weight: Array
    ratio: Array | None

    @classmethod
    def of(cls, calibrator: Calibrator, data: Predictions, notion: Notion) -> RemainingError | None:
        """Draw the error that a default calibrator leaves of the rows it was fitted to; None of the identity.

        >>> from calibrant.inputs import predictions
        >>> from calibrant.tasks import get_notion
        >>> rng = np.random.default_rng(0)
        >>> score = rng.random(1000)
        >>> data = predictions(rng.random(1000) < score**2, score)
        >>> left = RemainingError.of(Calibrator()._fit_predictions(data), data, get_notion("binary"))
        >>> new = rng.random(10_000)
        >>> true = np.mean(abs(new**2 - Calibrator()._fit_predictions(data).predict_proba(new)))
        >>> bool(0.5 < left.error.mean() / true < 2)
        True
        """
        if calibrator._multiclass is not None:
            return cls.of_classes(calibrator._multiclass, data, notion)
        mapped, mass, drawn = _frequencies(calibrator._problems[0], calibrator._forms[0])
        if notion.top:
            # The two classes share the scale of the confidence.
            side = np.where(mapped > 0.5, 1.0, -1.0)
            deviation, score = (drawn - mapped) * side * mass, np.maximum(mapped, 1 - mapped)
            error = _binned(score[:, None], deviation.T[..., None], mass)[:, 0]
        else:
            error = np.abs(drawn - mapped) @ mass / mass.sum()
        ratio = (mapped @ mass) / (drawn @ mass) if notion.is_binary else None
        return cls(error, np.full(len(error), 1 / len(error)), ratio)

    @classmethod
    def of_classes(cls, fitted: SoftmaxMap, data: Predictions, notion: Notion) -> RemainingError | None:
        """Draw the error of a map of three or more classes."""
        if fitted.untouched == 1:
            return None
        every = -(-data.score.size // MOST_NUMBERS)
        data = select_rows(data, np.arange(len(data.code)) % every == 0)
        score = data.score.astype(np.float64, copy=False)
        mass = np.ones(len(score)) if data.weight is None else data.weight / data.weight.mean()
        mapped = fitted.probability(score)
        first = _compared(mapped, mapped, notion, data.positive)
        weights, errors, ratios = [], [], []
        for weight, probability in fitted.components(score):
            drawn = _compared(probability, mapped, notion, data.positive)
            weights.append(weight)
            errors.append(_binned(first, ((drawn - first) * mass[:, None])[:, None], mass).mean())
            ratios.append((first.T @ mass).sum() / (drawn.T @ mass).sum())
        return cls(np.array(errors), np.array(weights), np.array(ratios) if notion.is_binary else None)

    @property
    def mean(self) -> float:
        """The expected error."""
        return float(self.weight @ self.error / self.weight.sum())

    def quantile(self, share: float) -> float:
        """Return a quantile of the error."""
        order = np.argsort(self.error)
        upto = np.cumsum(self.weight[order]) - self.weight[order] / 2
        return float(np.interp(share, upto / self.weight.sum(), self.error[order]))

    @property
    def factor(self) -> float | None:
        """How many times too high or too low the mapped scores are on average, at least 1."""
        if self.ratio is None:
            return None
        return float(np.exp(self.weight @ np.abs(np.log(self.ratio)) / self.weight.sum()))


def _frequencies(problem: BinaryProblem, form: Form) -> tuple[Array, Array, Array]:
    """Return mapped scores, their mass, and posterior draws of the frequencies, (draws, scores)."""
    rng = np.random.default_rng(SEED)
    observed = problem.independent
    fitted = FittedComponents.of(observed)
    x, logits = fitted.cells.x, fitted.draws(rng, DRAWS)
    if not problem.repeated.any():
        return form.probability(expit(x)), fitted.cells.trials, expit(logits)
    at = log_odds(observed.score, fitted.cells.least)
    drawn = expit(np.stack([at + np.interp(at, x, each - x) for each in logits]))
    steps = observed[problem.repeated]
    smooth = average_or_identity(observed, problem.average)
    effects = ScoreDeviations.of(steps, smooth.probability(steps.score))
    scattered = rng.random(DRAWS) < expit(np.array(effects.log_bayes_factor))
    drawn[np.ix_(scattered, problem.repeated)] = effects.draws(rng, int(scattered.sum()))
    return form.probability(observed.score), observed.mass, drawn


def _compared(probability: Array, mapped: Array, notion: Notion, positive: int | None) -> Array:
    """Return the probabilities of the events that a notion compares with mapped scores, (rows, events)."""
    if notion.classwise:
        return probability
    if not notion.top:
        assert positive is not None
        return probability[:, [positive]]
    largest = np.argsort(-mapped, axis=1, kind="stable")[:, : notion.top]
    return np.take_along_axis(probability, largest, axis=1).sum(axis=1, keepdims=True)


def _binned(score: Array, deviation: Array, mass: Array) -> Array:
    """Return the mean absolute deviation of bins of neighbouring scores, (draws, events).

    Parameters
    ----------
    score : array (rows, events)
    deviation : array (rows, draws, events)
        Deviations times the mass of the rows.
    mass : array (rows,)
    """
    rows = len(score)
    bins = min(rows, int(np.clip(rows // BIN_ROWS, LEAST_BINS, MOST_BINS)))
    starts = np.arange(bins) * rows // bins
    ordered = np.take_along_axis(deviation, np.argsort(score, axis=0, kind="stable")[:, None], axis=0)
    return np.asarray(np.abs(np.add.reduceat(ordered, starts, axis=0)).sum(axis=0) / mass.sum())
