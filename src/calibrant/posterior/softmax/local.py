"""What rows nearby tell beyond the blocks: frequencies that change over short distances.

The blocks are smooth. The frequencies at a row are therefore also taken for a Dirichlet variable around the
held-out prediction x, which counts as much as `weight` rows, and the rows of other folds tell more of it, a
row at distance d as much as exp(-d^2 / 2 h^2) rows:

    mean = x + sum W (y - x) / (sum W + weight),    variance = mean (1 - mean) / (sum W + weight + 1).

Distances are those of log ratios of scores, whitened. h and the weight are those that predict best, and
unless they predict clearly better than x alone nothing of this is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from calibrant.posterior.softmax.blocks import FEW, least_of, squares
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Bandwidths, each smaller than the one before by the root of 2, and what the held-out prediction may weigh.
WIDEST, STEPS, WEIGHTS = 0.64, 11, 2.0 ** np.arange(-5, 5)
# Rows that choose, and rows that are looked at.
ASKED, MOST = 2000, 10_000
# By how many standard errors predictions have to be better, and by how many for a look at more neighbours.
CLEARLY, MAYBE = 3.0, 1.5
# How much of a row's frequencies its neighbours have to tell on average.
TOLD = 0.25
# A direction with less than this share of the largest variance is rounding.
FLAT = 1e-6
# Distances held at once.
HELD = 1 << 20
# Of a beta variable that is next to 0 or 1.
LEAST = 1e-12


class Choice(NamedTuple):
    """How near rows have to be, what the prediction weighs, and by how many standard errors that helps."""

    width: float
    weight: float
    clear: float


class Around(NamedTuple):
    """The frequencies at each row, as a Dirichlet variable.

    Attributes
    ----------
    mean : array (rows, classes)
    worth : array (rows,)
        How many rows it counts as.
    """

    mean: Array
    worth: Array

    def errors(self, score: Array) -> tuple[Array, Array]:
        """Return what each row is expected to add to the errors (3, rows), and to those of classes."""
        from scipy.special import betainc

        mean, worth = self.mean, self.worth[:, None]
        a, b = np.maximum(mean * worth, LEAST), np.maximum((1 - mean) * worth, LEAST)
        below, first, second = (betainc(a + j, b, score) for j in range(3))
        square = mean * mean + mean * (1 - mean) / (worth + 1)
        own = 2 * score * below - score + mean - 2 * mean * first
        mul = square - score * mean + 2 * score * mean * first - 2 * square * second
        squares = square - 2 * mean * score + score * score
        return np.stack([each.sum(axis=1) for each in (own, squares, mul)]), own


@dataclass(frozen=True, eq=False)
class Local:
    """What neighbours tell of the first rows, at the bandwidth that predicts best and at the next.

    The first takes frequencies for equal that differ within its reach, and so is too sure of them; the
    other sees too few rows, and so leaves too much open.

    Attributes
    ----------
    near, nearer : Around
    """

    near: Around
    nearer: Around

    @classmethod
    def of(cls, rows: Simplex, x: Array, folds: int) -> Local | None:
        """Ask the neighbours; None where they do not clearly tell more than the predictions x."""
        if rows.n_classes > FEW:
            return None
        found = choice(rows[:ASKED], x[:ASKED], folds)
        if found is not None and found.clear > MAYBE and len(rows.code) > ASKED:
            found = choice(rows[:MOST], x[:MOST], folds)
        if found is None or not found.clear > CLEARLY:
            return None
        some, x = rows[:MOST], x[:MOST]
        near, nearer = (
            updated(x, each, found.weight) for each in told(some, x, folds, found.width, 2, len(x))
        )
        return cls(near, nearer)


def choice(rows: Simplex, x: Array, folds: int) -> Choice | None:
    """Choose how near and how heavy by the Brier score of held-out predictions; None without neighbours."""
    asked = min(ASKED, len(x))
    some, x_some = rows[:asked], x[:asked]
    rest = remainder(some, x_some)
    best, most = None, -np.inf
    for j, each in enumerate(told(rows, x, folds, WIDEST, STEPS, asked)):
        mass = each[:, -1]
        if some.mean(mass / (mass + 1))[0] < TOLD:
            break
        for weight in WEIGHTS:
            move = updated(x_some, each, weight).mean - x_some
            gain, error = some.mean(((2 * rest - move) * move).sum(axis=1))
            if gain > most:
                best, most = Choice(WIDEST * 2 ** (-j / 2), float(weight), gain / max(error, 1e-300)), gain
    return best


def remainder(rows: Simplex, x: Array) -> Array:
    """Return what was observed less what was predicted."""
    rest = -x
    rest[np.arange(len(x)), rows.code] += 1
    return rest


def told(rows: Simplex, x: Array, folds: int, width: float, steps: int, asked: int) -> Array:
    """Return sums over rows of other folds, of what predictions left and of 1, a row by how near it is.

    For some bandwidths, each smaller than the one before by the root of 2 (steps, asked, classes + 1).
    """
    at = positions(rows)
    carried = np.column_stack([remainder(rows, x), np.ones(len(x))]) * rows.weight[:, None]
    out = np.zeros((steps, asked, carried.shape[1]))
    size = max(1, HELD // len(x))
    for fold in rows.folds(folds):
        stop = min(fold.stop, asked)
        for first in range(fold.start, stop, size):
            part = slice(first, min(first + size, stop))
            near = np.exp(squares(at[part], at) * (-0.5 / width**2))
            near[:, fold] = 0.0
            for j in range(steps):
                if j:
                    near *= near
                out[j, part] = near @ carried
    return out


def positions(rows: Simplex) -> Array:
    """Return the logarithms of scores about their mean, whitened; the mean square of a row is 1."""
    log = np.log(np.maximum(rows.score, least_of(rows.score)))
    log -= log.mean(axis=1, keepdims=True)
    log -= rows.weight @ log / rows.n
    size, axes = np.linalg.eigh((log * rows.weight[:, None]).T @ log / rows.n)
    kept = size > FLAT * max(size[-1], LEAST)
    return np.asarray(log @ (axes[:, kept] / np.sqrt(size[kept] * max(int(kept.sum()), 1))))


def updated(x: Array, sums: Array, weight: float) -> Around:
    """Return the frequencies around predictions x after what neighbours told."""
    worth = sums[:, -1] + weight
    mean = np.maximum(x + sums[:, :-1] / worth[:, None], 0.0)
    return Around(mean / mean.sum(axis=1, keepdims=True), worth)
