"""Layout of the score cells.

Cells are K equal parts of [0, 1]. The first and the last part are divided further, each octave of the
distance to 0 or 1 into eighths, because the scores of a confident model are concentrated there. Bin edges i/B
with B a divisor of K are exactly cell edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from calibrant.score_data.moments import Array

# Distances to 0 or 1 below this share one cell; 1 - 2^-50 is a few steps of float64 below 1.
NEAREST = 2.0**-50
# Keeps the exponent and three bits of the mantissa of a float64: eighths of an octave.
_SHIFT = 49
_FIRST = int(np.array([NEAREST]).view(np.int64)[0] >> _SHIFT)


@dataclass(frozen=True)
class Layout:
    """Score cells: their bounds, and the cell of each score.

    Attributes
    ----------
    uniform : int
        Number of equal parts.
    low, high : arrays
        Smallest and largest score of each cell.
    parts : array
        Edges of the equal parts; the last one is infinite because 1 belongs to the last part.
    """

    uniform: int
    low: Array = field(init=False, repr=False, compare=False)
    high: Array = field(init=False, repr=False, compare=False)
    parts: Array = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = _bounds(self.uniform)
        parts = np.append(np.arange(self.uniform) / self.uniform, np.inf)
        for name, array in {"low": low, "high": high, "parts": parts}.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.low.size)

    @property
    def boundary_cells(self) -> tuple[int, int, int, int]:
        """Cell counts of the first and the last part, and constants that map a distance to its cell."""
        return (*_depths(self.uniform), _FIRST, _SHIFT)

    def locate(self, score: Array) -> Array:
        """Return the cell of each score.

        >>> layout = Layout(720)
        >>> cell = layout.locate(np.array([0.29, 1.0]))
        >>> bool(layout.low[cell[0]] <= 0.29 <= layout.high[cell[0]]), int(cell[1]) == layout.size - 1
        (True, True)
        """
        flat = score.astype(np.float64, copy=False).ravel()
        k, (below, above) = self.uniform, _depths(self.uniform)
        cell = (flat * k).astype(np.intp)
        # The product is rounded: compare with the edges to correct the cell.
        cell -= flat < self.parts[cell]
        cell += flat >= self.parts[cell + 1]
        first, last = np.flatnonzero(cell == 0), np.flatnonzero(cell == k - 1)
        cell += below - 1
        if first.size:
            cell[first] = _octave_eighth(np.abs(flat[first]))
        if last.size:
            cell[last] = below + k - 2 + above - 1 - _octave_eighth(1 - flat[last])
        return cell.reshape(score.shape)


def _octave_eighth(distance: Array) -> Array:
    """Return the index of the eighth of an octave that contains a distance; 0 below NEAREST."""
    code = distance.view(np.int64) >> _SHIFT
    return np.maximum(code - (_FIRST - 1), 0)


@lru_cache(maxsize=8)
def _depths(k: int) -> tuple[int, int]:
    """Return the number of cells in the first and in the last of k equal parts."""
    ends = np.array([np.nextafter(1 / k, 0), 1 - (k - 1) / k])
    below, above = (_octave_eighth(ends) + 1).tolist()
    return below, above


def _bounds(k: int) -> tuple[Array, Array]:
    below, above = (((np.arange(depth) + _FIRST - 1) << _SHIFT).view(np.float64) for depth in _depths(k))
    below[0] = above[0] = 0.0
    middle = np.arange(1, k) / k
    low_up = np.append(above[1:], np.inf)
    low_up = np.maximum(np.nextafter(1 - low_up, 2), (k - 1) / k)[::-1]
    low = np.concatenate([below, middle[:-1], low_up])
    edges = np.concatenate([below[1:], middle])
    high = np.concatenate([np.nextafter(edges, 0), (1 - above)[::-1]])
    return low, high


FINE, COARSE = Layout(14400), Layout(720)
