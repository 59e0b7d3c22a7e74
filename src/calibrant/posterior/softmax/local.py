"""Local class frequencies: gaps that change over short distances, beyond the smooth blocks.

The class frequencies at a row have a Dirichlet prior around the held-out prediction x, with a prior weight of
`weight` rows. Rows of other folds update it; a row at distance d counts as W = exp(-d^2 / 2 h^2) rows:

    mean = x + sum W (y - x) / (sum W + weight),    variance = mean (1 - mean) / (sum W + weight + 1).

Distances are Euclidean between whitened log ratios of the scores. The bandwidth h and the weight are those
with the best Brier score of held-out predictions. They are used only if they predict significantly better
than x alone.

See docs/methods/canonical-calibration.md, "Local frequencies".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.posterior.softmax.blocks import FEW, least_of, squares
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import geometric

# Number of rows whose predictions choose bandwidth and weight, and largest number of rows that are used (both
# limit the time).
CHOICE_ROWS, MAX_ROWS = 2000, 10_000
# Directions with less than this share of the largest variance are rounding errors.
MIN_VARIANCE_SHARE = 1e-6
# Largest number of distances in memory.
MAX_DISTANCES = 1 << 20
# Smallest parameter of a beta distribution.
MIN_BETA_PARAMETER = 1e-12
# Largest bandwidth of neighbours, in whitened log ratios of scores, and number of bandwidths, each sqrt(2)
# times the next. They are tried while the mean of W / (W + 1) over rows, W the weight of neighbours, is at
# least the share. Prior weights of the held-out prediction, in rows.
WIDEST, BANDWIDTHS, SMALLEST_NEIGHBOUR_SHARE = 0.64, 11, 0.25
PREDICTION_WEIGHTS = geometric(2.0**-5, 16.0, 10)
# Gain in Brier score, in standard errors, from which local frequencies are used.
Z_TO_USE = 3.0


class BandwidthChoice(NamedTuple):
    """Chosen bandwidth and prior weight, and the improvement in Brier score in standard errors."""

    width: float
    weight: float
    z_score: float


class LocalFrequencies(NamedTuple):
    """Dirichlet posterior of the class frequencies at each row.

    Attributes
    ----------
    mean : array (rows, classes)
    concentration : array (rows,)
        Concentration parameter: effective number of rows.
    """

    mean: Array
    concentration: Array

    def errors(self, score: Array) -> tuple[Array, Array]:
        """Return each row's expected share in l1, squared l2 and mul, (3, rows), and in l1 by class."""
        from scipy.special import betainc

        mean, concentration = self.mean, self.concentration[:, None]
        a, b = (
            np.maximum(mean * concentration, MIN_BETA_PARAMETER),
            np.maximum((1 - mean) * concentration, MIN_BETA_PARAMETER),
        )
        below, first, second = (betainc(a + j, b, score) for j in range(3))
        square = mean * mean + mean * (1 - mean) / (concentration + 1)
        by_class = 2 * score * below - score + mean - 2 * mean * first
        mul = square - score * mean + 2 * score * mean * first - 2 * square * second
        squares = square - 2 * mean * score + score * score
        return np.stack([each.sum(axis=1) for each in (by_class, squares, mul)]), by_class


@dataclass(frozen=True, eq=False)
class LocalFrequencyPair:
    """Local frequencies of the first rows, at the bandwidth that predicts best and at the next smaller one.

    The best bandwidth averages over frequencies that differ, which understates the uncertainty. The smaller
    one has fewer neighbours, which overstates it.

    Attributes
    ----------
    at_best_bandwidth, at_smaller_bandwidth : LocalFrequencies
    """

    at_best_bandwidth: LocalFrequencies
    at_smaller_bandwidth: LocalFrequencies

    @classmethod
    def of(cls, rows: Simplex, x: Array, folds: int) -> LocalFrequencyPair | None:
        """Compute local frequencies; None if they are not significantly better than the predictions x."""
        if rows.n_classes > FEW:
            return None
        chosen = choose_bandwidth(rows[:CHOICE_ROWS], x[:CHOICE_ROWS], folds)
        if chosen is not None and chosen.z_score > Z_TO_USE / 2 and len(rows.code) > CHOICE_ROWS:
            chosen = choose_bandwidth(rows[:MAX_ROWS], x[:MAX_ROWS], folds)
        if chosen is None or not chosen.z_score > Z_TO_USE:
            return None
        subset, x = rows[:MAX_ROWS], x[:MAX_ROWS]
        at_best_bandwidth, at_smaller_bandwidth = (
            dirichlet_posterior(x, each, chosen.weight)
            for each in kernel_sums(subset, x, folds, chosen.width, 2, len(x))
        )
        return cls(at_best_bandwidth, at_smaller_bandwidth)


