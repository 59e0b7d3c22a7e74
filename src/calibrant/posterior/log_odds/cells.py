"""Pooled binary data on the log-odds scale: the data to which models of P(y = 1 | s) are fitted.

Rows with equal scores are merged and scores become log-odds x = logit(s). Many distinct scores are pooled
into cells. See docs/methods/calibration-curve.md, "Data".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.score_data import Array, Residuals

# Largest number of cells, and the number used for more than MAX_CELLS and up to MANY_ROWS rows (resolution).
MAX_CELLS, FEWER_CELLS, MANY_ROWS = 256, 128, 4096
# Smallest distance of a score from 0 and 1 (rounding), in units of probability.
NEAREST = 2.0**-50
# Distances are rounded to multiples of this, so that 1 - distance is exact and 0 and 1 are treated
# symmetrically.
STEP = 2.0**-53
# Distance from 0 and 1 of scores of exactly 0 and 1 if there are no other scores.
DEFAULT_DISTANCE = 0.001


@dataclass(frozen=True, eq=False)
class LogOddsCells:
    """Number of rows and of positive outcomes at increasing log-odds.

    Attributes
    ----------
    x : array (cells,)
        Mean log-odds of the scores in each cell.
    trials, successes : arrays (cells,)
        Effective number of rows, and of rows with a positive outcome.
    least : float
        Smallest distance from 0 and from 1 at which scores are kept.
    """

    x: Array
    trials: Array
    successes: Array
    least: float

    @classmethod
    def of(cls, residuals: Residuals, most: int | None = None) -> LogOddsCells:
        """Pool the scores of a single problem into at most `most` cells.

        >>> from calibrant.score_data import Sample
        >>> sample = Sample(np.array([0.2, 0.2, 0.9]), np.array([False, True, True]))
        >>> cells = LogOddsCells.of(Residuals.of(sample))
        >>> cells.x.round(3), cells.trials, cells.successes.round(9)
        (array([-1.386,  2.197]), array([2., 1.]), array([1., 1.]))
        """
        observed = residuals[residuals.mass > 0]
        least = nearest(observed.score)
        x, trials = log_odds(observed.score, least), observed.mass
        successes = trials * observed.frequency
        if most is None:
            most = FEWER_CELLS if MAX_CELLS < trials.sum() <= MANY_ROWS else MAX_CELLS
        if x.size > most:
            cell = _cells_of_scores(x, trials, most)
            total = np.bincount(cell, trials)
            occupied = total > 0
            x = np.bincount(cell, trials * x)[occupied] / total[occupied]
            trials, successes = total[occupied], np.bincount(cell, successes)[occupied]
        return cls(x, trials, successes, least)

    @property
    def n(self) -> float:
        """Effective sample size."""
        return float(self.trials.sum())

    def likelihood(self, logits: Array) -> Array:
        """Return the binomial log likelihood, up to a constant, of log-odds (..., cells)."""
        return logits @ self.successes - softplus(logits) @ self.trials

    def information(self, logits: Array) -> Array:
        """Return the information of each cell on its log-odds, (..., cells)."""
        q = expit(logits)
        return self.trials * q * (1 - q)


def step_weights(trials: Array, successes: Array, logits: Array, *, sure: bool) -> tuple[Array, Array]:
    """Return negative curvature and gradient of the log likelihood at log-odds, for a step towards the mode.

    With `sure` the curvature is that of the Polya-Gamma bound, whose steps never decrease the likelihood;
    otherwise it is that of Newton's method, which converges faster near the mode.
    """
    if sure:
        magnitude = np.maximum(np.abs(logits), 1e-4)
        curvature = trials * np.tanh(magnitude / 2) / (2 * magnitude)
        return curvature, successes - 0.5 * trials - curvature * logits
    q = expit(logits)
    return trials * q * (1 - q), successes - trials * q


def expit(logits: Array) -> Array:
    """Return 1 / (1 + exp(-logits)), without overflow."""
    from scipy.special import expit

    return np.asarray(expit(logits))


def nearest(score: Array) -> float:
    """Return the distance from 0 and 1 at which scores are kept.

    It is half the smallest distance of the other scores if any score is exactly 0 or 1.

    >>> nearest(np.array([0.0, 0.25, 1.0])), nearest(np.array([0.02, 0.9])) == 2**-50
    (0.125, True)
    """
    distance = np.minimum(score, 1 - score)
    if distance.min() > 0:
        return NEAREST
    distance = distance[distance > 0]
    half = distance.min() / 2 if distance.size else DEFAULT_DISTANCE
    least = max(half, NEAREST)
    return float(np.rint(least / STEP) * STEP)


def certainty_bound(rows: float, nearest_other: float) -> float:
    """Return the smallest probability that is given to an outcome that a score of 0 or 1 excludes.

    If rows have such a score and the outcome never occurred in them, this is the posterior mean under
    Jeffreys' prior, 0.5 / (rows + 1). If the scores are right, it costs at most 0.5 nats in total. It is at
    most half the distance of the nearest other score, which preserves the order of the scores.

    Parameters
    ----------
    rows : float
        Number of rows with a score of exactly 0 or exactly 1.
    nearest_other : float
        Smallest distance of all other scores from 0 and 1.

    Examples
    --------
    >>> certainty_bound(99, 0.1), certainty_bound(1, 0.1), certainty_bound(0, 0.1)
    (0.005, 0.05, 0.001)
    """
    of_rows = 0.5 / (rows + 1) if rows else DEFAULT_DISTANCE
    return float(np.clip(nearest_other / 2, NEAREST, of_rows))


def log_odds(score: Array, least: float) -> Array:
    """Return the log-odds of scores, which are clipped to [least, 1 - least].

    >>> log_odds(np.array([0.5, 1.0]), 0.01).round(3)
    array([0.   , 4.595])
    """
    inside = np.clip(score, least, 1 - least)
    return np.asarray(np.log(inside / (1 - inside)))


def softplus(logits: Array) -> Array:
    """Return log(1 + exp(logits)), without overflow."""
    return np.maximum(logits, 0.0) + np.log1p(np.exp(-np.abs(logits)))


def _cells_of_scores(x: Array, trials: Array, most: int) -> Array:
    """Return the cell of each score: equal shares of the mean of rank, information and range of log-odds."""
    information = trials / (2 * np.cosh(np.clip(x, -300, 300) / 2))
    share = np.zeros(x.shape)
    for values in (trials, information, np.gradient(x)):
        cumulative_sums = np.cumsum(values)
        share = share + (cumulative_sums - values / 2) / cumulative_sums[-1] / 3
    return np.minimum((share * most).astype(np.intp), most - 1)
