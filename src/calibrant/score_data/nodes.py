"""Rows as weighted nodes that have the same sums under every smooth kernel, however many rows there are.

A row belongs to the nearer wall. Its distance from there lies in a cell that the exponent of the distance and
the first bits of its mantissa tell: cells are as narrow beside their distance everywhere, and need no
logarithm. The moments of the place within a cell become weights of as many Chebyshev nodes, under which every
polynomial of lower degree has the sum that it has over the rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibrant.score_data import Array, Cells, Sample, ScoreData
from calibrant.score_data.layout import NEAREST

# Up to this many rows are nodes themselves.
ROWS = 4096
# Bits of the mantissa that tell cells apart: few up to the distance 2^-FAR, where kernels change by octaves.
BITS, FAR_BITS, FAR = 6, 2, 60
# Distances below 2^-NONE are none.
NONE = 1000
# Cells before the near ones, the wall among them.
_FIRST_NEAR = ((NONE - FAR) << FAR_BITS) + 1
# Moments of a cell, and nodes in it.
MOMENTS = 6
# Rows summed at a time: they stay in the cache.
CHUNK = 1 << 15


@dataclass(frozen=True, eq=False)
class Nodes:
    """Weighted places between two walls that are 1 apart, of one problem or of a batch of equal length.

    Attributes
    ----------
    below, above : arrays
        Distance from the lower and from the upper wall: each of full precision where it is small.
    weights : array
        Mass and positive mass of each node, on a last axis; single ones may be negative.
    """

    below: Array
    above: Array
    weights: Array

    @property
    def total(self) -> Array:
        """Mass and positive mass of each problem."""
        return np.ones(self.below.shape[-1]) @ self.weights

    @property
    def on_walls(self) -> Array:
        """Mass and positive mass on the lower and on the upper wall: shape (..., 2, 2)."""
        on = np.stack([self.below == 0, self.above == 0], axis=-2)
        return on.astype(np.float64) @ self.weights

    @classmethod
    def of_rows(cls, score: Array, outcome: Array, weight: Array, support: tuple[float, float]) -> Nodes:
        """Take every row for a node."""
        return cls(*_distances(score, support), np.stack([weight, weight * outcome], axis=-1))

    @classmethod
    def of_cells(
        cls, score: Array, outcome: Array, weight: Array, support: tuple[float, float], bits: int = BITS
    ) -> Nodes:
        """Sum rows cell by cell: six nodes a cell, however many rows are in it.

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
            part = slice(a, a + CHUNK)
            below, above = _distances(score[part], support)
            upper = above < below
            distance = np.minimum(below, above)
            cell = _cell_of(distance, bits)
            place = distance - left[cell]
            place *= scale[cell]
            place -= 1
            cell += size * upper
            cell += cell
            cell += outcome[part].astype(np.intp)
            factor = weight[part]
            for power, sums in enumerate(moments):
                sums += np.bincount(cell, factor, minlength=4 * size)
                factor = factor * place if power < MOMENTS - 1 else factor
        by_outcome = moments.reshape(MOMENTS, 2 * size, 2)
        held = np.flatnonzero(by_outcome[0].any(axis=-1))
        root, inverse = _chebyshev()
        negative, positive = (inverse @ sums for sums in np.moveaxis(by_outcome[:, held], -1, 0))
        weights = np.stack([(negative + positive).T.ravel(), positive.T.ravel()], axis=-1)
        cell = held % size
        distance = (left[cell, None] + (root + 1) / 2 * width[cell, None]).ravel()
        upper = np.repeat(held >= size, MOMENTS)
        other = 1 - distance
        return cls(np.where(upper, other, distance), np.where(upper, distance, other), weights)

    def over(self, divisor: Array) -> Nodes:
        """Return the same places with weights over a divisor; those whose divisor is 0 keep them."""
        divisor = np.where(divisor > 0, divisor, 1.0)[..., None]
        return Nodes(self.below, self.above, self.weights / divisor)

    def alone(self) -> Nodes:
        """Return one problem as a batch."""
        return Nodes(self.below[None], self.above[None], self.weights[None])


def nodes(data: ScoreData, bits: Iterable[int]) -> Iterator[Nodes]:
    """Yield the nodes of all problems in batches along a first axis; many rows by cells of so many bits.

    Those of a sketch are at the mean scores of the positive and of the negative rows of each of its cells.
    Its outermost cells, which are 2^-50 wide, are the walls.
    """
    if isinstance(data, Sample) and data.shape[-1] <= ROWS:
        weight = np.ones(1) if data.weight is None else data.weight
        shape = (-1, data.shape[-1])
        parts = (np.broadcast_to(part, data.shape) for part in (data.score, data.outcome, weight))
        score, outcome, weight = (part.reshape(shape).astype(np.float64) for part in parts)
        step = max(1, CHUNK // shape[1])
        for part in (slice(a, a + step) for a in range(0, len(score), step)):
            yield Nodes.of_rows(score[part], outcome[part], weight[part], data.support)
        return
    for (score, outcome, weight), own in zip(data.rows(), bits, strict=True):
        if isinstance(data, Cells):
            score = np.where(score < NEAREST, 0.0, np.where(1 - score < NEAREST, 1.0, score))
        if score.size > ROWS:
            yield Nodes.of_cells(score, outcome, weight, data.support, own).alone()
        else:
            yield Nodes.of_rows(score, outcome, weight, data.support).alone()


def _distances(score: Array, support: tuple[float, float]) -> tuple[Array, Array]:
    """Return the distances from both walls, whose own distance is 1.

    >>> [part.tolist() for part in _distances(np.array([0.25, 1.0]), (0.25, 1.0))]
    [[0.0, 1.0], [1.0, 0.0]]
    """
    low, high = support
    # A confidence may be below 1/C by rounding.
    below, above = np.maximum(score - low, 0.0), high - score
    if high - low == 1:
        return below, above
    return below / (high - low), above / (high - low)


def _cell_of(distance: Array, bits: int) -> Array:
    """Return the cell of distances up to one half: 0 for the wall, those up to 2^-FAR, then the others."""
    code = distance.view(np.int64)
    cell = (code >> (52 - bits)) + (_FIRST_NEAR - ((1023 - FAR) << bits))
    if (far := np.flatnonzero(distance < 2.0**-FAR)).size:
        cell[far] = np.maximum((code[far] >> (52 - FAR_BITS)) - ((1023 - NONE) << FAR_BITS) + 1, 0)
    return cell


@lru_cache(maxsize=8)
def _cells(bits: int) -> tuple[Array, Array]:
    """Return the left end and the width of each cell between a wall and the middle."""
    far = (np.arange((1023 - NONE) << FAR_BITS, (1023 - FAR) << FAR_BITS) << (52 - FAR_BITS)).view(np.float64)
    near = (np.arange((1023 - FAR) << bits, (1022 << bits) + 2) << (52 - bits)).view(np.float64)
    edge = np.concatenate([[0.0], far, near])
    width = np.diff(edge)
    width[0] = 0.0
    return edge[:-1], width


@lru_cache(maxsize=1)
def _chebyshev() -> tuple[Array, Array]:
    """Return the nodes of a cell from -1 to 1, and the matrix that makes weights of moments."""
    root = np.cos(np.pi * (np.arange(MOMENTS) + 0.5) / MOMENTS)
    return root, np.linalg.inv(np.vander(root, increasing=True).T)
