"""Score data as rows: scores, outcomes and weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data import tally
from calibrant.score_data.moments import Array, Bins, Moments, OneHot, single, unbiased

# Largest number of rows for which all scores are sorted.
SORTED_ROWS = 4096
# Tolerance, relative to n, when cumulative importance weights are compared with a rank.
SLACK = 1e-9


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one or many problems: the last axis is the sample, every leading axis a batch.

    Parameters
    ----------
    score, outcome : arrays
        Scores in [0, 1] (any floating dtype) and outcomes (bool); shapes that broadcast.
    weight : array, optional
        Numbers of equal rows (integers) or importance weights (floats).
    support : pair of floats
        Range of possible scores; smoothing reflects at its ends.
    counts : bool
        Whether weights are numbers of equal rows; True without weights.

    Examples
    --------
    >>> sample = Sample(np.array([0.2, 0.7, 0.9]), np.array([False, True, True]))
    >>> sample.bins(np.array([0.5])).wy
    array([0., 2.])
    """

    score: Array
    outcome: Array | OneHot
    weight: Array | None = None
    support: tuple[float, float] = (0.0, 1.0)
    counts: bool = True
    shape: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_kind(self.weight, counts=self.counts)
        parts = [self.score, self.outcome] + ([] if self.weight is None else [self.weight])
        object.__setattr__(self, "shape", np.broadcast_shapes(*(array.shape for array in parts)))

    def __getitem__(self, entry: Any) -> Sample:
        """Return one problem of a batch, or a subset of them."""
        score = np.broadcast_to(self.score, self.shape)[entry]
        full = isinstance(self.outcome, OneHot) and self.outcome.shape == self.shape
        outcome = self.outcome[entry] if full else np.broadcast_to(self.outcome, self.shape)[entry]
        weight = None if self.weight is None else np.broadcast_to(self.weight, self.shape)[entry]
        return Sample(score, outcome, weight, self.support, self.counts)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch; empty for a single problem."""
        return self.shape[:-1]

    @cached_property
    def n(self) -> Array:
        """Effective number of rows of each batch entry."""
        total, squares = self._weight_sums
        return total if self.counts else np.asarray(total**2 / squares)

    @property
    def squares(self) -> Array:
        """Sum of the squared weights of each batch entry (the sum of the weights if they are counts)."""
        return self._weight_sums[1]

    def sorted(self) -> Sample:
        """Return the rows of a single problem sorted by score, with ties sorted by weight."""
        keys = (self.score,) if self.weight is None else (self.weight, self.score)
        order = np.lexsort(keys)
        weight = None if self.weight is None else self.weight[order]
        return Sample(self.score[order], self.outcome[order], weight, self.support, self.counts)

    @property
    def expanded_size(self) -> int:
        """Number of rows of a single problem after repeating each row by its count."""
        return int(self.n) if self.counts else self.shape[-1]

    def repeated(self) -> Sample:
        """Repeat each row of a single problem by its count; importance weights are kept."""
        if self.weight is None or not self.counts:
            return self
        at = np.repeat(np.arange(self.shape[-1]), self.weight)
        return Sample(self.score[at], self.outcome[at], None, self.support)

    @cached_property
    def in_order(self) -> tuple[Array, Array, Array | None]:
        """Sorted scores with their outcomes and weights; negatives come first among tied scores."""
        score = np.abs(np.broadcast_to(self.score, self.shape).astype(np.float64))
        # Non-negative floats have the same order as their bits read as integers; the outcome is appended as
        # the last bit.
        key = (score.view(np.int64) << 1) | np.asarray(self.outcome)
        if self.weight is None:
            key.sort(axis=-1)
            weight = None
        else:
            order = np.argsort(key, axis=-1, kind="stable")
            key = np.take_along_axis(key, order, axis=-1)
            weight = np.take_along_axis(np.broadcast_to(self.weight, self.shape), order, axis=-1)
            weight = weight.astype(np.float64)
        return (key >> 1).view(np.float64), (key & 1).astype(bool), weight

    def bins(self, cuts: Array) -> Bins:
        """Sum the groups between the cuts: group k contains cuts[k-1] <= s < cuts[k]."""
        w, ws = tally.sums_between(self.score, self.outcome, self.weight, cuts)
        return Bins(w[0] + w[1], ws[0] + ws[1], w[1])

    def moments(self, cuts: Array, origin: Array) -> Moments:
        """Return all five sums over the same groups, with scores relative to the origin of each group."""
        sums = tally.sums_between(self.score, self.outcome, self.weight, cuts, origin, powers=2)
        return Moments.by_outcome(sums, origin)

    def score_at_rank(self, rank: Array) -> Array:
        """Return the score at each rank from 0 to n - 1, with every row repeated by its count.

        Importance weights are first scaled to sum to the effective size.
        """
        if self.weight is None:
            index = np.broadcast_to(rank.astype(np.intp), (*self.batch, rank.shape[-1]))
            if not self.batch and self.shape[-1] > SORTED_ROWS:
                return tally.order_statistics(self.score, index)
            return np.take_along_axis(self.in_order[0], index, axis=-1)
        score, mass = self._cumulative_mass
        score_at_rank = np.empty((*self.batch, rank.shape[-1]))
        rank = np.broadcast_to(rank, score_at_rank.shape)
        slack = 0.0 if self.counts else SLACK
        for entry in np.ndindex(self.batch):
            limit = rank[entry] + slack * self.n[entry]
            at = np.searchsorted(mass[entry], limit, side="right")
            score_at_rank[entry] = score[entry][np.minimum(at, score.shape[-1] - 1)]
        return score_at_rank

    def variance(self) -> Array:
        """Return the variance of the scores with n - 1 in the denominator; 0 for a single row."""
        if self.weight is None:
            square = self.score.var(axis=-1, dtype=np.float64)
        else:
            share = self.weight / self.weight.sum(axis=-1, dtype=np.float64, keepdims=True)
            mean = (self.score * share).sum(axis=-1, keepdims=True)
            square = (np.square(self.score - mean) * share).sum(axis=-1)
        return np.asarray(np.broadcast_to(unbiased(square, self.n), self.batch))

    def rows(self) -> Iterator[tuple[Array, Array, Array]]:
        """Yield scores, outcomes and weights of each batch entry."""
        weight = np.ones(1) if self.weight is None else self.weight
        parts = [np.broadcast_to(array, self.shape) for array in (self.score, self.outcome, weight)]
        for entry in np.ndindex(self.batch):
            score, outcome, weight = (array[entry] for array in parts)
            yield score.astype(np.float64), outcome.astype(np.float64), weight.astype(np.float64)

    def tie_groups(self) -> Moments:
        """Return the moments of the groups of tied scores, in score order.

        The sums of a group are stored at its first row and zeros at the others, so a batch stays rectangular.
        """
        score, outcome, weight = self.in_order
        weight = np.ones(self.shape) if weight is None else weight
        w, wy = sums_in_runs(score, weight, weight * outcome)
        zero = np.zeros(self.shape)
        return Moments(w, zero, wy, zero, zero, score)

    def resample(self, rng: np.random.Generator, size: int) -> Sample:
        """Draw `size` bootstrap samples: the same rows with new counts, drawn by weight."""
        single(self.batch)
        n = self.shape[-1]
        if self.weight is None:
            count = tally.occurrences(rng.integers(0, n, (size, n)), n)
        else:
            share = self.weight / self.weight.sum(dtype=np.float64)
            count = rng.multinomial(round(float(self.n)), share, size)
        return replace(self, weight=count, counts=True)

    def resample_clusters(self, cluster: Array, rng: np.random.Generator, size: int) -> Sample:
        """Draw `size` bootstrap samples of whole clusters, numbered from 0; weights keep their kind."""
        count = int(cluster.max()) + 1
        drawn = tally.occurrences(rng.integers(0, count, (size, count)), count)[:, cluster]
        return replace(self, weight=drawn if self.weight is None else drawn * self.weight)

    def simulate_outcomes(
        self, probability: Callable[[Array], Array], rng: np.random.Generator, size: int
    ) -> Sample:
        """Draw `size` samples of the same scores with outcomes drawn from `probability(score)`.

        The outcome of a row with a count is drawn once per repetition, which gives a negative and a positive
        row. If `probability` returns several rows, `size` samples are drawn for each of them in turn.
        """
        from calibrant.score_data.draws import broadcast_probability

        single(self.batch)
        shape = (size, *self.shape)
        chances = broadcast_probability(probability(self.score), self.shape[-1])
        if self.weight is None or not self.counts or np.all(self.weight == 1):
            return replace(self, outcome=np.concatenate([rng.random(shape) < chance for chance in chances]))
        positive = np.concatenate([rng.binomial(self.weight, chance, shape) for chance in chances])
        outcome = np.repeat([False, True], self.shape[-1])
        weight = np.concatenate([self.weight - positive, positive], axis=-1)
        return Sample(np.tile(self.score, 2), outcome, weight, self.support)

    def squared(self) -> Sample:
        """Return the same rows with squared weights; counts are kept, since each repetition has weight 1."""
        return self if self.weight is None or self.counts else replace(self, weight=np.square(self.weight))

    @cached_property
    def _weight_sums(self) -> tuple[Array, Array]:
        """Sum of the weights of each batch entry, and of their squares."""
        if self.weight is None:
            rows = np.full(self.batch, float(self.shape[-1]))
            return rows, rows
        total = self.weight.sum(axis=-1, dtype=np.float64)
        squares = total if self.counts else np.square(self.weight, dtype=np.float64).sum(axis=-1)
        return np.broadcast_to(total, self.batch), np.broadcast_to(squares, self.batch)

    @cached_property
    def _cumulative_mass(self) -> tuple[Array, Array]:
        score, _, weight = self.in_order
        mass = np.cumsum(np.ones(self.shape) if weight is None else weight, axis=-1)
        if not self.counts:
            mass *= self.n[..., None] / mass[..., -1:]
        return score, mass


def sums_in_runs(run: Array, *columns: Array) -> list[Array]:
    """Sum columns over runs of neighbours that are equal in `run`, problem by problem.

    The sum of a run is stored at its first row and zeros at the others, so a batch stays rectangular.

    >>> sums_in_runs(np.array([[0.2, 0.2, 0.9], [0.1, 0.2, 0.2]]), np.array([[1.0, 2, 4], [1, 2, 4]]))
    [array([[3., 0., 4.],
           [1., 6., 0.]])]
    """
    fresh = np.ones(run.shape, dtype=bool)
    np.not_equal(run[..., 1:], run[..., :-1], out=fresh[..., 1:])
    start = np.flatnonzero(fresh)
    sums = np.zeros((len(columns), *run.shape))
    for total, column in zip(sums.reshape(len(columns), -1), columns, strict=True):
        total[start] = np.add.reduceat(column.ravel(), start)
    return list(sums)


def check_kind(weight: Array | None, *, counts: bool) -> None:
    """Raise an error for floating point counts, which are importance weights without their flag.

    >>> check_kind(np.array([1.5, 2.0]), counts=False)
    >>> check_kind(np.array([1.5, 2.0]), counts=True)
    Traceback (most recent call last):
        ...
    TypeError: counts must be integers; importance weights need counts=False
    """
    if weight is not None and counts and weight.dtype.kind == "f":
        raise TypeError("counts must be integers; importance weights need counts=False")
