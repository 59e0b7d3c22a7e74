"""Evidence as sums per score cell: bounded memory, mergeable, the same answers as rows.

Cells are K equal parts of [0, 1]. The first and the last of them are divided further, each
octave of the distance to the wall into eighths, because the scores of a confident model crowd
there. Bin edges i/B with B a divisor of K are cell edges to the last bit, so such bins are
exact; elsewhere a cell goes to the bin that holds its mean score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from calibrant.evidence.locate import equal_cells
from calibrant.evidence.moments import Array, Bins, Moments, single, unbiased
from calibrant.evidence.quick import tally_equal
from calibrant.evidence.sample import SLACK, Sample

# Distances to the wall below this share one cell; 1 - 2^-50 is a few steps of float64 below 1.
NEAREST = 2.0**-50
# From so many rows of a single problem on, equal cells are summed apart from those at the walls.
LONG = 1 << 16
# Share of the variance of rows that fill a cell evenly below which they are taken for tied.
TIED = 0.25
# Keeps the exponent and three bits of the mantissa of a float64: eighths of an octave.
_SHIFT = 49


def _octave_eighth(distance: Array) -> Array:
    """Number of the eighth of an octave that a distance lies in, 0 below NEAREST."""
    code = distance.view(np.int64) >> _SHIFT
    return np.maximum(code - (_FIRST - 1), 0)


_FIRST = int(np.array([NEAREST]).view(np.int64)[0] >> _SHIFT)


@dataclass(frozen=True)
class Layout:
    """The cells: which one a score lies in, and the least and largest score of each."""

    uniform: int

    @property
    def size(self) -> int:
        """Number of cells."""
        return int(self.low.size)

    @property
    def low(self) -> Array:
        """Least score of each cell."""
        return _bounds(self.uniform)[0]

    @property
    def high(self) -> Array:
        """Largest score of each cell."""
        return _bounds(self.uniform)[1]

    def locate(self, score: Array) -> Array:
        """Cell of each score.

        >>> layout = Layout(720)
        >>> cell = layout.locate(np.array([0.29, 1.0]))
        >>> bool(layout.low[cell[0]] <= 0.29 <= layout.high[cell[0]]), int(cell[1]) == layout.size - 1
        (True, True)
        """
        score = score.astype(np.float64, copy=False)
        k, below, above = self.uniform, _depth(1 / self.uniform, open_end=True), self._top_depth
        cell = equal_cells(score, k).astype(np.intp)
        first, last = np.flatnonzero(cell == 0), np.flatnonzero(cell == k - 1)
        cell += below - 1
        if first.size:
            cell[first] = _octave_eighth(np.abs(score[first]))
        if last.size:
            cell[last] = below + k - 2 + above - 1 - _octave_eighth(1 - score[last])
        return cell

    @property
    def _top_depth(self) -> int:
        return _depth(1 - (self.uniform - 1) / self.uniform, open_end=False)


def _depth(distance: float, *, open_end: bool) -> int:
    """Number of cells between the wall and this distance."""
    end = np.nextafter(distance, 0) if open_end else distance
    return int(_octave_eighth(np.array([end]))[0]) + 1


@lru_cache(maxsize=8)
def _bounds(k: int) -> tuple[Array, Array]:
    def distances(depth: int) -> Array:
        return ((np.arange(depth) + _FIRST - 1) << _SHIFT).view(np.float64)

    below = distances(_depth(1 / k, open_end=True))
    below[0] = 0.0
    above = distances(_depth(1 - (k - 1) / k, open_end=False))
    above[0] = 0.0
    middle = np.arange(1, k) / k
    low_up = np.append(above[1:], np.inf)
    low_up = np.maximum(np.nextafter(1 - low_up, 2), (k - 1) / k)[::-1]
    low = np.concatenate([below, middle[:-1], low_up])
    edges = np.concatenate([below[1:], middle])
    high = np.concatenate([np.nextafter(edges, 0), (1 - above)[::-1]])
    low.flags.writeable = high.flags.writeable = False
    return low, high


FINE, COARSE = Layout(14400), Layout(720)


@dataclass(frozen=True, eq=False)
class Cells:
    """Five sums per cell for a batch of problems, scores measured from the cell's least score.

    Parameters
    ----------
    sums : Moments
        The sums; the last axis runs over the cells in score order.
    low, high : arrays
        The least and the largest score of each cell.
    squares : array
        Sum of the squared weights of each problem (the sum of the weights where they are counts).
    support : pair of floats
        Where scores can lie.

    Examples
    --------
    >>> cells = Cells.of(Sample(np.array([0.2, 0.7, 0.9]), np.array([False, True, True])))
    >>> cells.bins(np.array([0.5])).wy
    array([0., 2.])
    """

    sums: Moments
    low: Array
    high: Array
    squares: Array
    support: tuple[float, float] = (0.0, 1.0)

    @classmethod
    def of(cls, sample: Sample, layout: Layout = FINE) -> Cells:
        """Sum a sample into cells."""
        sums = _many(sample, layout) if _is_long(sample) else sample.cells(layout.locate, layout.low)
        return cls(sums, layout.low, layout.high, _squares(sample), sample.support)

    @classmethod
    def stack(cls, blocks: Sequence[Cells]) -> Cells:
        """Blocks of problems, one after the other along the first axis."""
        first = blocks[0]
        w, ws, wy, wsy, wss = (
            np.concatenate(part) for part in zip(*(block.sums.parts for block in blocks), strict=True)
        )
        sums = Moments(w, ws, wy, wsy, wss, first.sums.origin)
        squares = np.concatenate([block.squares for block in blocks])
        return cls(sums, first.low, first.high, squares, first.support)

    def __add__(self, other: Cells) -> Cells:
        """The evidence of both, as if their rows had come together."""
        return Cells(self.sums + other.sums, self.low, self.high, self.squares + other.squares, self.support)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for a single problem."""
        return self.sums.w.shape[:-1]

    @cached_property
    def n(self) -> Array:
        """Effective number of rows of each batch entry."""
        total = self.sums.w.sum(axis=-1)
        return np.where(self.squares == total, total, total**2 / self.squares)

    @property
    def counts(self) -> bool:
        """Whether weights are counts: each cell then holds a whole number of rows."""
        return bool(np.all(self.squares == self.sums.w.sum(axis=-1)))

    def bins(self, cuts: Array) -> Bins:
        """Sums over the groups between the cuts: group k holds cuts[k-1] <= s < cuts[k]."""
        return self.sums.bins.pooled(self._groups(cuts), cuts.shape[-1] + 1)

    def moments(self, cuts: Array, origin: Array, *, squares: bool = True) -> Moments:
        """All five sums over the same groups, scores measured from each group's origin."""
        return self.sums.pooled(self._groups(cuts), origin)

    def ranked(self, rank: Array) -> Array:
        """Score at each rank from 0 to n - 1.

        The rows of a cell are taken as equally spaced with the cell's mean and variance, which is
        exact for one row, for two, and for any number of tied ones. Where they spread far less than the
        cell is wide, most of them are tied, and all are taken to be.
        """
        w = self.sums.w * (self.n / self.sums.w.sum(axis=-1))[..., None]
        mass = np.cumsum(w, axis=-1)
        rank = np.broadcast_to(rank, (*self.batch, rank.shape[-1]))
        slack = 0.0 if self.counts else SLACK
        cell = np.empty(rank.shape, dtype=np.intp)
        for entry in np.ndindex(self.batch):
            limit = rank[entry] + slack * self.n[entry]
            cell[entry] = np.searchsorted(mass[entry], limit, side="right")
        cell = np.minimum(cell, np.broadcast_to(self._last, self.batch)[..., None])
        held = np.take_along_axis(w, cell, axis=-1)
        within = rank - (np.take_along_axis(mass, cell, axis=-1) - held)
        spread = 12 * self._variance
        spread = np.where((w > 2) & (spread < TIED * (self.high - self.low) ** 2), 0.0, spread)
        spacing = np.sqrt(spread / np.maximum(w * w - 1, 1))
        place = np.take_along_axis(self._position, cell, axis=-1)
        place += (within - (held - 1) / 2) * np.take_along_axis(spacing, cell, axis=-1) * (held > 1)
        return np.clip(place, self.low[cell], self.high[cell])

    def variance(self) -> Array:
        """Variance of the scores with n - 1 in the denominator; 0 for a single row."""
        centre = np.sum(self.sums.bins.ws, axis=-1, keepdims=True) / self.sums.w.sum(-1, keepdims=True)
        square = self.sums.about(centre).wss.sum(axis=-1) / self.sums.w.sum(axis=-1)
        # Scores that are all the same may leave a rounding below zero.
        return unbiased(np.maximum(square, 0.0), self.n)

    def squared(self) -> Cells:
        """The same evidence with squared weights; only their total is known, so all rows share alike."""
        share = (self.squares / self.sums.w.sum(axis=-1))[..., None]
        w, ws, wy, wsy, wss = (share * part for part in self.sums.parts)
        return replace(self, sums=Moments(w, ws, wy, wsy, wss, self.sums.origin))

    def rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Scores, outcomes and weights that stand for each batch entry: two rows a cell."""
        for entry in np.ndindex(self.batch):
            w, ws, wy, wsy = (
                part[entry] for part in (self.sums.w, self.sums.ws, self.sums.wy, self.sums.wsy)
            )
            weight = np.concatenate([w - wy, wy])
            offset = np.concatenate([ws - wsy, wsy])
            keep = weight > 0
            score = np.tile(self.low, 2)[keep] + offset[keep] / weight[keep]
            score = np.clip(score, np.tile(self.low, 2)[keep], np.tile(self.high, 2)[keep])
            outcome = np.repeat([0.0, 1.0], w.size)[keep]
            yield score, outcome, weight[keep]

    def atoms(self) -> Moments:
        """Moments of the cells, in score order."""
        return self.sums

    def resample(self, rng: np.random.Generator, size: int) -> Cells:
        """`size` bootstrap samples: every cell's positive and negative rows counted anew."""
        s = self._occupied.sums
        part = np.stack([s.w - s.wy, s.wy])
        count = rng.multinomial(round(float(self.n)), (part / part.sum()).ravel(), size)
        return self._occupied._reweighted(count.reshape(size, *part.shape), part)

    def redraw(self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int) -> Cells:
        """`size` samples of the same scores with outcomes drawn from `probability(score)`."""
        kept = self._occupied
        s, scale = kept.sums, float(self.n) / kept.sums.w.sum()
        chance = np.broadcast_to(probability(kept._position), s.w.shape)
        held = np.maximum(np.rint(s.w * scale), 1).astype(np.int64)
        wy = rng.binomial(held, chance, (size, *s.w.shape)) / held * s.w
        zero = np.zeros((size, 1))
        sums = Moments(s.w + zero, s.ws + zero, wy, wy * kept._offset, s.wss + zero, s.origin)
        return Cells(sums, kept.low, kept.high, np.full(size, float(self.squares)), self.support)

    def _reweighted(self, count: Array, part: Array) -> Cells:
        s = self.sums
        sums = np.stack([s.ws - s.wsy, s.wsy])
        mean = np.divide(sums, part, out=np.zeros(part.shape), where=part > 0)
        square = s.wss / s.w
        w, wx = count.sum(axis=1), count * mean
        moments = Moments(w, wx.sum(axis=1), count[:, 1], wx[:, 1], w * square, s.origin)
        return Cells(moments, self.low, self.high, w.sum(axis=-1).astype(float), self.support)

    @cached_property
    def _occupied(self) -> Cells:
        """The same evidence without its empty cells; for a single problem."""
        single(self.batch)
        keep = self.sums.w > 0
        return Cells(self.sums[keep], self.low[keep], self.high[keep], self.squares, self.support)

    def __getitem__(self, entry: Any) -> Cells:
        """One problem of a batch, or some of them."""
        w, ws, wy, wsy, wss = (part[entry] for part in self.sums.parts)
        sums = Moments(w, ws, wy, wsy, wss, self.sums.origin)
        return Cells(sums, self.low, self.high, self.squares[entry], self.support)

    @cached_property
    def _offset(self) -> Array:
        """Mean distance of a cell's rows from its least score."""
        return np.divide(self.sums.ws, self.sums.w, out=np.zeros(self.sums.w.shape), where=self.sums.w > 0)

    @cached_property
    def _position(self) -> Array:
        """Mean score of each cell; a mean may round out of its cell, so it is held inside."""
        return np.clip(self.low + self._offset, self.low, self.high)

    @cached_property
    def _variance(self) -> Array:
        """Variance of the scores within each cell; 0 where only rounding is left of it."""
        s = self.sums
        square = np.divide(s.wss, s.w, out=np.zeros(s.w.shape), where=s.w > 0)
        variance = square - self._offset**2
        return np.where(variance > 1e-9 * square, variance, 0.0)

    @property
    def _last(self) -> Array:
        """Last cell that holds anything."""
        held = self.sums.w > 0
        return held.shape[-1] - 1 - np.argmax(held[..., ::-1], axis=-1)

    def _groups(self, cuts: Array) -> Array:
        """Number of cuts at or below each cell's mean score."""
        if cuts.ndim == 1:
            return np.searchsorted(cuts, self._position, side="right")
        group = np.empty(self._position.shape, dtype=np.intp)
        cuts = np.broadcast_to(cuts, (*self.batch, cuts.shape[-1]))
        for entry in np.ndindex(self.batch):
            group[entry] = np.searchsorted(cuts[entry], self._position[entry], side="right")
        return group


def _is_long(sample: Sample) -> bool:
    score = sample.score
    return score.shape == sample.outcome.shape == (score.size,) and score.size >= LONG and score.itemsize >= 4


def _many(sample: Sample, layout: Layout) -> Moments:
    """The sums of many rows of one problem."""
    k, score = layout.uniform, sample.score
    outer = np.flatnonzero((score < 1 / k) | (score >= (k - 1) / k))
    if 4 * outer.size > score.size:  # most would be summed twice
        return sample.cells(layout.locate, layout.low)
    inner = np.zeros((3, 2, layout.size))
    first = int(layout.locate(np.array([1 / k]))[0])
    inner[..., first : first + k - 2] = tally_equal(score, sample.outcome, sample.weight, k)[..., 1:-1]
    w, ws, wss = inner
    sums = Moments(w[0] + w[1], ws[0] + ws[1], w[1], ws[1], wss[0] + wss[1], layout.low)
    if outer.size:
        sums = sums + sample[outer].cells(layout.locate, layout.low)
    return sums


def _squares(sample: Sample) -> Array:
    total = np.ones(1) if sample.weight is None else sample.weight
    total = np.broadcast_to(total if sample.counts else np.square(total), sample.shape)
    return total.sum(axis=-1, dtype=np.float64)
