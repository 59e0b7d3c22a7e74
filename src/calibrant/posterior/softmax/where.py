"""Where the gap lies: which classes take probability from which, at which predictions, and which way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.evidence import Array
from calibrant.posterior.softmax.blocks import FEW
from calibrant.posterior.softmax.error import CanonicalError
from calibrant.posterior.softmax.likelihood import softmax

# Draws of sizes and of coefficients given each, and rows that they are looked at.
OF_SIZES, OF_EACH, ROWS = 8, 6, 4000
# Cells along a side of the triangle of three classes.
SIDE = 8


@dataclass(frozen=True, eq=False)
class Where:
    """Where on the simplex scores and frequencies differ, by posterior draws.

    Attributes
    ----------
    taken, spread : arrays (classes, classes)
        Net probability that the class of the row takes from the class of the column, per row of data, and
        its posterior standard deviation: scores of the first are too high where those of the second are
        too low.
    share, gap, gap_spread : arrays (classes,)
        Of the rows that each class is predicted for: their share, the mean of sum_k |eta_k - s_k| and its
        posterior standard deviation.
    start, end, weight : arrays (cells, classes), (cells, classes), (cells,)
        Of three classes: mean scores and mean frequencies in cells of the triangle, and their share of
        the rows. Empty for more classes.
    """

    taken: Array
    spread: Array
    share: Array
    gap: Array
    gap_spread: Array
    start: Array
    end: Array
    weight: Array

    @classmethod
    def of(cls, error: CanonicalError) -> Where | None:
        """Look at draws; None of so many classes that a pair of them cannot be told from others."""
        posterior, rows = error.posterior, error.posterior.likelihood.rows
        k = rows.n_classes
        if k > FEW:
            return None
        some = slice(0, min(ROWS, len(rows.code)))
        p, weight = rows.score[some], rows.weight[some] / rows.weight[some].sum()
        first = p.argmax(axis=1)
        at = posterior.blocks.columns(p)
        theta = posterior.draws(np.random.default_rng(1), OF_SIZES, OF_EACH)
        taken, gap, middle = np.zeros((len(theta), k, k)), np.zeros((len(theta), k)), np.zeros(p.shape)
        share = np.bincount(first, weight, minlength=k)
        for j, each in enumerate(theta):
            q = softmax(posterior.blocks.logits(at, each)) if each.any() else p
            middle += q / len(theta)
            d = q - p
            lost, won = np.maximum(-d, 0.0), np.maximum(d, 0.0)
            total = won.sum(axis=1)
            scale = np.divide(weight, total, out=np.zeros(len(p)), where=total > 0)
            moved = (lost * scale[:, None]).T @ won
            taken[j] = moved - moved.T
            gap[j] = np.bincount(first, weight * (lost.sum(axis=1) + total), minlength=k)
        gap /= np.where(share > 0, share, 1)
        middle = p + error.chance * (middle - p)
        cells = _cells(p, middle, weight) if k == 3 else (np.empty((0, k)), np.empty((0, k)), np.empty(0))
        chance = error.chance
        return cls(
            chance * taken.mean(axis=0), _spread(taken, chance), share,
            chance * gap.mean(axis=0), _spread(gap, chance), *cells,
        )  # fmt: skip

    def ordered(self, columns: Array) -> Where:
        """Return the same with the classes in another order: that of these columns."""
        both = np.ix_(columns, columns)
        return Where(
            self.taken[both], self.spread[both],
            self.share[columns], self.gap[columns], self.gap_spread[columns],
            self.start[:, columns], self.end[:, columns], self.weight,
        )  # fmt: skip


def _spread(drawn: Array, chance: float) -> Array:
    """Return the standard deviation of something that is 0 unless there is a gap."""
    mean = drawn.mean(axis=0)
    square = chance * (drawn * drawn).mean(axis=0) - (chance * mean) ** 2
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def _cells(p: Array, middle: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Return mean scores, mean frequencies and mass in small triangles of the simplex."""
    place = np.minimum((p * SIDE).astype(np.intp), SIDE - 1)
    key = (place[:, 0] * SIDE + place[:, 1]) * SIDE + place[:, 2]
    _, cell = np.unique(key, return_inverse=True)
    mass = np.bincount(cell, weight)
    mean = [
        np.stack([np.bincount(cell, weight * each[:, c]) / mass for c in range(3)], axis=1)
        for each in (p, middle)
    ]
    return mean[0], mean[1], mass
