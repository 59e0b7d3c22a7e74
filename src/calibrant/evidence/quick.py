"""Sums of very many scores into equal cells: the product that finds the cell tells the distance too."""

from __future__ import annotations

import numpy as np

from calibrant.evidence.moments import Array

# Rows summed at a time. Threads work side by side as long as each step takes longer than a change of turns.
CHUNK = 1 << 18
# A product this near to a whole number may be rounded across it, and the comparison with the edge decides.
NEAR = 1e-9
# Fewer distances below 1 than this have a sum below it.
FULL = 128.0


def tally_equal(score: Array, outcome: Array, weight: Array | None, k: int) -> Array:
    """Sums of w, w x and w x^2 by outcome and cell [j/k, (j+1)/k), with x the distance from j/k.

    A distance is a rounded product less a whole number: within one unit in the last place of the score.

    Parameters
    ----------
    score : array
        Scores in [0, 1], one problem, in single or double precision.
    outcome : array of bool
    weight : array, optional
    k : int
        Number of cells, up to a million.

    Returns
    -------
    array, shape (3, 2, k)

    Examples
    --------
    >>> tally_equal(np.array([0.29, 0.5, 1.0]), np.array([True, False, True]), None, 4).round(2).tolist()[:2]
    [[[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]], [[0.0, 0.0, 0.0, 0.0], [0.0, 0.04, 0.0, 0.25]]]
    """
    sums = np.zeros((3, 2 * k))
    size = min(CHUNK, len(score))
    index, distances, floors = np.empty(size, dtype=np.intp), np.empty(size), np.empty(size)
    for a in range(0, len(score), size):
        part = slice(a, a + size)
        own = score[part]
        at, x, cell = index[: len(own)], distances[: len(own)], floors[: len(own)]
        np.multiply(own, k, out=x, dtype=np.float64)
        np.floor(x, out=cell)
        x -= cell
        if x.min() < NEAR or x.max() > 1 - NEAR:
            _settle(own, x, cell, k)
        cell += cell
        cell += outcome[part]
        at[:] = cell
        if weight is None:
            np.square(x, out=cell)
            sums[2] += np.bincount(at, cell, minlength=2 * k)
            count, first = _counted(at, x, 2 * k)
            sums[0] += count
            sums[1] += first
            continue
        factor = weight[part].astype(np.float64)
        for total in sums:
            total += np.bincount(at, factor, minlength=2 * k)
            factor *= x
    sums[1] /= k
    sums[2] /= float(k) ** 2
    return sums.reshape(3, k, 2).transpose(0, 2, 1)


def _counted(at: Array, x: Array, size: int) -> tuple[Array, Array]:
    """How often each number occurs, and the sums of their distances below 1; the distances are used up.

    One sum holds both, since counting takes as long as summing: the count in units of 128.
    """
    x += FULL
    both = np.bincount(at, x, minlength=size)
    if both.max() < FULL * FULL:
        count = np.floor(both / FULL)
        return count, both - FULL * count
    x -= FULL
    return np.bincount(at, minlength=size), np.bincount(at, x, minlength=size)


def _settle(score: Array, x: Array, cell: Array, k: int) -> None:
    """Decide by comparison where a product is next to a whole number."""
    near = np.flatnonzero((x < NEAR) | (x > 1 - NEAR))
    own = score[near].astype(np.float64)
    edge = np.rint(x[near] + cell[near])
    place = np.minimum(edge - (own < edge / k), k - 1)
    cell[near] = place
    x[near] = (own - place / k) * k
