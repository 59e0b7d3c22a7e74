"""Score data as sums per score cell: bounded memory, mergeable, with the same interface as rows.

Cells are K equal parts of [0, 1]. The first and the last part are divided further, each octave of the
distance to 0 or 1 into eighths, because the scores of a confident model are concentrated there. Bin edges i/B
with B a divisor of K are exactly cell edges, so such bins are exact. For other edges a cell is assigned to
the bin that contains its mean score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data import tally
from calibrant.score_data.layout import COARSE, FINE, Layout
from calibrant.score_data.moments import Array, Bins, Moments, single, unbiased
from calibrant.score_data.sample import SLACK, Sample

# Relative rounding error of a sum of weights.
ROUNDING = 1e-9
# Rows of a cell are treated as tied if their variance is below this share of that of a uniform distribution.
TIED = 0.25
# Largest number of problems for which fine cells are used.
FINE_UP_TO = 20


def layout_for(n_problems: int) -> Layout:
    """Return the layout for a number of problems: fine cells for few problems, coarse cells for many.

    >>> layout_for(1) == layout_for(20) == FINE, layout_for(21) == COARSE
    (True, True)
    """
    return FINE if n_problems <= FINE_UP_TO else COARSE


@dataclass(frozen=True, eq=False)
class Cells:
    """Five or six sums per cell for a batch of problems, with scores relative to the lower end of the cell.

    Parameters
    ----------
    sums : Moments
        The sums; the last axis runs over the cells in score order.
    low, high : arrays
        The smallest and the largest score of each cell.
    squares : array
        Sum of the squared weights of each problem (the sum of the weights if they are counts).
    support : pair of floats
        Range of possible scores.
    spread : array, optional
        Sum of the squared weights of each cell. If missing, weights are counts, or all rows of a problem are
        assumed to have equal weights.
    lease : object, optional
        Kept alive by these cells and their parts, so that the owner of the arrays does not change them.

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
    spread: Array | None = None
    lease: object = None

    @classmethod
    def of(cls, sample: Sample, layout: Layout = FINE, powers: int = 2) -> Cells:
        """Sum a sample into cells, with powers of the scores up to `powers`."""
        rows, squares = (sample.score, sample.outcome, sample.weight), not sample.counts
        sums = tally.sums_in_cells(*rows, layout, powers, squares=squares)
        moments = Moments.by_outcome(sums[: powers + 1], layout.low)
        spread = sums[-1, 0] + sums[-1, 1] if squares else None
        return cls(moments, layout.low, layout.high, sample.squares, sample.support, spread)

    def __add__(self, other: Cells) -> Cells:
        """Merge two data sets, as if their rows had been summed together."""
        spread = None if self.counts and other.counts else self.squared_weights + other.squared_weights
        squares = self.squares + other.squares
        return Cells(self.sums + other.sums, self.low, self.high, squares, self.support, spread)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for a single problem."""
        return np.broadcast_shapes(self.sums.w.shape, self.sums.wy.shape)[:-1]

    @property
    def _broadcast_sums(self) -> Moments:
        """The sums broadcast to the batch; simulated outcomes share the sums of the scores."""
        return self.sums.each(lambda array: np.broadcast_to(array, (*self.batch, self.low.size)))

    @cached_property
    def n(self) -> Array:
        """Effective number of rows of each batch entry."""
        total = np.broadcast_to(self.sums.w.sum(axis=-1), self.batch)
        return np.where(self.squares == total, total, total**2 / self.squares)

    @property
    def counts(self) -> bool:
        """Whether weights are counts."""
        if self.spread is not None:
            return False
        # Both are sums of the counts in different order, and may differ by rounding above 2^53.
        total = self.sums.w.sum(axis=-1)
        return bool(np.all(np.abs(self.squares - total) <= ROUNDING * total))

    @property
    def arrays(self) -> tuple[Array, ...]:
        """The stored sums: five, or six with squared weights."""
        return self.sums.parts if self.spread is None else (*self.sums.parts, self.spread)

    @property
    def squared_weights(self) -> Array:
        """Sum of the squared weights of each cell (of the weights, if they are counts)."""
        if self.spread is not None:
            return np.broadcast_to(self.spread, (*self.batch, self.low.size))
        w = self._broadcast_sums.w
        return w * (self.squares / w.sum(axis=-1))[..., None]

    @cached_property
    def score(self) -> Array:
        """Mean score of each cell, clipped to the cell because of rounding."""
        return np.clip(self.low + self._offset, self.low, self.high)

    @cached_property
    def variance_within(self) -> Array:
        """Variance of the scores within each cell; 0 if it is only a rounding error."""
        s = self.sums
        square = np.divide(s.wss, s.w, out=np.zeros(s.w.shape), where=s.w > 0)
        variance = square - self._offset**2
        return np.where(variance > 1e-9 * square, variance, 0.0)

    def bins(self, cuts: Array) -> Bins:
        """Sum the groups between the cuts: group k contains cuts[k-1] <= s < cuts[k]."""
        size = cuts.shape[-1] + 1
        bins = self.sums.bins.pooled(self._groups(cuts), size)
        return Bins(*(np.broadcast_to(array, (*self.batch, size)) for array in (bins.w, bins.ws, bins.wy)))

    def moments(self, cuts: Array, origin: Array) -> Moments:
        """Return all five sums over the same groups, with scores relative to the origin of each group."""
        group = self._groups(cuts)
        origin = origin[:1] if origin.ndim > 1 and _all_equal(origin) else origin
        batch = np.broadcast_shapes(group.shape[:-1], origin.shape[:-1])
        sums = self.sums.pooled(np.broadcast_to(group, (*batch, group.shape[-1])), origin)
        return sums.each(lambda array: np.broadcast_to(array, (*self.batch, origin.shape[-1])))

    def score_at_rank(self, rank: Array) -> Array:
        """Return the score at each rank from 0 to n - 1.

        The rows of a cell are assumed to be equally spaced with the mean and variance of the cell. This is
        exact for one row, for two rows, and for tied rows. Rows whose variance is small compared with the
        width of the cell are treated as tied.
        """
        w, n, batch = self.sums.w, self.n, self.batch
        if w.shape[:-1] != batch and _all_equal(rank):  # scores and ranks are shared by all entries
            n, rank, batch = n[:1], rank if rank.ndim == 1 else rank[:1], (1,)
        w = np.broadcast_to(w, (*batch, w.shape[-1]))
        w = w * (n / w.sum(axis=-1))[..., None]
        mass = np.cumsum(w, axis=-1)
        rank = np.broadcast_to(rank, (*batch, rank.shape[-1]))
        slack = 0.0 if self.counts else SLACK
        cell = np.empty(rank.shape, dtype=np.intp)
        for entry in np.ndindex(batch):
            limit = rank[entry] + slack * n[entry]
            cell[entry] = np.searchsorted(mass[entry], limit, side="right")
        cell = np.minimum(cell, np.broadcast_to(self._last, batch)[..., None])
        rows_in_cell = np.take_along_axis(w, cell, axis=-1)
        within = rank - (np.take_along_axis(mass, cell, axis=-1) - rows_in_cell)
        spread = 12 * self.variance_within
        spread = np.where((w > 2) & (spread < TIED * (self.high - self.low) ** 2), 0.0, spread)
        spacing = np.sqrt(spread / np.maximum(w * w - 1, 1))
        score = np.take_along_axis(self.score, cell, axis=-1)
        score += (
            (within - (rows_in_cell - 1) / 2)
            * np.take_along_axis(spacing, cell, axis=-1)
            * (rows_in_cell > 1)
        )
        score = np.clip(score, self.low[cell], self.high[cell])
        return np.broadcast_to(score, (*self.batch, score.shape[-1]))

    def variance(self) -> Array:
        """Return the variance of the scores with n - 1 in the denominator; 0 for a single row."""
        centre = np.sum(self.sums.bins.ws, axis=-1, keepdims=True) / self.sums.w.sum(-1, keepdims=True)
        square = self.sums.about(centre).wss.sum(axis=-1) / self.sums.w.sum(axis=-1)
        # For equal scores rounding may give a negative value.
        return unbiased(np.maximum(square, 0.0), self.n)

    def squared(self) -> Cells:
        """Return the same data with squared weights, assuming equal weights within a cell."""
        if self.counts:
            return self
        w = self.sums.w
        if self.spread is None:
            share = (self.squares / w.sum(axis=-1))[..., None]
        else:
            share = np.divide(self.spread, w, out=np.zeros(w.shape), where=w > 0)
        return replace(self, sums=self.sums.each(lambda array: share * array))

    def rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield scores, outcomes and weights that represent each batch entry: two rows per cell."""
        for entry in np.ndindex(self.batch):
            w, ws, wy, wsy, _ = (array[entry] for array in self._broadcast_sums.parts)
            weight = np.concatenate([w - wy, wy])
            offset = np.concatenate([ws - wsy, wsy])
            keep = weight > 0
            score = np.tile(self.low, 2)[keep] + offset[keep] / weight[keep]
            score = np.clip(score, np.tile(self.low, 2)[keep], np.tile(self.high, 2)[keep])
            outcome = np.repeat([0.0, 1.0], w.size)[keep]
            yield score, outcome, weight[keep]

    def tie_groups(self) -> Moments:
        """Return the moments of the cells, in score order."""
        return self._broadcast_sums

    def resample(self, rng: np.random.Generator, size: int) -> Cells:
        """Draw `size` bootstrap samples, by resampling the positive and negative rows of each cell."""
        kept = self._occupied
        s = kept.sums
        array, sums = np.stack([s.w - s.wy, s.wy]), np.stack([s.ws - s.wsy, s.wsy])
        count = rng.multinomial(round(float(self.n)), (array / array.sum()).ravel(), size)
        count = count.reshape(size, *array.shape)
        w, wx = count.sum(axis=1), count * np.divide(sums, array, out=np.zeros(array.shape), where=array > 0)
        moments = Moments(w, wx.sum(axis=1), count[:, 1], wx[:, 1], w * (s.wss / s.w), s.origin)
        return Cells(moments, kept.low, kept.high, w.sum(axis=-1).astype(float), self.support)

    def simulate_outcomes(
        self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int
    ) -> Cells:
        """Draw `size` samples of the same scores with outcomes drawn from `probability(score)`.

        If `probability` returns several rows, `size` samples are drawn for each of them in turn.
        """
        from calibrant.score_data.draws import binomial, broadcast_probability

        kept = self._occupied
        s, rows = kept.sums, kept._effective_rows
        wy = binomial(rng, rows, broadcast_probability(probability(kept.score), s.w.size), size)
        if not np.array_equal(rows, s.w):
            wy /= rows
            wy *= s.w
        sums = Moments(s.w[None], s.ws[None], wy, wy * kept._offset, s.wss[None], s.origin)
        total = np.full(len(wy), float(self.squares))
        return Cells(sums, kept.low, kept.high, total, self.support, kept.spread)

    @cached_property
    def _occupied(self) -> Cells:
        """The same data without empty cells, for a single problem."""
        single(self.batch)
        keep = self.sums.w > 0
        spread = None if self.spread is None else self.spread[keep]
        return Cells(self.sums[keep], self.low[keep], self.high[keep], self.squares, self.support, spread)

    @cached_property
    def _effective_rows(self) -> Array:
        """Effective number of rows of each cell, rounded and at least 1."""
        w, squares = self.sums.w, self.squared_weights
        rows = np.divide(w**2, squares, out=np.ones(w.shape), where=squares > 0)
        return np.maximum(np.rint(rows), 1).astype(np.int64)

    def __getitem__(self, entry: Any) -> Cells:
        """Return one problem of a batch, or some of them."""
        sums = self._broadcast_sums.each(lambda array: array[entry])
        spread = None if self.spread is None else self.squared_weights[entry]
        return replace(self, sums=sums, squares=self.squares[entry], spread=spread)

    @cached_property
    def _offset(self) -> Array:
        """Mean score of each cell relative to its lower end."""
        return np.divide(self.sums.ws, self.sums.w, out=np.zeros(self.sums.w.shape), where=self.sums.w > 0)

    @property
    def _last(self) -> Array:
        """Index of the last non-empty cell."""
        rows_in_cell = self.sums.w > 0
        return rows_in_cell.shape[-1] - 1 - np.argmax(rows_in_cell[..., ::-1], axis=-1)

    def _groups(self, cuts: Array) -> Array:
        """Count the cuts at or below each cell's mean score."""
        if _all_equal(cuts):
            return np.searchsorted(cuts if cuts.ndim == 1 else cuts[0], self.score, side="right")
        score = np.broadcast_to(self.score, (*self.batch, self.score.shape[-1]))
        group = np.empty(score.shape, dtype=np.intp)
        cuts = np.broadcast_to(cuts, (*self.batch, cuts.shape[-1]))
        for entry in np.ndindex(self.batch):
            group[entry] = np.searchsorted(cuts[entry], score[entry], side="right")
        return group


def _all_equal(rows: Array) -> bool:
    """Whether all rows of a batch are the same."""
    return rows.ndim == 1 or bool(np.all(rows == rows[:1]))
