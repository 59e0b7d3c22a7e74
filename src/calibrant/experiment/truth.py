"""The true calibration error of a model, two ways.

`published` is the paper's: 2000 uniform bins on labelled rows. `exact` puts the posterior in place
of the label, groups rows by score, and takes the sign of each group's gap from the other half of
the rows, which removes the bias that |noise| would leave.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant.estimators.binned import Binned
from calibrant.score_data import Array, Sample, tally

CELLS = 400
# Scores that repeat, those of a forest for instance, are told apart to this many decimals.
DECIMALS = 6
SUBSAMPLE = 20_000


class Truth(NamedTuple):
    """True errors of one notion: the paper's reading, the exact one, and how far that may be off.

    Attributes
    ----------
    published, exact : float
        The error as the paper computes it, and the exact one.
    bracket : float
        How far the exact one may be off.

    See Also
    --------
    exact_error : Computes the exact error.

    Examples
    --------
    >>> from calibrant import experiment
    >>> experiment.Truth(0.1, 0.12, 0.001).exact
    0.12
    """

    published: float
    exact: float
    bracket: float


def truth(score: Array, outcome: Array, chance: Array) -> Truth:
    """Return the true error of problems along the first axis, averaged over them.

    Parameters
    ----------
    score, outcome, chance : arrays of shape (problems, n)
        Scores, sampled outcomes, and the exact probability of the outcome given the features.
    """
    published = Binned("uniform", 2000).fit(Sample(score, outcome)).error()
    exact = np.array([exact_error(*problem) for problem in zip(score, chance, strict=True)])
    return Truth(float(np.mean(published)), *(float(value) for value in exact.mean(axis=0)))


def exact_error(score: Array, chance: Array) -> tuple[float, float]:
    """Estimate E|E[chance | score] - score|, with a bracket around it.

    The bracket adds to the sampling error (1.96 standard errors) the largest of three differences:
    to half and to twice as many cells, which bound what a cell hides, and to the error with
    signs that are not cross-fitted, which bounds what wrong signs cost.

    Parameters
    ----------
    score : array
        Scores.
    chance : array
        True probability of the outcome of each row.

    Returns
    -------
    tuple of float
        Estimate of the error, and its bracket.

    See Also
    --------
    Truth : True errors of a model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(200_000)
    >>> value, bracket = exact_error(score, score**2)
    >>> bool(abs(value - 1 / 6) < bracket < 0.002)
    True
    """
    residual = chance - score
    few = distinct(score)
    if few is not None:
        index = 2 * few + (np.arange(few.size) & 1)
        sums = np.bincount(index, residual, minlength=2 * (int(few.max()) + 1))
        value, plain = crossed(sums.reshape(-1, 2).T, few.size)
        return value, abs(plain - value) + _noise(residual)
    half = np.zeros(score.size, dtype=bool)
    half[1::2] = True
    draw = np.sort(score[:: max(1, score.size // SUBSAMPLE)])
    each = draw[np.arange(1, 2 * CELLS) * draw.size // (2 * CELLS)]
    finest = np.unique(each)
    # The rows of the second half are taken for outcomes, and residuals for weights.
    sums = tally.sums_between(score, half, residual, finest, powers=0)[0]
    fitted = {}
    for joined in (4, 2, 1):  # larger cells are made of these
        start = np.searchsorted(finest, np.unique(each[joined - 1 :: joined])) + 1
        cells = np.add.reduceat(sums, np.append(0, start), axis=1)
        fitted[2 * CELLS // joined] = crossed(cells, score.size)
    value, plain = fitted[CELLS]
    others = (plain, fitted[CELLS // 2][0], fitted[2 * CELLS][0])
    return value, max(abs(other - value) for other in others) + _noise(residual)


def distinct(score: Array) -> Array | None:
    """Return the group of equal scores that each row belongs to; None if scores hardly repeat."""
    rounded = np.rint(score[:: max(1, score.size // SUBSAMPLE)] * 10**DECIMALS)
    if np.unique(rounded).size > rounded.size // 10:
        return None
    return np.rint(score * 10**DECIMALS).astype(np.intp)


def crossed(sums: Array, rows: int) -> tuple[float, float]:
    """Return the error with each cell's sign from the other half of the rows, and with its own sign.

    `sums` are the residuals of every second row, and those of the others, by cell.

    >>> crossed(np.array([[0.5, -0.25], [0.25, 0.25]]), 4)
    (0.0625, 0.1875)
    """
    first, second = sums
    error = np.sign(first) @ second / max(rows // 2, 1) + np.sign(second) @ first / max(rows - rows // 2, 1)
    return max(0.0, float(error) / 2), float(np.abs(first + second).sum() / rows)


def _noise(residual: Array) -> float:
    return 1.96 * float(residual.std()) / residual.size**0.5
