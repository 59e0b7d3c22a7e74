"""Regret and what recovers it, with intervals: all from one set of held-out gains and one posterior."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.decisions.binary import BinaryDecisions, Gain, Lines
from calibrant.inference.measured import interval_deviate
from calibrant.score_data import Array

# Sets of correlated normal deviates for the largest of many deviations.
SETS, SEED = 1000, 20240714


class Ends(NamedTuple):
    """The regret of each decision with both ends of its interval, and what recovers it.

    Attributes
    ----------
    value, low, high : arrays
        No value or end of `recalibrated` or `threshold` is above that of the regret.
    recalibrated : Gain
        Of acting on recalibrated scores, on held-out rows.
    threshold : Gain or None
        Of the best threshold, on held-out rows, where there are two actions.
    as_is : array
        Cost of acting on the scores.
    deviate : float
        Standard errors on either side of a gain.
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
        """The largest held-out gain in its standard errors."""
        gains = [gain for gain in (self.recalibrated, self.threshold) if gain is not None]
        return np.max([gain.mean / gain.error for gain in gains], axis=0)


def ends(known: BinaryDecisions, lines: Lines, level: float, *, simultaneous: bool = False) -> Ends:
    """Return intervals for the regret of each decision, or a band that holds all of them.

    The regret is at least the expected gain of any other actions. Its value is the largest of the regret
    against the recalibrated scores of all rows, of the held-out gain of recalibration and of that of the
    best threshold. The low end is the larger one of these gains'. The high end is the largest of the gains',
    of the posterior's, and of what blocks of neighbouring rows could gain at most.
    """
    before = lines.taken(known.parts.score)
    recalibrated = known.gain(lines, before, known.recalibrated(lines))
    threshold = known.gain(lines, before, known.best_threshold(lines)) if lines.no.shape[1] == 2 else None
    gains = [recalibrated] if threshold is None else [recalibrated, threshold]
    usual = interval_deviate(level, known.clusters)
    deviate = _largest(known, lines, recalibrated, level) if simultaneous else usual
    upper = np.quantile(known.drawn(lines), (1 + level) / 2, axis=1, method="inverted_cdf")
    posterior = known.regret(lines, known.posterior_mean)
    # No more can be lost than the right action for every row would save.
    most = known.excess(lines, before, known.parts.frequency)
    value = np.maximum.reduce([np.minimum(known.regret(lines), most), *(gain.value for gain in gains)])
    upper = np.maximum(posterior, value) + deviate / usual * np.maximum(upper - posterior, 0.0)
    lower, higher = zip(*(gain.interval(deviate) for gain in gains), strict=True)
    high = np.maximum.reduce([value, upper, *higher, known.reach(lines, deviate)])
    low = np.maximum.reduce([np.zeros(value.shape), *lower])
    # Rounding may lift a value above the most that can be lost.
    high = np.maximum(np.minimum(high, lines.top), value)
    return Ends(value, low, high, recalibrated, threshold, known.gain(lines, before).mean, deviate)


def _largest(known: BinaryDecisions, lines: Lines, gain: Gain, level: float) -> float:
    """Return the quantile of the largest deviation of any decision's gain, in its standard errors."""
    parts, p = known.parts, known.parts.frequency
    no, yes = lines.at(lines.taken(parts.score), known.recalibrated(lines))
    # Outcomes of a part move the gains of all decisions together.
    by_outcome = np.sqrt(parts.spread * p * (1 - p)) * (yes - no)
    by_scores = np.sqrt(parts.spread) * (no + (yes - no) * p - gain.mean[:, None])
    covariance = (by_outcome @ by_outcome.T + by_scores @ by_scores.T) / known.n**2
    rng = np.random.default_rng(SEED)
    return simultaneous_deviate(covariance, gain.error, level, known.clusters, rng, SETS)


def simultaneous_deviate(
    covariance: Array, error: Array, level: float, clusters: float, rng: np.random.Generator, sets: int
) -> float:
    """Return how many standard errors hold all of several deviations together; at least as many as for one.

    It is the quantile of the largest of so many sets of correlated normal deviates. What the errors have
    beyond the covariance is independent of it and common to all. Few clusters have the tails of Student's
    distribution.
    """
    value, vector = np.linalg.eigh(covariance)
    # The symmetric root does not depend on the signs of the vectors, nor on how equal values share a space.
    root = (vector * np.sqrt(np.maximum(value, 0.0))) @ vector.T
    rest = np.sqrt(np.maximum(error**2 - np.diag(covariance), 0.0))
    noise = rng.standard_normal((sets, error.size)) @ root + rng.standard_normal((sets, 1)) * rest
    largest = float(np.quantile(np.abs(noise / error).max(axis=1), level))
    usual = interval_deviate(level, clusters)
    return max(usual, largest * usual / interval_deviate(level))
