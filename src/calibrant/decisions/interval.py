"""Confidence intervals of the decision regret and of the gains that recover it.

All of them are computed from one set of held-out gains and one posterior. The method is described in
docs/methods/decision-regret.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.decisions.binary import BinaryDecisions, CostLines, Gain
from calibrant.decisions.cost import Cost
from calibrant.inference.interval_estimate import interval_deviate
from calibrant.score_data import Array
from calibrant.tasks import CalibrationTask, cached_on_task

# Sets of normal deviates for a simultaneous band, and their seed.
BAND_DATA_SETS, SEED = 1000, 20240714


class RegretIntervals(NamedTuple):
    """Decision regret of each decision with its confidence interval, and the gains that recover it.

    Attributes
    ----------
    value, low, high : arrays
        Regret and its interval. Value and ends are never below those of `recalibrated` and `threshold`.
    recalibrated : Gain
        Gain of acting on recalibrated scores, on held-out rows.
    threshold : Gain or None
        Gain of the best threshold, on held-out rows; only if there are two actions.
    as_is : array
        Cost of acting on the scores as they are.
    deviate : float
        Half-width of the interval of a gain, in standard errors.
    """

    value: Array
    low: Array
    high: Array
    recalibrated: Gain
    threshold: Gain | None
    as_is: Array
    deviate: float

    @property
    def z(self) -> Array:
        """The largest held-out gain divided by its standard error."""
        gains = [gain for gain in (self.recalibrated, self.threshold) if gain is not None]
        return np.max([gain.mean / gain.error for gain in gains], axis=0)


class CostIntervals(NamedTuple):
    """One cost of a binary task with its regret, from which all numbers of the decision come."""

    lines: CostLines
    decisions: BinaryDecisions
    regret: RegretIntervals


@cached_on_task
def cost_intervals(task: CalibrationTask, cost: Cost, level: float) -> CostIntervals:
    """Estimate the regret of the scores at this cost."""
    lines = CostLines.of(cost)
    decisions = BinaryDecisions.of(task, lines.changes)
    return CostIntervals(lines, decisions, regret_intervals(decisions, lines, level))


def regret_intervals(
    decisions: BinaryDecisions, lines: CostLines, level: float, *, simultaneous: bool = False
) -> RegretIntervals:
    """Return an interval for the regret of each decision, or a simultaneous band over all decisions.

    The expected gain of any other policy is a lower bound of the regret. The interval uses two such policies,
    recalibration and the best threshold, both evaluated on held-out rows.

    - The estimate is the largest of the regret against the scores recalibrated on all rows and of both gains.
    - The lower end is the larger of the lower ends of both gains.
    - The upper end is the largest of the upper ends of both gains, the upper quantile of the posterior, and
      the largest gain of blocks of neighbouring rows that is compatible with noise.
    """
    actions = lines.optimal_actions(decisions.parts.score)
    recalibrated = decisions.gain(lines, actions, decisions.recalibrated(lines))
    threshold = None
    if lines.no.shape[1] == 2:
        threshold = decisions.gain(lines, actions, decisions.best_threshold(lines))
    gains = [recalibrated] if threshold is None else [recalibrated, threshold]
    usual = interval_deviate(level, decisions.clusters)
    deviate = _band_deviate(decisions, lines, recalibrated, level) if simultaneous else usual
    upper = np.quantile(decisions.regret_draws(lines), (1 + level) / 2, axis=1, method="inverted_cdf")
    posterior = decisions.regret(lines, decisions.posterior_mean)
    # The regret cannot exceed the gain of knowing every outcome.
    most = decisions.excess(lines, actions, decisions.parts.frequency)
    value = np.maximum.reduce([np.minimum(decisions.regret(lines), most), *(gain.value for gain in gains)])
    upper = np.maximum(posterior, value) + deviate / usual * np.maximum(upper - posterior, 0.0)
    lower, higher = zip(*(gain.interval(deviate) for gain in gains), strict=True)
    high = np.maximum.reduce([value, upper, *higher, decisions.max_block_gain(lines, deviate)])
    low = np.maximum.reduce([np.zeros(value.shape), *lower])
    # Rounding may lift the estimate above the largest possible regret.
    high = np.maximum(np.minimum(high, lines.top), value)
    return RegretIntervals(
        value, low, high, recalibrated, threshold, decisions.gain(lines, actions).mean, deviate
    )


def _band_deviate(decisions: BinaryDecisions, lines: CostLines, gain: Gain, level: float) -> float:
    """Return the quantile of the largest standardised deviation of the gains of all decisions."""
    parts, p = decisions.parts, decisions.parts.frequency
    no, yes = lines.at(lines.optimal_actions(parts.score), decisions.recalibrated(lines))
    # Outcomes and scores of the same rows contribute to the gains of all decisions.
    by_outcome = np.sqrt(parts.spread * p * (1 - p)) * (yes - no)
    by_scores = np.sqrt(parts.spread) * (no + (yes - no) * p - gain.mean[:, None])
    covariance = (by_outcome @ by_outcome.T + by_scores @ by_scores.T) / decisions.n**2
    rng = np.random.default_rng(SEED)
    return simultaneous_deviate(covariance, gain.error, level, decisions.clusters, rng, BAND_DATA_SETS)


def simultaneous_deviate(
    covariance: Array, error: Array, level: float, clusters: float, rng: np.random.Generator, sets: int
) -> float:
    """Return the half-width of a simultaneous band in standard errors; never less than for a single interval.

    It is the quantile of the largest absolute value in each of `sets` simulated vectors of correlated normal
    deviates. The part of the standard errors that the covariance does not explain is independent of it and
    common to all entries. For few clusters the result is scaled by the ratio of the Student to the normal
    quantile.
    """
    value, vector = np.linalg.eigh(covariance)
    # The symmetric square root does not depend on the signs of the eigenvectors or on their basis for equal
    # eigenvalues, so the result is the same on every machine.
    root = (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T
    rest = np.sqrt(np.maximum(error**2 - np.diag(covariance), 0.0))
    noise = rng.standard_normal((sets, error.size)) @ root + rng.standard_normal((sets, 1)) * rest
    largest = float(np.quantile(np.abs(noise / error).max(axis=1), level))
    usual = interval_deviate(level, clusters)
    return max(usual, largest * usual / interval_deviate(level))
