"""Score vectors of all classes in a canonical order, with equal rows merged.

Neither the content nor anything computed from it depends on the order of the rows, or on whether repeated
rows are given as counts. Scores that differ only by rounding are treated as equal.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data.moments import Array
from calibrant.score_data.sample import check_kind

# Entries processed at once.
CHUNK = 1 << 21
# Scores are tied if their relative difference is at most TIED, 32 units in the last place. Means over rows
# are tied if they differ by at most TIED_MEANS.
TIED, TIED_MEANS = 2.0**-48, 1e-9
# Rows are ordered by the remainder of a sum of log2 scores modulo this. It is far below differences between
# rows, so that the remainder looks random, and far above rounding errors of float32.
LOG_STEP = 2.0**-10


@dataclass(frozen=True, eq=False)
class Simplex:
    """Score vectors and labels of canonical calibration.

    Attributes
    ----------
    score : array (rows, classes)
    code : array (rows,)
        Column of the true class.
    weight : array (rows,)
        Weight of each row; the sum is the effective number of rows.
    square : array (rows,)
        Factor of the variance of a row in the variance of a sum: the weight if weights are counts, otherwise
        its square.
    group : array (rows,)
        Index of the score vector of each row; rows with equal vectors are adjacent.
    place : array
        Index of the merged row of each row of the data; arbitrary for rows without weight.

    Examples
    --------
    >>> rows = Simplex.of(np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]]), np.array([0, 1, 0]))
    >>> len(rows.code), rows.n, sorted(rows.weight.tolist())
    (2, 3.0, [1.0, 2.0])
    """

    score: Array
    code: Array
    weight: Array
    square: Array
    group: Array
    place: Array

    @classmethod
    def of(cls, score: Array, code: Array, weight: Array | None = None, *, counts: bool = True) -> Simplex:
        """Sort rows by content, and merge equal rows.

        Weights are counts of equal rows or, with `counts=False`, importance weights.
        """
        n = len(score)
        check_kind(weight, counts=counts)
        if weight is None:
            weight = np.ones(n)
            square = weight
        elif not counts:
            share = weight / weight.max()
            # Sums of sorted weights do not depend on the order of the rows.
            ordered = np.sort(share)
            weight = share * (ordered.sum() / (ordered**2).sum())
            square = weight * weight
        else:
            weight = square = weight.astype(np.float64)
        positive = weight > 0
        if positive.all():
            score = without_rounding(score)
        else:
            score = score.copy()
            score[positive] = without_rounding(score[positive])
        keys, places = _keys(score)
        order = np.lexsort((weight, code, keys, places))
        near = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
        if (score[order[near]] != score[order[near + 1]]).any():
            # Different rows may have the same key.
            order = np.lexsort((weight, code, *score.T, keys, places))
        n, order = len(order), order[weight[order] > 0]
        keys, score, code = (each[order] for each in (keys, score, code))
        score, code = score.astype(np.float64, copy=False), np.asarray(code, np.intp)
        near = np.flatnonzero(keys[1:] == keys[:-1])
        same = np.zeros(len(order), dtype=bool)
        same[near + 1] = (score[near + 1] == score[near]).all(axis=1)
        group = np.cumsum(~same) - 1
        merged = same.copy()
        merged[1:] &= code[1:] == code[:-1]
        start = np.flatnonzero(~merged)
        place = np.zeros(n, dtype=np.intp)
        place[order] = np.cumsum(~merged) - 1
        if start.size < len(order):
            score, code, group = score[start], code[start], group[start]
            weight, square = (np.add.reduceat(each[order], start) for each in (weight, square))
        else:
            weight, square = weight[order], square[order]
        return cls(score, code, weight, square, group, place)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return self.score.shape[1]

    @cached_property
    def n(self) -> float:
        """Effective number of rows."""
        return float(self.weight.sum())

    def mean(self, each: Array) -> tuple[float, float]:
        """Return the weighted mean of a value per row, and its standard error."""
        mean = float(self.weight @ each) / self.n
        deviation = each - mean
        return mean, float(np.sqrt(self.square @ (deviation * deviation))) / self.n

    @property
    def first_of_vectors(self) -> Array:
        """First row of each distinct score vector."""
        return np.flatnonzero(np.diff(self.group, prepend=-1))

    def label_weights(self) -> Array:
        """Return the weight of the rows of each label, (distinct score vectors, classes)."""
        total = np.zeros((self.first_of_vectors.size, self.n_classes))
        np.add.at(total, (self.group - self.group[0], self.code), self.weight)
        return total

    def residuals(self, probability: Array) -> Array:
        """Return the residuals (one-hot label minus probability), (rows, classes)."""
        residual = -probability
        residual[np.arange(len(residual)), self.code] += 1
        return residual

    def folds(self, count: int) -> list[slice]:
        """Split the rows into folds of about equal weight, without separating equal score vectors."""
        ends = np.cumsum(self.weight)
        at = np.searchsorted(ends, self.n * np.arange(1, count) / count)
        # The order looks random, so that consecutive rows are a random sample.
        starts = np.searchsorted(self.group, self.group[np.minimum(at, len(self.group) - 1)])
        cuts = np.unique(np.concatenate([[0], starts, [len(self.group)]]))
        return [slice(int(a), int(b)) for a, b in pairwise(cuts)]

    def __getitem__(self, rows: slice | Array) -> Simplex:
        positive = (self.score, self.code, self.weight, self.square, self.group)
        score, code, weight, square, group = (each[rows] for each in positive)
        return Simplex(score, code, weight, square, group, np.arange(len(code)))


def _keys(score: Array) -> tuple[Array, Array]:
    """Return for each row a sum of the scores with random factors, and a place in [0, 1).

    The place is the remainder of such a sum of log2 scores, interpolated between powers of two. It hardly
    changes if scores change by rounding: the place of a row decides about its fold. Both sums are added class
    by class, because the rounding of a product of arrays depends on their layout in memory.
    """
    n, classes = score.shape
    keys, places, direction = np.zeros(n), np.zeros(n), np.random.default_rng(0).random((classes,))
    for first in range(0, n, max(1, CHUNK // classes)):
        chunk = slice(first, first + max(1, CHUNK // classes))
        columns = score[chunk].astype(np.float64, order="F").T + 0.0  # turns -0 into 0
        for k, factor in enumerate(direction):
            keys[chunk] += factor * columns[k]
            places[chunk] += factor / LOG_STEP * (columns[k].view(np.int64) * 2.0**-52)
    return keys, places % 1.0


def without_rounding(score: Array) -> Array:
    """Replace scores that are equal up to rounding by the smallest of them.

    >>> score = without_rounding(np.array([0.3, 0.1 + 0.2, 0.5]))
    >>> score[0] == score[1], score[2]
    (np.True_, np.float64(0.5))
    """
    if score.dtype.itemsize < 8:  # float32 numbers that differ at all differ by more than TIED
        return score
    ordered = np.sort(score, axis=None)
    step = np.diff(ordered)
    fresh = step > TIED * ordered[1:]
    if (fresh == (step > 0)).all():
        return score
    distinct, changed = ordered[np.append(True, fresh)], ordered[1:][(step > 0) & ~fresh]
    # Few scores change: finding these takes a small part of the time of finding a place for all.
    near = np.minimum(np.searchsorted(changed, score), changed.size - 1)
    at = np.nonzero(changed[near] == score)
    without = score.copy()
    without[at] = distinct[np.searchsorted(distinct, score[at], side="right") - 1]
    return without


def class_order(score: Array, code: Array, weight: Array | None, names: Sequence[Hashable]) -> Array:
    """Return a canonical order of the columns, which depends neither on the input order nor on class names.

    Classes are sorted by mean score, then by frequency, and by name if both are tied.

    >>> class_order(np.array([[0.5, 0.2, 0.3], [0.3, 0.2, 0.5]]), np.array([0, 2]), None, ["b", "c", "a"])
    array([1, 2, 0])
    """
    share = np.full(len(code), 1 / len(code)) if weight is None else weight / weight.sum(dtype=np.float64)
    frequency, mean = np.bincount(code, share, len(names)), share @ score
    return np.lexsort((np.array([str(name) for name in names]), tied_ranks(frequency), tied_ranks(mean)))


def tied_ranks(mean: Array) -> Array:
    """Return the rank of each mean; means that are equal up to rounding share one.

    >>> tied_ranks(np.array([0.3, 0.1, 0.1 + 1e-16]))
    array([1, 0, 0])
    """
    order = np.argsort(mean)
    rank = np.empty(mean.size, dtype=np.intp)
    rank[order] = np.cumsum(np.diff(mean[order], prepend=mean[order[0]]) > TIED_MEANS)
    return rank
