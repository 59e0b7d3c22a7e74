"""Rows as weighted nodes with the same sums under every smooth kernel, for any number of rows.

A row is assigned to the nearer boundary, 0 or 1. Its distance from the boundary lies in a cell, which is
given by the exponent and the first bits of the mantissa of the distance: the relative width of all cells is
the same, and no logarithm is needed. The moments of the positions within a cell are converted to weights of
as many Chebyshev nodes, so that every polynomial of lower degree has the same sum over the nodes as over the
rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibrant.score_data import Array, Cells, Sample, ScoreData
from calibrant.score_data.layout import NEAREST

# Up to this many rows, every row is a node.
ROWS = 4096
# Bits of the mantissa that define the cells: fewer below the distance 2^-FAR, where kernels change slowly.
BITS, FAR_BITS, FAR = 6, 2, 60
# Distances below 2^-NONE are treated as zero.
NONE = 1000
# Number of cells below the distance 2^-FAR, including the boundary.
_FIRST_NEAR = ((NONE - FAR) << FAR_BITS) + 1
# Number of moments and of nodes of a cell.
MOMENTS = 6
# Rows summed at a time, so that they stay in the cache.
CHUNK = 1 << 15


@dataclass(frozen=True, eq=False)
class Nodes:
    """Weighted points between the boundaries 0 and 1, of one problem or of a batch of equal length.

    Attributes
    ----------
    below, above : arrays
        Distance from the lower and from the upper boundary, each with full precision if it is small.
    weights : array
        Mass and positive mass of each node, on the last axis; weights may be negative.
    """

    below: Array
    above: Array
    weights: Array

    @property
    def total(self) -> Array:
        """Mass and positive mass of each problem."""
        return np.ones(self.below.shape[-1]) @ self.weights

    @property
    def boundary_mass(self) -> Array:
        """Mass and positive mass at the lower and at the upper boundary: shape (..., 2, 2)."""
        on = np.stack([self.below == 0, self.above == 0], axis=-2)
        return on.astype(np.float64) @ self.weights

    @classmethod
    def of_rows(cls, score: Array, outcome: Array, weight: Array, support: tuple[float, float]) -> Nodes:
        """Use every row as a node."""
        return cls(*_distances(score, support), np.stack([weight, weight * outcome], axis=-1))

    @classmethod
    def of_cells(
        cls, score: Array, outcome: Array, weight: Array, support: tuple[float, float], bits: int = BITS
    ) -> Nodes:
        """Sum rows by cell, with six nodes per cell.

        >>> rng = np.random.default_rng(0)
        >>> rows = rng.random(9999), rng.random(9999) < 0.5, np.ones(9999), (0.0, 1.0)
        >>> every, few = Nodes.of_rows(*rows), Nodes.of_cells(*rows, bits=2)
        >>> sums = [nodes.weights.T @ np.exp(-nodes.below) for nodes in (every, few)]
        >>> few.below.size, bool(np.allclose(*sums, rtol=1e-9))
        (528, True)
        """
        left, width = _cells(bits)
        size = left.size
        scale = np.divide(2.0, width, out=np.zeros(size), where=width > 0)
        moments = np.zeros((MOMENTS, 4 * size))
        for a in range(0, score.size, CHUNK):
            chunk = slice(a, a + CHUNK)
            below, above = _distances(score[chunk], support)
            upper = above < below
            distance = np.minimum(below, above)
            cell = _cell_of(distance, bits)
            place = distance - left[cell]
            place *= scale[cell]
            place -= 1
            cell += size * upper
            cell += cell
            cell += outcome[chunk].astype(np.intp)
            factor = weight[chunk]
            for power, sums in enumerate(moments):
                sums += np.bincount(cell, factor, minlength=4 * size)
                factor = factor * place if power < MOMENTS - 1 else factor
        by_outcome = moments.reshape(MOMENTS, 2 * size, 2)
        occupied = np.flatnonzero(by_outcome[0].any(axis=-1))
        root, inverse = _chebyshev()
        negative, positive = (inverse @ sums for sums in np.moveaxis(by_outcome[:, occupied], -1, 0))
        weights = np.stack([(negative + positive).T.ravel(), positive.T.ravel()], axis=-1)
        cell = occupied % size
        distance = (left[cell, None] + (root + 1) / 2 * width[cell, None]).ravel()
        upper = np.repeat(occupied >= size, MOMENTS)
        other = 1 - distance
        return cls(np.where(upper, other, distance), np.where(upper, distance, other), weights)

    def over(self, divisor: Array) -> Nodes:
        """Divide the weights by a divisor; weights with divisor 0 are kept."""
        divisor = np.where(divisor > 0, divisor, 1.0)[..., None]
        return Nodes(self.below, self.above, self.weights / divisor)

    def alone(self) -> Nodes:
        """Return a single problem as a batch of one."""
        return Nodes(self.below[None], self.above[None], self.weights[None])


def nodes(data: ScoreData, bits: Iterable[int]) -> Iterator[Nodes]:
    """Yield the nodes of all problems in batches along the first axis.

    Large problems are summed into cells with `bits` bits of the mantissa. The nodes of a sketch are the mean
    scores of the positive and of the negative rows of each cell. Its outermost cells, of width 2^-50, are
    treated as the boundaries.
    """
    if isinstance(data, Sample) and data.shape[-1] <= ROWS:
        weight = np.ones(1) if data.weight is None else data.weight
        shape = (-1, data.shape[-1])
        parts = (np.broadcast_to(chunk, data.shape) for chunk in (data.score, data.outcome, weight))
        score, outcome, weight = (chunk.reshape(shape).astype(np.float64) for chunk in parts)
        step = max(1, CHUNK // shape[1])
        for chunk in (slice(a, a + step) for a in range(0, len(score), step)):
            yield Nodes.of_rows(score[chunk], outcome[chunk], weight[chunk], data.support)
        return
    for (score, outcome, weight), n_bits in zip(data.rows(), bits, strict=True):
        if isinstance(data, Cells):
            score = np.where(score < NEAREST, 0.0, np.where(1 - score < NEAREST, 1.0, score))
        if score.size > ROWS:
            yield Nodes.of_cells(score, outcome, weight, data.support, n_bits).alone()
        else:
            yield Nodes.of_rows(score, outcome, weight, data.support).alone()


def _distances(score: Array, support: tuple[float, float]) -> tuple[Array, Array]:
    """Return the distances from both ends of the support, scaled to a support of length 1.

    >>> [chunk.tolist() for chunk in _distances(np.array([0.25, 1.0]), (0.25, 1.0))]
    [[0.0, 1.0], [1.0, 0.0]]
    """
    low, high = support
    # Rounding may move a confidence below 1/C.
    below, above = np.maximum(score - low, 0.0), high - score
    if high - low == 1:
        return below, above
    return below / (high - low), above / (high - low)


def _cell_of(distance: Array, bits: int) -> Array:
    """Return the cell of distances up to 1/2: 0 is the boundary, then those up to 2^-FAR, then the rest."""
    code = distance.view(np.int64)
    cell = (code >> (52 - bits)) + (_FIRST_NEAR - ((1023 - FAR) << bits))
    if (far := np.flatnonzero(distance < 2.0**-FAR)).size:
        cell[far] = np.maximum((code[far] >> (52 - FAR_BITS)) - ((1023 - NONE) << FAR_BITS) + 1, 0)
    return cell


@lru_cache(maxsize=8)
def _cells(bits: int) -> tuple[Array, Array]:
    """Return the lower edges and the width of each cell between a boundary and 1/2."""
    far = (np.arange((1023 - NONE) << FAR_BITS, (1023 - FAR) << FAR_BITS) << (52 - FAR_BITS)).view(np.float64)
    near = (np.arange((1023 - FAR) << bits, (1022 << bits) + 2) << (52 - bits)).view(np.float64)
    edges = np.concatenate([[0.0], far, near])
    width = np.diff(edges)
    width[0] = 0.0
    return edges[:-1], width


@lru_cache(maxsize=1)
def _chebyshev() -> tuple[Array, Array]:
    """Return the Chebyshev nodes on [-1, 1], and the matrix that converts moments to weights."""
    root = np.cos(np.pi * (np.arange(MOMENTS) + 0.5) / MOMENTS)
    return root, np.linalg.inv(np.vander(root, increasing=True).T)
