"""Which group a score belongs to, decided by comparison and therefore exact."""

from __future__ import annotations

import numpy as np

from calibrant.evidence.moments import Array

# Below this many scores a binary search is cheaper than preparing the table.
TABLE_FROM = 4096


def equal_cells(score: Array, k: int) -> Array:
    """Return the cell [j/k, (j+1)/k) of each score in single or double precision; the last one is closed.

    The product is rounded, so next to an edge the comparison with j/k decides. Good for up to a
    million cells (in single precision ten thousand), where few scores are that near.

    >>> equal_cells(np.array([0.29, 0.5, 1.0]), 100)
    array([29, 50, 99], dtype=int32)
    """
    scaled = score * k
    cell = scaled.astype(np.int32)
    away = np.rint(scaled)
    away -= scaled
    np.abs(away, out=away)
    if (near := np.flatnonzero(away < max(1e-9, 2 * k * np.finfo(score.dtype).eps))).size:
        cell[near] = beside_edge(score[near], np.rint(scaled[near]), k)
    return cell


def beside_edge(score: Array, j: Array, k: int) -> Array:
    """Return the cell of scores that are next to the edge j/k, above it or below.

    >>> beside_edge(np.array([0.29, np.nextafter(0.29, 0), 1.0]), np.array([29.0, 29.0, 100.0]), 100)
    array([29., 28., 99.])
    """
    j = j.astype(np.float64, copy=False)
    return np.minimum(j - (score < j / k), k - 1)


def positions(ordered: Array, cuts: Array) -> Array:
    """Return the number of scores below each cut, row by row of a batch of sorted scores.

    >>> positions(np.array([[0.1, 0.5, 0.9], [0.2, 0.2, 0.8]]), np.array([[0.5], [0.3]]))
    array([[1],
           [2]])
    """
    rows, n = ordered.shape
    # One search serves all rows, each moved to an interval of its own. The move rounds, so every
    # answer is checked against its neighbours and the few wrong ones are looked up again.
    shift = 2.0 * np.arange(rows)[:, None]
    below = np.searchsorted((ordered + shift).ravel(), (cuts + shift).ravel()).reshape(cuts.shape)
    below = np.clip(below - n * np.arange(rows)[:, None], 0, n)
    padded = np.concatenate([np.full((rows, 1), -1.0), ordered, np.full((rows, 1), 3.0)], axis=1)
    before = np.take_along_axis(padded, below, axis=1)
    after = np.take_along_axis(padded, below + 1, axis=1)
    for row in np.flatnonzero(((before >= cuts) | (after < cuts)).any(axis=1)):
        below[row] = np.searchsorted(ordered[row], cuts[row])
    return below


class Locator:
    """Counts, for each score, the cuts at or below it: group k holds cuts[k-1] <= s < cuts[k].

    Scores are looked up in a table of 2^m equal cells. Multiplying by a power of two is exact,
    so a cell that holds no cut answers exactly; scores in the few cells that do hold one are
    compared with the cuts themselves. (A product with the number of bins is not exact: 100 x
    0.29 falls below 29.)

    >>> Locator(np.array([0.29, 0.5]), many=True)(np.array([0.2, 0.29, 0.5, 1.0]))
    array([0, 1, 2, 2])
    """

    def __init__(self, cuts: Array, *, many: bool) -> None:
        self._cuts = cuts
        self._table: Array | None = None
        # Edges i/B need no table.
        bins = cuts.size + 1
        self._equal = bins if np.array_equal(cuts, np.arange(1, bins) / bins) else 0
        if not many or not cuts.size:
            return
        cells = 1 << min(max((16 * cuts.size).bit_length(), 11), 18)
        edge = np.arange(cells + 1) / cells
        below = np.searchsorted(cuts, edge, side="right")
        inside = np.searchsorted(cuts, edge[1:], side="left") - below[:-1]
        below[:-1] = np.where(inside == 0, below[:-1], ~below[:-1])
        self._table, self._cells = below, cells
        self._one_cut_a_cell = bool(inside.max() <= 1)

    def __call__(self, score: Array) -> Array:
        """Return the group of each score in [0, 1], of any floating dtype."""
        if self._table is None or score.itemsize < 4:
            return self._search(score)
        if 0 < self._equal <= (10**4 if score.itemsize == 4 else 10**6):
            return equal_cells(score, self._equal)
        group = self._table.take((score * self._cells).astype(np.int32))
        if (unsure := np.flatnonzero(group < 0)).size:
            group[unsure] = self._compare(score[unsure], ~group[unsure])
        return group

    def _search(self, score: Array) -> Array:
        return np.searchsorted(self._cuts, score.astype(np.float64, copy=False), side="right")

    def _compare(self, score: Array, low: Array) -> Array:
        """Return the groups in cells that hold a cut; `low` is that of the cell's left end."""
        if not self._one_cut_a_cell:
            return self._search(score)
        return low + (score.astype(np.float64, copy=False) >= self._cuts[low])
