"""Trials and successes over cells of log-odds: all that a map of two classes is fitted to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.score_data import Array, Residuals

# Cells at most, and up to so many rows. They are equal parts of what counts: rows, their information, and the
# range of log-odds.
MOST, FEWER, MANY_ROWS = 256, 128, 4096
# A score of 0 or 1 is taken for half the distance of the nearest other score from a wall, within these ends.
NEAREST, FURTHEST, NO_OTHER = 2.0**-50, 0.25, 1e-3
# Distances are multiples of this, so that 1 less a distance is exact, and 0 and 1 are taken for complements.
STEP = 2.0**-53


@dataclass(frozen=True, eq=False)
class OddsCells:
    """Log-odds of the scores, trials and successes, in increasing order.

    Attributes
    ----------
    x : array
        Mean log-odds of the scores in each cell.
    trials, successes : array
    least : float
        The distance from 0 and from 1 that scores are kept at.
    """

    x: Array
    trials: Array
    successes: Array
    least: float

    @classmethod
    def of(cls, residuals: Residuals, most: int | None = None) -> OddsCells:
        """Make the cells of a single problem.

        >>> from calibrant.score_data import Sample
        >>> sample = Sample(np.array([0.2, 0.2, 0.9]), np.array([False, True, True]))
        >>> cells = OddsCells.of(Residuals.of(sample))
        >>> cells.x.round(3), cells.trials, cells.successes.round(9)
        (array([-1.386,  2.197]), array([2., 1.]), array([1., 1.]))
        """
        held = residuals[residuals.mass > 0]
        least = nearest(held.score)
        x, trials = log_odds(held.score, least), held.mass
        successes = trials * held.frequency
        if most is None:
            most = FEWER if MOST < trials.sum() <= MANY_ROWS else MOST
        if x.size > most:
            cell = _equal_parts(x, trials, most)
            total = np.bincount(cell, trials)
            some = total > 0
            x = np.bincount(cell, trials * x)[some] / total[some]
            trials, successes = total[some], np.bincount(cell, successes)[some]
        return cls(x, trials, successes, least)

    @property
    def n(self) -> float:
        """Effective number of rows."""
        return float(self.trials.sum())

    def likelihood(self, odds: Array) -> Array:
        """Return the log likelihood of log-odds in the cells, along the last axis."""
        return odds @ self.successes - softplus(odds) @ self.trials


def step_weights(trials: Array, successes: Array, odds: Array, *, sure: bool) -> tuple[Array, Array]:
    """Return curvature and slope of the log likelihood at log-odds, for a step towards the mode.

    A sure step always climbs, by the bound of Polya and Gamma; Newton's is faster near the mode.
    """
    if sure:
        far = np.maximum(np.abs(odds), 1e-4)
        curvature = trials * np.tanh(far / 2) / (2 * far)
        return curvature, successes - 0.5 * trials - curvature * odds
    q = expit(odds)
    return trials * q * (1 - q), successes - trials * q


def expit(odds: Array) -> Array:
    """Return 1 / (1 + exp(-odds)), without overflow."""
    from scipy.special import expit

    return np.asarray(expit(odds))


def nearest(score: Array) -> float:
    """Return how far from 0 and 1 scores are kept: half the least distance of others, where some are 0 or 1.

    >>> nearest(np.array([0.0, 0.25, 1.0])), nearest(np.array([0.02, 0.9])) == 2**-50
    (0.125, True)
    """
    away = np.minimum(score, 1 - score)
    if away.min() > 0:
        return NEAREST
    away = away[away > 0]
    least = np.clip(away.min() / 2 if away.size else NO_OTHER, NEAREST, FURTHEST)
    return float(np.rint(least / STEP) * STEP)


def certainty_bound(rows: float, nearest_other: float) -> float:
    """Return the least probability that is given to an outcome that a score excludes.

    Where rows have such a score, and the outcome never occurred in them, it is the posterior mean under
    Jeffreys' prior, 0.5 / (rows + 1): if the scores are right, this costs at most 0.5 nats in all rows
    together. It is at most half the distance of the nearest other score, which keeps the order of scores.

    Parameters
    ----------
    rows : float
        Rows with a score of exactly 0, or of exactly 1.
    nearest_other : float
        Least distance from 0 and 1 of all other scores.

    Examples
    --------
    >>> certainty_bound(99, 0.1), certainty_bound(1, 0.1), certainty_bound(0, 0.1)
    (0.005, 0.05, 0.001)
    """
    of_rows = 0.5 / (rows + 1) if rows > 0 else NO_OTHER
    return float(np.clip(nearest_other / 2, NEAREST, of_rows))


def log_odds(score: Array, least: float) -> Array:
    """Return the log-odds of scores that are kept away from 0 and 1.

    >>> log_odds(np.array([0.5, 1.0]), 0.01).round(3)
    array([0.   , 4.595])
    """
    inside = np.clip(score, least, 1 - least)
    return np.asarray(np.log(inside / (1 - inside)))


def softplus(odds: Array) -> Array:
    """Return log(1 + exp(odds)), without overflow."""
    return np.maximum(odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))


def _equal_parts(x: Array, trials: Array, most: int) -> Array:
    """Return the cell of each score: equal parts by rank, by information and by log-odds."""
    information = trials / (2 * np.cosh(np.clip(x, -300, 300) / 2))
    share = np.zeros(x.shape)
    for part in (trials, information, np.gradient(x)):
        running = np.cumsum(part)
        share = share + (running - part / 2) / running[-1] / 3
    return np.minimum((share * most).astype(np.intp), most - 1)
