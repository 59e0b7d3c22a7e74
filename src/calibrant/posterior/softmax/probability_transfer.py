"""Probability transfer between classes: which classes receive probability that belongs to which others.

See docs/methods/canonical-calibration.md, "Probability transfer between classes".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, TypeAlias

import numpy as np

from calibrant.inputs import ROUNDING, InputError
from calibrant.inputs.codec import UNIT, Bounds, Shape, check_lengths
from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import FEW
from calibrant.posterior.softmax.error import ROUNDING_GAP, CanonicalError
from calibrant.posterior.softmax.fit import SoftmaxPosterior
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex
from calibrant.settings import SOFTMAX

# Posterior draws (Monte Carlo precision): number of draws of the block sizes, of the coefficients given each,
# and rows where they are evaluated.
SIZE_DRAWS, COEFFICIENT_DRAWS, DRAW_ROWS = 8, 6, 4000
# Number of values (rows times pairs of classes) in memory at once.
CHUNK = 1 << 20

Square: TypeAlias = Annotated[Array, Shape((None, None))]
# Factor of standard errors of probability transfers.
ERROR_FACTOR = 1.3
# Share of the difference of the two forms in the standard deviation of a class's gap.
DIFFERENCE_FACTOR = 0.25


@dataclass(frozen=True, eq=False)
class ProbabilityTransfer:
    """Probability transfer between classes, and gap by predicted class.

    Attributes
    ----------
    net, spread : arrays (classes, classes)
        Net probability per row that the scores of the first class (row index) have too much and those of the
        second class (column index) too little, and its standard deviation.
    share, gap, gap_spread : arrays (classes,)
        For the rows predicted as each class: their share, the mean of sum_k |eta_k - s_k| and its standard
        deviation.
    """

    net: Annotated[Square, Bounds(-1, 1, slack=ROUNDING)]
    spread: Annotated[Square, UNIT]
    share: Annotated[Array, UNIT]
    gap: Annotated[Array, Bounds(0, 2, slack=ROUNDING)]
    gap_spread: Annotated[Array, Bounds(0, 2, slack=ROUNDING)]

    def _check_fields(self) -> None:
        """Raise an error if the arrays do not match the number of classes, or the shares do not sum to 1."""
        classes = len(self.share)
        for name in ("net", "spread"):
            Shape((classes, classes)).check(name, getattr(self, name))
        check_lengths(self, classes, "gap", "gap_spread")
        if np.any(np.abs(self.net + self.net.T) > ROUNDING):
            raise InputError("net", "say of each pair of classes what one takes and one gives")
        # The shares may be rounded.
        if abs((total := float(self.share.sum())) - 1) > 0.05:
            raise InputError("share", "add up to 1", total)

    @classmethod
    def of(cls, error: CanonicalError) -> ProbabilityTransfer | None:
        """Compute the transfers; None if there are too many classes to resolve pairs of them."""
        posterior, rows = error.posterior, error.posterior.likelihood.rows
        k = rows.n_classes
        if k > FEW:
            return None
        subset = slice(0, min(DRAW_ROWS, len(rows.code)))
        p, weight = rows.score[subset], rows.weight[subset] / rows.weight[subset].sum()
        first = p.argmax(axis=1)
        share = np.bincount(first, weight, minlength=k)
        held_out, noise = _by_prediction(rows, error.row_contributions["l1"])
        if error.local is None:
            gap = _posterior_gaps(posterior, p, weight) / np.where(share > 0, share, 1)
            # The posterior expectation includes uncertainty about the sign, and held-out predictions miss
            # some of the gap: the truth lies between.
            mean, share_held_out = gap.mean(axis=0), SOFTMAX.held_out_weight
            expected = np.maximum((1 - share_held_out) * mean + share_held_out * held_out, 0.0)
            deviation = _deviation(np.maximum(gap.std(axis=0), noise), mean - held_out)
        else:
            local_rows = rows[: len(error.local.at_best_bandwidth.concentration)]
            gap = np.array([
                _by_prediction(local_rows, around.errors(local_rows.score)[0][0])[0]
                for around in (error.local.at_best_bandwidth, error.local.at_smaller_bandwidth)
            ])  # fmt: skip
            expected = gap.mean(axis=0)
            deviation = _deviation(noise, expected - held_out)
        p_gap = error.gap_probability
        net, transfer_error = _net_transfer(rows, error.held_out)
        return cls(
            np.clip(p_gap * net, -1, 1), np.minimum(_spread(net, transfer_error, p_gap), 1), share,
            np.minimum(p_gap * expected, 2), np.minimum(_spread(expected, deviation, p_gap), 2),
        )  # fmt: skip

    def ordered(self, columns: Array) -> ProbabilityTransfer:
        """Return the same with the classes in the order of `columns`."""
        both = np.ix_(columns, columns)
        return ProbabilityTransfer(
            self.net[both], self.spread[both],
            self.share[columns], self.gap[columns], self.gap_spread[columns],
        )  # fmt: skip


def _deviation(error: Array, difference: Array) -> Array:
    """Return a standard deviation that allows for predictions that are not exact."""
    return np.asarray(ERROR_FACTOR * error + DIFFERENCE_FACTOR * np.abs(difference))


def _posterior_gaps(posterior: SoftmaxPosterior, p: Array, weight: Array) -> Array:
    """Return the l1 error of each draw by predicted class, (draws, classes); the classes sum to l1."""
    at, first, k = posterior.blocks.columns(p), p.argmax(axis=1), p.shape[1]
    theta = posterior.draws(np.random.default_rng(1), SIZE_DRAWS, COEFFICIENT_DRAWS)
    gap = np.zeros((len(theta), k))
    for j, each in enumerate(theta):
        q = softmax(posterior.blocks.logits(at, each)) if each.any() else p
        gap[j] = np.bincount(first, weight * np.abs(q - p).sum(axis=1), minlength=k)
    return gap


def _net_transfer(rows: Simplex, x: Array) -> tuple[Array, Array]:
    """Return the net transfer from the column's class to the row's class, and its standard error.

    What the scores of a row lose and gain under the held-out predictions x is divided between the classes in
    proportion. The noise of the predictions would be divided even where there is no gap; the first-order
    correction (derivative of the transfers at the predictions, times observed minus predicted) removes this
    bias.
    """
    k = rows.n_classes
    total, first, second = np.zeros((3, k, k))
    step = max(1, CHUNK // (k * k))
    for a in range(0, len(rows.code), step):
        chunk = slice(a, a + step)
        q, p = x[chunk], rows.score[chunk]
        d = q - p
        residual = rows[chunk].residuals(q)
        lost, gained = np.maximum(-d, 0.0), np.maximum(d, 0.0)
        size = np.abs(d).sum(axis=1) / 2
        inverse_size = np.divide(1.0, size, out=np.zeros(len(q)), where=size > ROUNDING_GAP)
        size_change = np.einsum("ik,ik->i", np.sign(d), residual) / 2 * inverse_size
        moved = np.einsum("ij,ik,i->ijk", lost, gained, inverse_size * (1 - size_change))
        moved += np.einsum("ij,ik,i->ijk", -residual * (d < 0), gained, inverse_size)
        moved += np.einsum("ij,ik,i->ijk", lost, residual * (d > 0), inverse_size)
        moved -= moved.transpose(0, 2, 1)
        total += np.einsum("ijk,i->jk", moved, rows.weight[chunk])
        first += np.einsum("ijk,i->jk", moved, rows.square[chunk])
        second += np.einsum("ijk,ijk,i->jk", moved, moved, rows.square[chunk])
    mean = total / rows.n
    square = second - 2 * mean * first + mean * mean * rows.square.sum()
    # The standard error is at least that of half a row.
    least = 0.25 * rows.square.sum() / rows.n
    return mean, ERROR_FACTOR * np.sqrt(np.maximum(square, least)) / rows.n


def _by_prediction(rows: Simplex, each: Array) -> tuple[Array, Array]:
    """Return the mean of `each` over the rows predicted as each class, and its standard error."""
    first, k = rows.score.argmax(axis=1), rows.n_classes
    mass = np.bincount(first, rows.weight, minlength=k)
    mass[mass == 0] = 1.0
    mean = np.bincount(first, rows.weight * each, minlength=k) / mass
    square = np.bincount(first, rows.square * (each - mean[first]) ** 2, minlength=k)
    return mean, np.sqrt(square) / mass


def _spread(mean: Array, deviation: Array, p_gap: float) -> Array:
    """Return the standard deviation of a quantity that is 0 with probability 1 - p_gap (no gap)."""
    square = p_gap * (mean * mean + deviation * deviation) - (p_gap * mean) ** 2
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))
