"""Evidence as rows: scores, outcomes and weights, kept as they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Literal

import numpy as np

from calibrant.evidence.locate import TABLE_FROM, Locator, positions
from calibrant.evidence.moments import Array, Bins, Moments, single, unbiased

# Rows summed at a time: the temporaries stay in the cache.
CHUNK = 1 << 17
Locate = Callable[[Array], Array]
# Rounding allowed when cumulated importance weights are compared with a rank, in units of n.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one or many problems: the last axis is the sample, every leading axis a batch.

    Parameters
    ----------
    score, outcome : arrays
        Scores in [0, 1] (any floating dtype) and outcomes (bool); shapes that broadcast.
    weight : array, optional
        Integers are counts and mean repetition; floats are importance weights.
    support : pair of floats
        Where scores can lie; smoothing reflects at its ends.

    Examples
    --------
    >>> sample = Sample(np.array([0.2, 0.7, 0.9]), np.array([False, True, True]))
    >>> sample.bins(np.array([0.5])).wy
    array([0., 2.])
    """

    score: Array
    outcome: Array
    weight: Array | None = None
    support: tuple[float, float] = (0.0, 1.0)
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = [self.score, self.outcome] + ([] if self.weight is None else [self.weight])
        object.__setattr__(self, "shape", np.broadcast_shapes(*(np.shape(part) for part in parts)))

    def __getitem__(self, entry: Any) -> Sample:
        """One problem of a batch, or some of them."""
        score, outcome = (np.broadcast_to(part, self.shape)[entry] for part in (self.score, self.outcome))
        weight = None if self.weight is None else np.broadcast_to(self.weight, self.shape)[entry]
        return Sample(score, outcome, weight, self.support)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for a single problem."""
        return self.shape[:-1]

    @cached_property
    def n(self) -> Array:
        """Effective number of rows of each batch entry."""
        if self.weight is None:
            return np.full(self.batch, float(self.shape[-1]))
        total = self.weight.sum(axis=-1, dtype=np.float64)
        if not self.counts:
            total = total**2 / np.square(self.weight, dtype=np.float64).sum(axis=-1)
        return np.broadcast_to(total, self.batch)

    @property
    def counts(self) -> bool:
        """Whether weights are counts: absent, or integers."""
        return self.weight is None or self.weight.dtype.kind in "iub"

    def bins(self, cuts: Array) -> Bins:
        """Sums over the groups between the cuts: group k holds cuts[k-1] <= s < cuts[k]."""
        w, ws = self._between(cuts, None, powers=1)
        return Bins(w[0] + w[1], ws[0] + ws[1], w[1])

    def moments(self, cuts: Array, origin: Array, *, squares: bool = True) -> Moments:
        """All five sums over the same groups, scores measured from each group's origin.

        Without `squares` the sum of squared scores is left out (NaN), which is cheaper.
        """
        return _moments(self._between(cuts, origin, powers=2 if squares else 1), origin)

    def cells(self, locate: Locate, low: Array) -> Moments:
        """All five sums over cells that a function knows, scores measured from their least score."""
        return _moments(self._tally([locate], low.size, low, powers=2), low)

    def _between(self, cuts: Array, origin: Array | None, powers: int) -> list[Array]:
        """Tally between shared cuts, or between cuts of each batch entry."""
        size, n = cuts.shape[-1] + 1, self.shape[-1]
        rows = int(np.prod(self.batch, dtype=np.intp))
        if cuts.ndim == 1:
            return self._tally([Locator(cuts, many=rows * n >= TABLE_FROM)], size, origin, powers)
        cuts = np.broadcast_to(cuts, (*self.batch, size - 1)).reshape(rows, size - 1)
        if n >= TABLE_FROM:
            return self._tally([Locator(row, many=True) for row in cuts], size, origin, powers)
        # Short rows: sorted, the groups are runs, and one pass serves the whole batch.
        score, outcome, weight = self._in_order
        score = score.reshape(rows, n)
        ends = np.concatenate([positions(score, cuts), np.full((rows, 1), n)], axis=1)
        count = np.diff(ends, axis=1, prepend=0)
        group = np.repeat(np.tile(np.arange(size), rows), count.ravel())
        if origin is not None:
            own = np.broadcast_to(origin, (*self.batch, size)).reshape(rows, size)
            score = score - np.repeat(own.ravel(), count.ravel()).reshape(rows, n)
        group += _row_offsets((rows, n), size, "C")
        sums = np.zeros((powers + 1, 2, rows, size))
        _accumulate(sums, group, outcome.ravel(), score.ravel(), None if weight is None else weight.ravel())
        return [part.reshape(2, *self.batch, size) for part in sums]

    def ranked(self, rank: Array) -> Array:
        """Score at each rank from 0 to n - 1, every row repeated by its count.

        Importance weights are first scaled to sum to the effective size.
        """
        if self.weight is None:
            index = np.broadcast_to(rank.astype(np.intp), (*self.batch, rank.shape[-1]))
            if not self.batch and self.shape[-1] > 4 * TABLE_FROM:
                return _select(self.score, index)
            ordered = self._in_order[0] if self.shape[-1] < TABLE_FROM else self._sorted
            found = np.take_along_axis(np.broadcast_to(ordered, self.shape), index, axis=-1)
            return found.astype(np.float64, copy=False)
        score, mass = self._cumulated
        found = np.empty((*self.batch, rank.shape[-1]))
        rank = np.broadcast_to(rank, found.shape)
        slack = 0.0 if self.counts else SLACK
        for entry in np.ndindex(self.batch):
            limit = rank[entry] + slack * self.n[entry]
            at = np.searchsorted(mass[entry], limit, side="right")
            found[entry] = score[entry][np.minimum(at, score.shape[-1] - 1)]
        return found

    def variance(self) -> Array:
        """Variance of the scores with n - 1 in the denominator; 0 for a single row."""
        if self.weight is None:
            square = self.score.var(axis=-1, dtype=np.float64)
        else:
            total = self.weight.sum(axis=-1, dtype=np.float64, keepdims=True)
            share = self.weight / total
            mean = (self.score * share).sum(axis=-1, keepdims=True)
            square = (np.square(self.score - mean) * share).sum(axis=-1)
        return np.asarray(np.broadcast_to(unbiased(square, self.n), self.batch))

    def rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Scores, outcomes and weights of each batch entry."""
        weight = np.ones(1) if self.weight is None else self.weight
        parts = [np.broadcast_to(part, self.shape) for part in (self.score, self.outcome, weight)]
        for entry in np.ndindex(self.batch):
            score, outcome, weight = (part[entry] for part in parts)
            yield score.astype(np.float64), outcome.astype(np.float64), weight.astype(np.float64)

    def atoms(self) -> Moments:
        """Moments of the runs of tied scores, in score order.

        A run's sums stand at its first row and zeros at the others, so a batch stays rectangular.
        """
        score, outcome, weight = self._in_order
        weight = np.ones(self.shape) if weight is None else weight
        fresh = np.ones(self.shape, dtype=bool)
        fresh[..., 1:] = score[..., 1:] != score[..., :-1]
        start = np.flatnonzero(fresh)
        w, wy = np.zeros(self.shape), np.zeros(self.shape)
        w.ravel()[start] = np.add.reduceat(weight.ravel(), start)
        wy.ravel()[start] = np.add.reduceat((weight * outcome).ravel(), start)
        zero = np.zeros(self.shape)
        return Moments(w, zero, wy, zero, zero, score)

    def resample(self, rng: np.random.Generator, size: int) -> Sample:
        """`size` bootstrap samples: the same rows with new counts, drawn by weight."""
        single(self.batch)
        n = self.shape[-1]
        if self.weight is None:
            drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
            count = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        else:
            share = self.weight / self.weight.sum(dtype=np.float64)
            count = rng.multinomial(round(float(self.n)), share, size)
        return replace(self, weight=count)

    def redraw(self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int) -> Sample:
        """`size` samples of the same scores with outcomes drawn from `probability(score)`.

        A row that counts several times is drawn as often, and becomes a negative and a positive row.
        """
        single(self.batch)
        chance = np.broadcast_to(probability(self.score), self.shape)
        if self.weight is None or not self.counts:
            return replace(self, outcome=rng.random((size, *self.shape)) < chance)
        positive = rng.binomial(self.weight, chance, (size, *self.shape))
        outcome = np.repeat([False, True], self.shape[-1])
        weight = np.concatenate([self.weight - positive, positive], axis=-1)
        return Sample(np.tile(self.score, 2), outcome, weight, self.support)

    def squared(self) -> Sample:
        """The same rows with squared weights; counts stand for rows of weight one and stay."""
        return self if self.weight is None or self.counts else replace(self, weight=np.square(self.weight))

    @cached_property
    def _sorted(self) -> Array:
        return np.sort(self.score, axis=-1)

    @cached_property
    def _in_order(self) -> tuple[Array, Array, Array | None]:
        """Scores in order, with their outcomes and weights; among tied scores negatives come first."""
        score = np.abs(np.broadcast_to(self.score, self.shape).astype(np.float64))
        # Floats of one sign are ordered like the integers of their bits; the outcome fits in as the last bit.
        key = (score.view(np.int64) << 1) | self.outcome
        if self.weight is None:
            key.sort(axis=-1)
            weight = None
        else:
            order = np.argsort(key, axis=-1, kind="stable")
            key = np.take_along_axis(key, order, axis=-1)
            weight = np.take_along_axis(np.broadcast_to(self.weight, self.shape), order, axis=-1)
            weight = weight.astype(np.float64)
        return (key >> 1).view(np.float64), (key & 1).astype(bool), weight

    @cached_property
    def _cumulated(self) -> tuple[Array, Array]:
        score, _, weight = self._in_order
        mass = np.cumsum(np.ones(self.shape) if weight is None else weight, axis=-1)
        if not self.counts:
            mass *= self.n[..., None] / mass[..., -1:]
        return score, mass

    def _tally(self, locators: list[Locate], size: int, origin: Array | None, powers: int) -> list[Array]:
        """Sums of w, w x, ..., w x^powers by outcome and group, where x = score - origin."""
        n, rows = self.shape[-1], int(np.prod(self.batch, dtype=np.intp))
        columns = [self.score, self.outcome] + ([] if self.weight is None else [self.weight])
        columns = [self._spread_out(column).reshape(rows, n) for column in columns]
        if origin is not None:
            origin = np.broadcast_to(origin, (*self.batch, size)).reshape(rows, size)
        sums = np.zeros((powers + 1, 2, rows, size))
        order, pieces = _pieces(columns[0], size, several=len(locators) == 1)
        for r, part in pieces:
            locate = locators[r.start if len(locators) > 1 else 0]
            score, outcome, *weight = (column[r, part] for column in columns)
            shape = score.shape
            score, outcome, *weight = (
                (values.T if order == "F" else values).reshape(-1) for values in (score, outcome, *weight)
            )
            if shape[0] == 1 and isinstance(locate, Locator) and not _few(outcome):
                pair = locate.paired(score, outcome)
                score = score.astype(np.float64, copy=False)
                if origin is not None:
                    score = score - origin[r.start][pair >> 1]
                _accumulate_pairs(sums[:, :, r], pair, score, *weight)
                continue
            group = locate(score)
            score = score.astype(np.float64, copy=False)
            if origin is not None:
                score = score - origin[r.start][group]
            if shape[0] > 1:
                group += _row_offsets(shape, size, order)
            _accumulate(sums[:, :, r], group, outcome, score, *weight)
        return [part.reshape(2, *self.batch, size) for part in sums]

    def _spread_out(self, column: Array) -> Array:
        return column if column.shape == self.shape else np.broadcast_to(column, self.shape)


