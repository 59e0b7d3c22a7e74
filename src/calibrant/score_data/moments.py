"""Sums over groups of rows, the input of all estimators.

A group is a bin, a score cell or a run of tied scores. Estimators use only these sums. Their results are
therefore invariant under the order of rows, repetition versus counts, chunking and merging.
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
        # Sorted groups that all entries share can be summed without an index.
        start = np.flatnonzero(np.diff(group.ravel(), prepend=-1))
        sums = np.zeros((*batch, size))
        sums[..., group.ravel()[start]] = np.add.reduceat(values, start, axis=-1)
        return sums
    rows = int(np.prod(batch, dtype=np.intp))
    group = np.broadcast_to(group, shape).reshape(rows, k)
    index = group + size * np.arange(rows, dtype=np.intp)[:, None]
    weight = np.broadcast_to(values, shape).reshape(-1)
    return np.bincount(index.ravel(), weights=weight, minlength=rows * size).reshape(*batch, size)


def single(batch: tuple[int, ...]) -> None:
    """Raise an error for a batch where a single problem is required."""
    if batch:
        raise ValueError(f"a batch of shape {batch} cannot be drawn anew; pick one problem first")


def unbiased(variance: Array, n: Array) -> Array:
    """Return the variance with n - 1 in place of n; that of a single row stays 0."""
    return np.asarray(variance * n / np.where(n > 1 + 1e-12, n - 1, 1.0))


@dataclass(frozen=True, eq=False)
class OneHot:
    """Class membership of each row, as a lazily built array of shape (classes, rows).

    Parameters
    ----------
    code : array of int64
        The class of each row.
    first, size : int
        Index of the first class, and number of classes.

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
        """Pool bins: bin k is added to `group[..., k]`."""
        return Bins(*(pool(column, group, size) for column in (self.w, self.ws, self.wy)))


@dataclass(frozen=True, eq=False)
class Moments:
    """Five sums per group: weight, score, outcome, score times outcome, score squared.

    Scores are relative to the `origin` of the group, so that sums over a narrow group stay accurate: the
    convex mapping divides them by the distance of two bin centres, which may be tiny.
    """

    w: Array
    ws: Array
    wy: Array
    wsy: Array
    wss: Array
    origin: Array

    @classmethod
    def by_outcome(cls, sums: Array, origin: Array) -> Moments:
        """Combine the sums of both outcomes, an array of shape (powers, 2, ...); missing squares are NaN.

        >>> Moments.by_outcome(np.array([[[1.0], [2.0]], [[0.25], [0.5]]]), np.zeros(1)).parts
        (array([3.]), array([0.75]), array([2.]), array([0.5]), array([nan]))
        """
        w, ws, *rest = sums
        square = rest[0][0] + rest[0][1] if rest else np.full(w.shape[1:], np.nan)
        return cls(w[0] + w[1], ws[0] + ws[1], w[1], ws[1], square, origin)

    @property
    def bins(self) -> Bins:
        """The sums of mass, score and outcome, with scores relative to zero."""
        return Bins(self.w, self.ws + self.origin * self.w, self.wy)

    @property
    def parts(self) -> tuple[Array, Array, Array, Array, Array]:
        """The five sums."""
        return self.w, self.ws, self.wy, self.wsy, self.wss

    def __add__(self, other: Moments) -> Moments:
        """Add the sums of both, group by group; both must have the same origins."""
        w, ws, wy, wsy, wss = (a + b for a, b in zip(self.parts, other.parts, strict=True))
        return Moments(w, ws, wy, wsy, wss, self.origin)

    def each(self, change: Callable[[Array], Array]) -> Moments:
        """Apply a function to each of the five sums; the origins stay the same."""
        w, ws, wy, wsy, wss = map(change, self.parts)
        return Moments(w, ws, wy, wsy, wss, self.origin)

    def __getitem__(self, key: Any) -> Moments:
        """Return a subset of the groups, or one entry of a batch."""
        return Moments(*(column[key] for column in (*self.parts, np.broadcast_to(self.origin, self.w.shape))))

    def about(self, origin: Array) -> Moments:
        """Return the same sums with scores relative to another origin.

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
        """Pool groups: group k is added to `group[..., k]`, relative to the origin of the latter."""
        size = origin.shape[-1]
        at = np.take_along_axis(np.broadcast_to(origin, (*group.shape[:-1], size)), group, axis=-1)
        w, ws, wy, wsy, wss = (pool(column, group, size) for column in self.about(at).parts)
        return Moments(w, ws, wy, wsy, wss, origin)
