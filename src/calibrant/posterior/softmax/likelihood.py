"""The likelihood of the blocks, a chunk of rows at a time: value, gradient and information."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import SHIFT, Blocks, Columns
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Numbers held at once by the features of a chunk, and of all rows where they are kept.
CHUNK, KEPT = 1 << 21, 1 << 24
# Rows up to which single floats sum the information: of more their rounding outweighs the prior.
SINGLE = 1 << 17


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Rows and the blocks that are to explain them.

    Attributes
    ----------
    rows : Simplex
    blocks : Blocks
    kind : dtype
        The floats that the information is summed in. Single ones take half the time; double ones are used
        for very many rows.
    """

    rows: Simplex
    blocks: Blocks
    kind: DTypeLike = np.float32
    _kept: list[tuple[slice, Columns]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.rows.n > SINGLE:
            object.__setattr__(self, "kind", np.float64)

    @property
    def _width(self) -> int:
        """Numbers that the features of a row take."""
        b = self.blocks
        return b.n_classes * (1 + b.alike + b.width_own) + 2 * SHIFT + b.width_common

    def chunks(self, part: slice | None = None) -> Iterator[tuple[slice, Columns]]:
        """Make the features of some rows, a chunk at a time; those of few rows are kept."""
        start, stop = (0, len(self.rows.code)) if part is None else (part.start, part.stop)
        n, step = len(self.rows.code), max(64, CHUNK // self._width)
        if n * self._width <= KEPT:
            if not self._kept:
                self._kept.append((slice(0, n), self.blocks.columns(self.rows.score)))
            yield slice(start, stop), Columns(*(each[start:stop] for each in self._kept[0][1]))
            return
        for a in range(start, stop, step):
            some = slice(a, min(a + step, stop))
            yield some, self.blocks.columns(self.rows.score[some])

    def predict(self, theta: Array, part: slice | None = None) -> Array:
        """Return the probabilities of some rows at some coefficients."""
        if not theta.any():
            return self.rows.score[slice(None) if part is None else part]
        return np.concatenate([softmax(self.blocks.logits(at, theta)) for _, at in self.chunks(part)])

    def slope(self, theta: Array, part: slice | None = None) -> tuple[float, Array]:
        """Return the log likelihood of some rows and its gradient."""
        value, gradient = 0.0, np.zeros(self.blocks.size)
        for some, at in self.chunks(part):
            q = softmax(self.blocks.logits(at, theta) if theta.any() else at.log)
            value += self._add_slope(at, q, some, gradient)
        return value, gradient

    def _add_slope(self, at: Columns, q: Array, some: slice, gradient: Array) -> float:
        """Add the gradient of a chunk, and return its log likelihood."""
        b, code, weight = self.blocks, self.rows.code[some], self.rows.weight[some]
        i = np.arange(len(code))
        value = float(weight @ np.log(np.maximum(q[i, code], 1e-300)))
        rest = -q
        rest[i, code] += 1
        rest *= weight[:, None]
        own = np.einsum("nk,nkj->kj", rest, at.own)
        gradient[: b.alike] += own[:, : b.alike].sum(axis=0)
        for r in range(2):
            where = slice(b.alike + r * SHIFT, b.alike + (r + 1) * SHIFT)
            gradient[where] += rest[i, at.best[:, r]] @ at.top[:, r]
        gradient[b.common] += rest.T @ at.common
        gradient[b.own] += own[:, b.own_slice()]
        return value

    def expand(self, theta: Array, active: Array | None = None, part: slice | None = None) -> Array:
        """Return the information of some coefficients (all by default) at some coefficients."""
        b = self.blocks
        active = np.arange(b.size) if active is None else active
        place = np.full(b.size, -1)
        place[active] = np.arange(active.size)
        per_class = []
        for k in range(b.n_classes):
            whole = np.concatenate([np.arange(b.shared), b.common[k], b.own[k]])
            use = np.flatnonzero(place[whole] >= 0)
            per_class.append((use, place[whole[use]]))
        square = np.zeros((active.size, active.size))
        step = max(64, CHUNK // max(b.size, 1))
        for some, columns in self.chunks(part):
            for a in range(0, some.stop - some.start, step):
                at = Columns(*(each[a : a + step] for each in columns))
                weight = self.rows.weight[some.start + a : some.start + a + len(at.log)]
                self._add_square(at, weight, theta, active, per_class, square)
        return square

    def _add_square(
        self,
        at: Columns,
        weight: Array,
        theta: Array,
        active: Array,
        per_class: list[tuple[Array, Array]],
        square: Array,
    ) -> None:
        """Add the information of a chunk."""
        b, n, first = self.blocks, len(at.log), self.blocks.alike
        q = softmax(b.logits(at, theta) if theta.any() else at.log)
        # A row for each feature: products run along the rows of data, which are many.
        root = np.sqrt(weight).astype(self.kind)
        own = np.ascontiguousarray(np.moveaxis(at.own, 0, -1), self.kind)
        q, common = (np.ascontiguousarray(each.T, self.kind) for each in (q, at.common))
        top = np.ascontiguousarray(np.moveaxis(at.top, 0, -1), self.kind)
        # What the mean over classes takes away.
        taken, at_own = np.empty((b.size, n), self.kind), b.shared + b.common.size
        np.einsum("kn,kjn->jn", q, own[:, :first], out=taken[:first])
        for r in range(2):
            chance = np.take_along_axis(q, at.best[:, r][None], axis=0)
            np.multiply(chance, top[r], out=taken[first + r * SHIFT : first + (r + 1) * SHIFT])
        for start, stop, part in ((b.shared, at_own, common), (at_own, b.size, own[:, b.own_slice()])):
            np.multiply(q[:, None], part, out=taken[start:stop].reshape(b.n_classes, -1, n))
        if active.size < b.size:
            taken = taken[active]
        taken *= root
        square -= taken @ taken.T
        height = np.sqrt(q) * root
        full = np.empty((b.shared + b.common.shape[1] + b.own.shape[1], n), self.kind)
        for k, (use, where) in enumerate(per_class):
            if use.size:
                pull, mine = height[k], own[k]
                np.multiply(mine[:first], pull, out=full[:first])
                for r in range(2):
                    place = slice(first + r * SHIFT, first + (r + 1) * SHIFT)
                    np.multiply(top[r], pull * (at.best[:, r] == k), out=full[place])
                np.multiply(common, pull, out=full[b.shared : b.shared + len(common)])
                np.multiply(mine[b.own_slice()], pull, out=full[b.shared + len(common) :])
                some = full if use.size == len(full) else full[use]
                square[np.ix_(where, where)] += some @ some.T

    def near(self, theta: Array, looked_at: int) -> Likelihood | Nearby:
        """Return the likelihood for the neighbourhood of some coefficients, which few rows may stand for."""
        if len(self.rows.code) <= looked_at:
            return self
        some = Likelihood(self.rows[:looked_at], self.blocks, self.kind)
        scale = self.rows.n / some.rows.n
        (value, gradient), (own_value, own) = self.slope(theta), some.slope(theta)
        return Nearby(some, scale, theta, value - scale * own_value, gradient - scale * own)


@dataclass(frozen=True, eq=False)
class Nearby:
    """The likelihood of some rows, with value and slope of all rows at some coefficients.

    Attributes
    ----------
    some : Likelihood
    scale : float
        By how much all rows outweigh these.
    theta : array
        The coefficients at which value and slope are right.
    shift, tilt : float, array
        What has to be added to value and slope.
    """

    some: Likelihood
    scale: float
    theta: Array
    shift: float
    tilt: Array

    def slope(self, theta: Array) -> tuple[float, Array]:
        """Return the log likelihood and its gradient."""
        value, gradient = self.some.slope(theta)
        away = float(self.tilt @ (theta - self.theta))
        return self.scale * value + self.shift + away, self.scale * gradient + self.tilt

    def expand(self, theta: Array, active: Array | None = None) -> Array:
        """Return the information of some coefficients (all by default) at some coefficients."""
        return self.scale * self.some.expand(theta, active)
