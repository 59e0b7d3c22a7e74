"""Likelihood of the multinomial logistic model: value, gradient and information matrix, in chunks of rows.

See docs/methods/canonical-calibration.md, "Fit".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import DTypeLike

from calibrant.posterior.process import softmax
from calibrant.posterior.softmax.blocks import SHIFT, Blocks, RowFeatures
from calibrant.score_data import Array
from calibrant.score_data.simplex import Simplex

# Largest number of feature values in memory: of a chunk, and of all rows if these are cached.
CHUNK, CACHED = 1 << 21, 1 << 24
# Largest number of rows for which the information matrix is summed in single precision; beyond it the
# rounding error would exceed the prior precision.
MAX_SINGLE_PRECISION = 1 << 17


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Multinomial log likelihood of rows under the model of `blocks`.

    Attributes
    ----------
    rows : Simplex
        Scores, labels and weights.
    blocks : Blocks
        Definition of the features.
    kind : dtype
        Floating-point type in which the information matrix is summed. Single precision takes half the time;
        for very many rows double precision is used.
    """

    rows: Simplex
    blocks: Blocks
    kind: DTypeLike = np.float32
    _kept: list[tuple[slice, RowFeatures]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.rows.n > MAX_SINGLE_PRECISION:
            object.__setattr__(self, "kind", np.float64)

    @property
    def _width(self) -> int:
        """Number of feature values of a row."""
        b = self.blocks
        return b.n_classes * (1 + b.shared_by_class + b.width_by_class) + 2 * SHIFT + b.width_common

    def chunks(self, row_range: slice | None = None) -> Iterator[tuple[slice, RowFeatures]]:
        """Iterate over chunks of rows and their features; the features of small data are cached."""
        start, stop = (0, len(self.rows.code)) if row_range is None else (row_range.start, row_range.stop)
        n, step = len(self.rows.code), max(64, CHUNK // self._width)
        if n * self._width <= CACHED:
            if not self._kept:
                self._kept.append((slice(0, n), self.blocks.columns(self.rows.score)))
            yield slice(start, stop), RowFeatures(*(each[start:stop] for each in self._kept[0][1]))
            return
        for a in range(start, stop, step):
            rows = slice(a, min(a + step, stop))
            yield rows, self.blocks.columns(self.rows.score[rows])

    def predict(self, theta: Array, row_range: slice | None = None) -> Array:
        """Return the probabilities of rows, (rows, classes), at coefficients theta."""
        if not theta.any():
            return self.rows.score[slice(None) if row_range is None else row_range]
        return np.concatenate([softmax(self.blocks.logits(at, theta)) for _, at in self.chunks(row_range)])

    def slope(self, theta: Array, row_range: slice | None = None) -> tuple[float, Array]:
        """Return the log likelihood of rows and its gradient."""
        value, gradient = 0.0, np.zeros(self.blocks.size)
        for rows, at in self.chunks(row_range):
            q = softmax(self.blocks.logits(at, theta) if theta.any() else at.log)
            value += self._add_slope(at, q, rows, gradient)
        return value, gradient

    def _add_slope(self, at: RowFeatures, q: Array, rows: slice, gradient: Array) -> float:
        """Add the gradient of a chunk to `gradient`, and return its log likelihood."""
        b, code, weight = self.blocks, self.rows.code[rows], self.rows.weight[rows]
        i = np.arange(len(code))
        value = float(weight @ np.log(np.maximum(q[i, code], 1e-300)))
        residual = self.rows[rows].residuals(q) * weight[:, None]
        by_class = np.einsum("nk,nkj->kj", residual, at.by_class)
        gradient[: b.shared_by_class] += by_class[:, : b.shared_by_class].sum(axis=0)
        for r in range(2):
            where = slice(b.shared_by_class + r * SHIFT, b.shared_by_class + (r + 1) * SHIFT)
            gradient[where] += residual[i, at.best[:, r]] @ at.top[:, r]
        gradient[b.common] += residual.T @ at.common
        gradient[b.by_class] += by_class[:, b.by_class_slice()]
        return value

    def expand(self, theta: Array, active: Array | None = None, row_range: slice | None = None) -> Array:
        """Return the information matrix of the active coefficients (all by default) at theta."""
        b = self.blocks
        active = np.arange(b.size) if active is None else active
        place = np.full(b.size, -1)
        place[active] = np.arange(active.size)
        per_class = []
        for k in range(b.n_classes):
            class_index = np.concatenate([np.arange(b.shared), b.common[k], b.by_class[k]])
            use = np.flatnonzero(place[class_index] >= 0)
            per_class.append((use, place[class_index[use]]))
        square = np.zeros((active.size, active.size))
        step = max(64, CHUNK // max(b.size, 1))
        for rows, columns in self.chunks(row_range):
            for a in range(0, rows.stop - rows.start, step):
                at = RowFeatures(*(each[a : a + step] for each in columns))
                weight = self.rows.weight[rows.start + a : rows.start + a + len(at.log)]
                self._add_square(at, weight, theta, active, per_class, square)
        return square

    def _add_square(
        self,
        at: RowFeatures,
        weight: Array,
        theta: Array,
        active: Array,
        per_class: list[tuple[Array, Array]],
        square: Array,
    ) -> None:
        """Add the information matrix of a chunk to `square`."""
        b, n, first = self.blocks, len(at.log), self.blocks.shared_by_class
        q = softmax(b.logits(at, theta) if theta.any() else at.log)
        # Features first: the products then run along the rows of data, of which there are many.
        root = np.sqrt(weight).astype(self.kind)
        by_class = np.ascontiguousarray(np.moveaxis(at.by_class, 0, -1), self.kind)
        q, common = (np.ascontiguousarray(each.T, self.kind) for each in (q, at.common))
        top = np.ascontiguousarray(np.moveaxis(at.top, 0, -1), self.kind)
        # Mean of the features over the classes, weighted by q: its outer product is subtracted.
        class_mean, at_class = np.empty((b.size, n), self.kind), b.shared + b.common.size
        np.einsum("kn,kjn->jn", q, by_class[:, :first], out=class_mean[:first])
        for r in range(2):
            top_probability = np.take_along_axis(q, at.best[:, r][None], axis=0)
            np.multiply(top_probability, top[r], out=class_mean[first + r * SHIFT : first + (r + 1) * SHIFT])
        for start, stop, class_rows in (
            (b.shared, at_class, common),
            (at_class, b.size, by_class[:, b.by_class_slice()]),
        ):
            np.multiply(q[:, None], class_rows, out=class_mean[start:stop].reshape(b.n_classes, -1, n))
        if active.size < b.size:
            class_mean = class_mean[active]
        class_mean *= root
        square -= class_mean @ class_mean.T
        height = np.sqrt(q) * root
        full = np.empty((b.shared + b.common.shape[1] + b.by_class.shape[1], n), self.kind)
        for k, (use, where) in enumerate(per_class):
            if use.size:
                row_root, class_features = height[k], by_class[k]
                np.multiply(class_features[:first], row_root, out=full[:first])
                for r in range(2):
                    place = slice(first + r * SHIFT, first + (r + 1) * SHIFT)
                    np.multiply(top[r], row_root * (at.best[:, r] == k), out=full[place])
                np.multiply(common, row_root, out=full[b.shared : b.shared + len(common)])
                np.multiply(class_features[b.by_class_slice()], row_root, out=full[b.shared + len(common) :])
                active_features = full if use.size == len(full) else full[use]
                square[np.ix_(where, where)] += active_features @ active_features.T

    def near(self, theta: Array, max_rows: int) -> Likelihood | SubsetLikelihood:
        """Return the likelihood near theta; if there are many rows, a subset represents all of them."""
        if len(self.rows.code) <= max_rows:
            return self
        subset = Likelihood(self.rows[:max_rows], self.blocks, self.kind)
        scale = self.rows.n / subset.rows.n
        (value, gradient), (subset_value, subset_gradient) = self.slope(theta), subset.slope(theta)
        return SubsetLikelihood(
            subset, scale, theta, value - scale * subset_value, gradient - scale * subset_gradient
        )


@dataclass(frozen=True, eq=False)
class SubsetLikelihood:
    """Likelihood of a subset of the rows, with value and gradient of all rows at given coefficients.

    Attributes
    ----------
    subset : Likelihood
        Likelihood of the subset.
    scale : float
        Weight of all rows divided by that of the subset.
    theta : array
        Coefficients at which value and gradient are those of all rows.
    shift, tilt : float, array
        Corrections of value and gradient.
    """

    subset: Likelihood
    scale: float
    theta: Array
    shift: float
    tilt: Array

    def slope(self, theta: Array) -> tuple[float, Array]:
        """Return the log likelihood and its gradient."""
        value, gradient = self.subset.slope(theta)
        change = float(self.tilt @ (theta - self.theta))
        return self.scale * value + self.shift + change, self.scale * gradient + self.tilt

    def expand(self, theta: Array, active: Array | None = None) -> Array:
        """Return the information matrix of the active coefficients (all by default) at theta."""
        return self.scale * self.subset.expand(theta, active)
