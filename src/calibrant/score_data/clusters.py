"""Design effects of clustered rows.

The design effect of a sum of residuals is its variance divided by its variance if rows were independent. It
depends on the sum: rows of a cluster with equal scores change the calibration gap at that score, while rows
with very different scores change mainly the mean of the gap. The relevant sum for the calibration error
weights residuals by the sign of the gap. If the gap is too small for its sign to be known, the mean and the
slowest cosine functions are used instead, whichever has the largest design effect. If the noise of the mean
exceeds that of the shape, the effective sample size uses an intermediate value, and the interval is widened
to compensate. The method is described in docs/methods/clusters.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data.cells import Cells
from calibrant.score_data.layout import FINE
from calibrant.score_data.moments import Array
from calibrant.score_data.sample import Sample
from calibrant.settings import CLUSTERS, PRIOR

# Number of cosine functions along which design effects are computed (resolution).
BASIS_SIZE = 8


@dataclass(frozen=True)
class DesignEffect:
    """Design effects of sums of residuals; all are at least 1.

    Attributes
    ----------
    effect : float
        For the mean and the shape of the calibration gap together.
    of_error : float
        For the calibration error; if the sign of the gap is uncertain, the largest of all sums considered.
    of_mean : float
        For the mean residual.
    symmetric : float
        As `effect`, without subtracting a fitted gap. It is invariant when the residuals of whole clusters
        change sign.
    """

    effect: float = 1.0
    of_error: float = 1.0
    of_mean: float = 1.0
    symmetric: float = 1.0

    @classmethod
    def of(cls, sample: Sample, cluster: Array) -> DesignEffect:
        """Estimate the design effects of a single problem with two or more clusters, numbered from 0.

        Four rows, each repeated three times:

        >>> score, outcome = np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True])
        >>> cluster = np.repeat(np.arange(4), 3)
        >>> round(DesignEffect.of(Sample(score[cluster], outcome[cluster]), cluster).symmetric, 6)
        3.0
        """
        return _ClusterSums.of(sample, cluster).design()

    @classmethod
    def of_sums(cls, by_bin: Array, weight: Array, residual: Array) -> DesignEffect:
        """Estimate the design effects of a single problem from its sums by bin, and by cluster and bin.

        Parameters
        ----------
        by_bin : array (5, bins)
            See `calibrant.score_data.cluster_sums.sums_by_bin`.
        weight, residual : arrays (clusters, bins)
            Sums of weights and of weighted residuals.
        """
        return _ClusterSums.of_sums(by_bin, weight, residual).design()


def are_independent(cluster: Array, weight: Array | None, *, counts: bool = True) -> bool:
    """Return whether rows are treated as independent.

    This is the case if every cluster has a single row, repetitions by counts included. It is also the case if
    there is only one cluster: the variation between clusters is then unknown, and the result is conditional
    on this cluster.

    >>> are_independent(np.array([0, 2, 1]), None), are_independent(np.array([0, 2, 1]), np.array([1, 2, 1]))
    (True, False)
    >>> are_independent(np.array([0, 0, 0]), None)
    True
    """
    counted = weight is not None and counts and bool(np.any(weight > 1))
    clusters = int(cluster.max()) + 1
    return clusters == 1 or (not counted and clusters == cluster.size)


def correlation(sample: Sample, cluster: Array, *, fitted: bool = True) -> float:
    """Return the intra-cluster correlation of outcomes, relative to its largest possible value.

    The largest covariance of two outcomes with probabilities p and q is min(p, q) - p q.

    >>> cluster = np.repeat(np.arange(4), 3)
    >>> correlation(Sample(np.full(12, 0.5), np.array([True, False, False, True])[cluster]), cluster)
    1.0
    """
    score, outcome, _ = next(sample.rows())
    weight, square = _weights(sample)
    residual = outcome - score
    if fitted:
        residual = residual - _ClusterSums.of(sample, cluster).fitted[cells_of(score)]
    order = np.lexsort((score, cluster))
    sorted_weight = weight[order]
    size = np.bincount(cluster, weight)
    # Weight of the rows of the same cluster with larger scores.
    beyond = np.cumsum(size)[cluster[order]] - np.cumsum(sorted_weight)
    least = (sorted_weight * score[order] * (2 * beyond + sorted_weight)).sum()
    possible = least - (np.bincount(cluster, weight * score) ** 2).sum()
    pairs = possible - square @ (score * (1 - score))
    excess = (np.bincount(cluster, weight * residual) ** 2).sum() - square @ residual**2
    return float(np.clip(excess / pairs, 0.0, 1.0)) if pairs > 1e-9 * abs(possible) else 0.0


def thinned(sample: Sample, times: float) -> Cells:
    """Return cells with the effective number of rows divided by `times`.

    >>> float(thinned(Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True])), 2.0).n)
    2.0
    """
    cells = Cells.of(sample)
    spread = None if cells.spread is None else cells.spread * times
    return replace(cells, squares=cells.squares * times, spread=spread)


def cells_of(score: Array) -> Array:
    """Return the index of the cell of each score among the non-empty cells.

    >>> cells_of(np.array([0.9, 0.1, 0.9]))
    array([1, 0, 1])
    """
    cell = FINE.locate(score)
    occupied = np.bincount(cell) > 0
    return (np.cumsum(occupied) - 1)[cell]


def effective_clusters(cluster: Array, weight: Array | None) -> float:
    """Return the effective number of clusters: squared total size over the sum of squared sizes.

    >>> effective_clusters(np.array([0, 0, 1, 1]), None)
    2.0
    """
    size = np.bincount(cluster, weight)
    return float(size.sum(dtype=np.float64) ** 2 / np.square(size, dtype=np.float64).sum())


def _weights(sample: Sample) -> tuple[Array, Array]:
    """Return the weight and the squared weight of each row; the latter is the count if weights are counts."""
    weight = np.ones(sample.shape[-1]) if sample.weight is None else sample.weight.astype(np.float64)
    return weight, weight if sample.counts else weight**2


@dataclass(frozen=True, eq=False)
class _ClusterSums:
    """Sums of a single problem by cell, and by cell and cluster, and cosine functions over the cells.

    Attributes
    ----------
    weight, square, linear, quadratic : arrays (cells,)
        Sums of w, w^2, w^2 r and w^2 r^2, where w is the weight of a row and r its residual. If weights are
        counts, w^2 stands for w.
    cell, cluster : arrays (entries,)
        Cell and cluster of each entry: of each row, or of the rows of a cluster in a cell.
    entry_weight, entry_residual : arrays (entries,)
        Sums of w and of w r.
    basis : array (functions, cells)
        Functions that are orthonormal under the weights; the first one is constant.
    effective : float
        Effective number of clusters.
    """

    weight: Array
    square: Array
    linear: Array
    quadratic: Array
    cell: Array
    cluster: Array
    entry_weight: Array
    entry_residual: Array
    basis: Array
    effective: float

    @classmethod
    def of(cls, sample: Sample, cluster: Array) -> _ClusterSums:
        """Sum the rows of a sample."""
        score, outcome, _ = next(sample.rows())
        weight, square = _weights(sample)
        cell, residual = cells_of(score), outcome - score
        total, squares, linear, quadratic = (
            np.bincount(cell, each) for each in (weight, square, square * residual, square * residual**2)
        )
        variance = np.bincount(cell, square * (score * (1 - score) + least_variance(float(sample.n))))
        entries = cell, cluster, weight, weight * residual
        effective = effective_clusters(cluster, weight)
        return cls(total, squares, linear, quadratic, *entries, _basis(total, variance), effective)

    @classmethod
    def of_sums(cls, by_bin: Array, weight: Array, residual: Array) -> _ClusterSums:
        """Take bins as cells; the rows of a cluster in a bin are one entry."""
        occupied = np.flatnonzero(by_bin[0] > 0)
        total, square, linear, quadratic, variance = by_bin[:, occupied]
        cluster, cell = np.nonzero(weight[:, occupied])
        entry_weight, entry_residual = (array[:, occupied][cluster, cell] for array in (weight, residual))
        entries = cell, cluster, entry_weight, entry_residual
        effective = effective_clusters(np.arange(len(weight)), weight.sum(axis=1))
        return cls(total, square, linear, quadratic, *entries, _basis(total, variance), effective)

    @cached_property
    def fitted(self) -> Array:
        """Estimated gap of each cell, with each coefficient shrunk by its signal-to-noise ratio."""
        sums = np.stack([self._by_cluster(0.0, function) for function in self.basis])
        gap, noise = sums.sum(axis=1), (sums**2).sum(axis=1)
        # The square of a tiny gap may underflow.
        square = gap**2
        kept = np.maximum(0.0, 1 - np.divide(noise, square, out=np.ones(gap.shape), where=square > 0))
        return np.asarray((kept * gap) @ self.basis)

    def design(self) -> DesignEffect:
        """Return the design effects of the residuals, with and without subtracting a fitted gap."""
        fitted = self.fitted
        # Correct for the noise that the fit removes: its share is larger for clusters than for rows.
        rows = self.weight.sum() ** 2 / self.square.sum()
        correction = (1 - 1 / rows) / (1 - 1 / self.effective)
        most, usual, of_mean = self._basis_effects(fitted, correction)
        sign = np.where(fitted < 0, -1.0, 1.0)
        of_signed = max(1.0, correction * self._effect(fitted, sign))
        size = self.weight @ np.abs(fitted) / self.weight.sum()
        noise = most * self._squares(fitted).sum() / self.weight.sum() ** 2
        certainty = (size**2 / (size**2 + noise)) ** 2 if size > 0 else 0.0
        return DesignEffect(
            effect=float(certainty * of_signed + (1 - certainty) * (most + usual) / 2),
            of_error=float(certainty * of_signed + (1 - certainty) * most),
            of_mean=of_mean,
            symmetric=sum(self._basis_effects(0.0)[:2]) / 2,
        )

    def _basis_effects(self, gap: Array | float, times: float = 1.0) -> tuple[float, float, float]:
        """Return the largest design effect of the slow functions, the mean, and that of the constant."""
        each = [self._effect(gap, function) for function in self.basis]
        effects = np.maximum(1.0, times * np.array(each))
        mean = float(effects.mean())
        return max(mean, float(effects[: CLUSTERS.slow_functions].max())), mean, float(effects[0])

    def _squares(self, gap: Array | float) -> Array:
        """Return the sum of w^2 (r - gap)^2 of each cell."""
        return np.asarray(self.quadratic - 2 * gap * self.linear + gap**2 * self.square)

    def _by_cluster(self, gap: Array | float, function: Array) -> Array:
        """Return the sum over each cluster of the residuals less a gap, times a function over the cells."""
        of_cells = np.broadcast_to(gap, self.weight.shape)[self.cell] * self.entry_weight
        return np.bincount(self.cluster, (self.entry_residual - of_cells) * function[self.cell])

    def _effect(self, gap: Array | float, function: Array) -> float:
        """Return the design effect of such a sum; 1 if its variance is zero."""
        alone = float(self._squares(gap) @ function**2)
        together = float((self._by_cluster(gap, function) ** 2).sum())
        return together / alone if alone > 0 else 1.0


def least_variance(n: float) -> float:
    """Return what is added to the variance of an outcome, as in the posterior."""
    return PRIOR.smallest_outcome_variance / float(np.sqrt(n))


def _basis(weight: Array, variance: Array) -> Array:
    """Return cosine functions (functions, cells), orthonormal under the weights of the cells.

    Their argument is the cumulative variance of the residuals, as in the posterior.
    """
    time = (np.cumsum(variance) - variance / 2) / variance.sum()
    function = np.cos(np.pi * np.arange(min(BASIS_SIZE, time.size))[:, None] * time)
    inner = (function * weight) @ function.T
    root = np.linalg.cholesky(inner + 1e-9 * np.trace(inner) * np.eye(len(inner)))
    return np.asarray(np.linalg.solve(root, function))