def choose_bandwidth(rows: Simplex, x: Array, folds: int) -> BandwidthChoice | None:
    """Choose bandwidth and weight by the Brier score of held-out predictions; None without neighbours."""
    n_rows = min(CHOICE_ROWS, len(x))
    choice_rows, x_rows = rows[:n_rows], x[:n_rows]
    residual = choice_rows.residuals(x_rows)
    best, best_gain = None, -np.inf
    for j, each in enumerate(kernel_sums(rows, x, folds, WIDEST, BANDWIDTHS, n_rows)):
        mass = each[:, -1]
        if choice_rows.mean(mass / (mass + 1))[0] < SMALLEST_NEIGHBOUR_SHARE:
            break
        for weight in PREDICTION_WEIGHTS:
            change = dirichlet_posterior(x_rows, each, weight).mean - x_rows
            gain, error = choice_rows.mean(((2 * residual - change) * change).sum(axis=1))
            if gain > best_gain:
                best, best_gain = (
                    BandwidthChoice(WIDEST * 2 ** (-j / 2), float(weight), gain / max(error, 1e-300)),
                    gain,
                )
    return best


def kernel_sums(rows: Simplex, x: Array, folds: int, width: float, steps: int, n_rows: int) -> Array:
    """Return kernel sums over the rows of other folds, (steps, n_rows, classes + 1).

    The sums are of the residuals of the predictions x, and (last column) of 1. There is one set of sums for
    each bandwidth; each bandwidth is smaller than the one before by a factor sqrt(2).
    """
    location = whitened_log_ratios(rows)
    weighted = np.column_stack([rows.residuals(x), np.ones(len(x))]) * rows.weight[:, None]
    out = np.zeros((steps, n_rows, weighted.shape[1]))
    size = max(1, MAX_DISTANCES // len(x))
    for fold in rows.folds(folds):
        stop = min(fold.stop, n_rows)
        for first in range(fold.start, stop, size):
            chunk = slice(first, min(first + size, stop))
            kernel = np.exp(squares(location[chunk], location) * (-0.5 / width**2))
            kernel[:, fold] = 0.0
            for j in range(steps):
                if j:
                    kernel *= kernel
                out[j, chunk] = kernel @ weighted
    return out


def whitened_log_ratios(rows: Simplex) -> Array:
    """Return whitened, centred log ratios of the scores; the mean squared norm of a row is 1."""
    log = np.log(np.maximum(rows.score, least_of(rows.score)))
    log -= log.mean(axis=1, keepdims=True)
    log -= rows.weight @ log / rows.n
    variance, axes = np.linalg.eigh((log * rows.weight[:, None]).T @ log / rows.n)
    kept = variance > MIN_VARIANCE_SHARE * max(variance[-1], MIN_BETA_PARAMETER)
    return np.asarray(log @ (axes[:, kept] / np.sqrt(variance[kept] * max(int(kept.sum()), 1))))


def dirichlet_posterior(x: Array, sums: Array, weight: float) -> LocalFrequencies:
    """Return the Dirichlet posterior around predictions x, given kernel sums."""
    concentration = sums[:, -1] + weight
    mean = np.maximum(x + sums[:, :-1] / concentration[:, None], 0.0)
    return LocalFrequencies(mean / mean.sum(axis=1, keepdims=True), concentration)
