"""The common currency: sums over groups of rows.

A group is a bin, a score cell or a run of tied scores. Every estimator of the library reads
these sums and nothing else, which is why ties, the order of the rows, repetition, chunking and
merging hold by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def pool(values: Array, group: Array, size: int) -> Array:
    """Add up the last axis of `values` by `group`, batch entry by batch entry.

    >>> pool(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 1, 1]]), 3)
    array([[1., 6., 0.]])
    """
    shape = np.broadcast_shapes(values.shape, group.shape)
    batch, k = shape[:-1], shape[-1]
    if group.size == k < values.size and np.all(np.diff(group) >= 0):
        # Groups that all entries share, as runs: their sums need no index.
        start = np.flatnonzero(np.diff(group.ravel(), prepend=-1))
        sums = np.zeros((*batch, size))
        sums[..., group.ravel()[start]] = np.add.reduceat(values, start, axis=-1)
        return sums
    rows = int(np.prod(batch, dtype=np.intp))
    group = np.broadcast_to(group, shape).reshape(rows, k)
    index = group + size * np.arange(rows, dtype=np.intp)[:, None]
    weight = np.broadcast_to(values, shape).reshape(-1)
    return np.bincount(index.ravel(), weights=weight, minlength=rows * size).reshape(*batch, size)


def distinct(rows: Array) -> Array:
    """Return one row where all rows of a batch are the same memory, as those of scores drawn for once.

    >>> distinct(np.broadcast_to(np.ones(2), (3, 2))).shape, distinct(np.ones((3, 2))).shape
    ((1, 2), (3, 2))
    """
    return rows[:1] if rows.ndim == 2 and len(rows) > 1 and rows.strides[0] == 0 else rows


def check_kind(weight: Array | None, *, counts: bool) -> None:
    """Refuse numbers in floating point as counts: importance weights whose flag was forgotten.

    >>> check_kind(np.array([1.5, 2.0]), counts=False)
    >>> check_kind(np.array([1.5, 2.0]), counts=True)
    Traceback (most recent call last):
        ...
    TypeError: counts must be integers; importance weights need counts=False
    """
    if weight is not None and counts and weight.dtype.kind == "f":
        raise TypeError("counts must be integers; importance weights need counts=False")


def single(batch: tuple[int, ...]) -> None:
    """Refuse a batch where one problem is due."""
    if batch:
        raise ValueError(f"a batch of shape {batch} cannot be drawn anew; pick one problem first")


def unbiased(variance: Array, n: Array) -> Array:
    """Return the variance with n - 1 in place of n; that of a single row stays 0."""
    return np.asarray(variance * n / np.where(n > 1 + 1e-12, n - 1, 1.0))


@dataclass(frozen=True, eq=False)
class OneHot:
    """Whether each row is of each class, as an array of shape (classes, rows) that is made when needed.

    Parameters
    ----------
    code : array of int64
        The class of each row.
    first, size : int
        The classes, by number.

    Examples
    --------
    >>> np.asarray(OneHot(np.array([2, 0, 1]), first=1, size=2))
    array([[False, False,  True],
           [ True, False, False]])
    """

    code: Array
    first: int
    size: int

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the array."""
        return self.size, len(self.code)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the array."""
        last = self.first + self.size
        code = self.code.astype(np.min_scalar_type(last), copy=False)
        array: Array = code == np.arange(self.first, last, dtype=code.dtype)[:, None]
        return array if dtype is None else array.astype(dtype)

    def __getitem__(self, entry: Any) -> Any:
        """Return the outcomes of a class, of classes side by side, or some of the array."""
        if isinstance(entry, int | np.integer):
            return np.asarray(self.code == self.first + range(self.size)[entry])
        if isinstance(entry, slice) and entry.step in (None, 1):
            first, last, _ = entry.indices(self.size)
            return OneHot(self.code, self.first + first, max(last - first, 0))
        return np.asarray(self)[entry]


@dataclass(frozen=True, eq=False)
class Bins:
    """Mass, score and outcome summed over each bin; the last axis runs over the bins."""

    w: Array
    ws: Array
    wy: Array

    @property
    def residual(self) -> Array:
        """Sum of outcome minus score."""
        return self.wy - self.ws

    @property
    def gap(self) -> Array:
        """Mean of outcome minus score; NaN in a bin without mass."""
        return self._per_mass(self.residual)

    @property
    def score(self) -> Array:
        """Mean score; NaN in a bin without mass."""
        return self._per_mass(self.ws)

    @property
    def frequency(self) -> Array:
        """Share of positive outcomes; NaN in a bin without mass."""
        return self._per_mass(self.wy)

    def _per_mass(self, total: Array) -> Array:
        return np.divide(total, self.w, out=np.full(np.shape(total), np.nan), where=self.w > 0)

    def pooled(self, group: Array, size: int) -> Bins:
        """Join bins: bin k goes to `group[..., k]`."""
        return Bins(*(pool(part, group, size) for part in (self.w, self.ws, self.wy)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Five sums per group: weight, score, outcome, score times outcome, score squared.

    Scores are measured from the group's `origin`, so that sums over a narrow group keep their
    digits: a mapping divides them by the distance of two bin centres, which may be tiny.
    """

    w: Array
    ws: Array
    wy: Array
    wsy: Array
    wss: Array
    origin: Array

    @classmethod
    def by_outcome(cls, sums: Array, origin: Array) -> Moments:
        """Join the sums of both outcomes, an array of shape (powers, 2, ...); missing squares are NaN.

        >>> Moments.by_outcome(np.array([[[1.0], [2.0]], [[0.25], [0.5]]]), np.zeros(1)).parts
        (array([3.]), array([0.75]), array([2.]), array([0.5]), array([nan]))
        """
        w, ws, *rest = sums
        square = rest[0][0] + rest[0][1] if rest else np.full(w.shape[1:], np.nan)
        return cls(w[0] + w[1], ws[0] + ws[1], w[1], ws[1], square, origin)

    @property
    def bins(self) -> Bins:
        """The sums of mass, score and outcome, scores measured from zero."""
        return Bins(self.w, self.ws + self.origin * self.w, self.wy)

    @property
    def parts(self) -> tuple[Array, Array, Array, Array, Array]:
        """The five sums."""
        return self.w, self.ws, self.wy, self.wsy, self.wss

    def __add__(self, other: Moments) -> Moments:
        """Sum the rows of both, group by group; both must measure from the same origins."""
        w, ws, wy, wsy, wss = (a + b for a, b in zip(self.parts, other.parts, strict=True))
        return Moments(w, ws, wy, wsy, wss, self.origin)

    def each(self, change: Callable[[Array], Array]) -> Moments:
        """Return what a function makes of each of the five sums, measured from the same origins."""
        w, ws, wy, wsy, wss = map(change, self.parts)
        return Moments(w, ws, wy, wsy, wss, self.origin)

    def __getitem__(self, key: Any) -> Moments:
        """Return some of the groups, or one entry of a batch."""
        return Moments(*(part[key] for part in (*self.parts, np.broadcast_to(self.origin, self.w.shape))))

    def about(self, origin: Array) -> Moments:
        """Return the same sums with scores measured from another origin.

        >>> moments = Moments(*(np.array([v]) for v in (2.0, 0.5, 1.0, 0.2, 0.17)), np.array([0.5]))
        >>> moments.about(np.array([0.25])).ws
        array([1.])
        """
        d = self.origin - origin
        return Moments(
            self.w,
            self.ws + d * self.w,
            self.wy,
            self.wsy + d * self.wy,
            self.wss + 2 * d * self.ws + d * d * self.w,
            np.broadcast_to(origin, np.shape(d)),
        )

    def pooled(self, group: Array, origin: Array) -> Moments:
        """Join groups: group k goes to `group[..., k]`, measured from that one's origin."""
        size = origin.shape[-1]
        at = np.take_along_axis(np.broadcast_to(origin, (*group.shape[:-1], size)), group, axis=-1)
        w, ws, wy, wsy, wss = (pool(part, group, size) for part in self.about(at).parts)
        return Moments(w, ws, wy, wsy, wss, origin)