def _moments(sums: list[Array], origin: Array) -> Moments:
    w, ws, *rest = sums
    square = rest[0][0] + rest[0][1] if rest else np.full(w.shape[1:], np.nan)
    return Moments(w[0] + w[1], ws[0] + ws[1], w[1], ws[1], square, origin)


def _pieces(
    score: Array, size: int, *, several: bool
) -> tuple[Literal["C", "F"], Iterator[tuple[slice, slice]]]:
    """Slices of (rows, n) that fit the cache, and the order in which their scores lie in memory."""
    rows, n = score.shape
    across = several and abs(score.strides[0]) < abs(score.strides[1]) and 4 * rows * size <= CHUNK
    high, wide = (rows, max(1, CHUNK // rows)) if across else (max(1, CHUNK // n) if several else 1, CHUNK)
    return "F" if across else "C", (
        (slice(r, r + high), slice(a, a + wide)) for r in range(0, rows, high) for a in range(0, n, wide)
    )


@lru_cache(maxsize=4)
def _row_offsets(shape: tuple[int, int], size: int, order: Literal["C", "F"]) -> Array:
    """First group of each row, laid out like the scores; pieces of one shape follow each other."""
    first = size * np.arange(shape[0])
    return np.repeat(first, shape[1]) if order == "C" else np.tile(first, shape[1])


def _few(outcome: Array) -> bool:
    """Whether so few outcomes are positive that counting them apart is cheaper."""
    return bool(8 * np.count_nonzero(outcome) < outcome.size)


def _accumulate(sums: Array, group: Array, outcome: Array, x: Array, weight: Array | None = None) -> None:
    """Add to sums[power, outcome] by group; the array of groups is used up."""
    if not _few(outcome):
        group <<= 1
        group += outcome
        _accumulate_pairs(sums, group, x, weight)
        return
    positive = np.flatnonzero(outcome)
    shape, size = sums.shape[2:], sums[0, 0].size
    for part, factor in zip(sums, _factors(x, weight), strict=False):
        ones = np.bincount(group[positive], None if factor is None else factor[positive], minlength=size)
        part[1] += ones.reshape(shape)
        part[0] += (np.bincount(group, factor, minlength=size) - ones).reshape(shape)


def _accumulate_pairs(sums: Array, pair: Array, x: Array, weight: Array | None = None) -> None:
    """Add to sums[power, outcome] by the index 2 * group + outcome."""
    for part, factor in zip(sums, _factors(x, weight), strict=False):
        both = np.bincount(pair, factor, minlength=part.size)
        part += both.reshape(*part.shape[1:], 2).transpose(2, 0, 1)


def _factors(x: Array, weight: Array | None) -> Iterator[Array | None]:
    """The weights times the powers of x: 1, x, x^2, ..."""
    factor = weight
    while True:
        yield factor
        factor = x if factor is None else factor * x


def _select(score: Array, rank: Array) -> Array:
    """Order statistics of a long array: count by cell, then sort only the cells that hold a rank."""
    cells = 1 << 14
    index = np.empty(score.shape, dtype=np.int16)
    count = np.zeros(cells + 1, dtype=np.intp)
    for a in range(0, score.size, CHUNK):
        piece = (score[a : a + CHUNK] * cells).astype(np.intp)
        index[a : a + CHUNK] = piece
        count += np.bincount(piece, minlength=cells + 1)
    last = np.cumsum(count)
    wanted = np.searchsorted(last, rank, side="right")
    held = np.zeros(cells + 1, dtype=bool)
    held[wanted] = True
    kept = np.sort(score[held[index]].astype(np.float64, copy=False))
    skipped = np.cumsum(np.where(held, 0, count))
    return kept[rank - skipped[wanted]]
