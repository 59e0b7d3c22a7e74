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
    sums = _ClusterSums.of(sample, cluster)
    return sums.correlation(sums.residual - sums.fitted if fitted else sums.residual)


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
    """Rows of a single problem, and cosine functions over its cells that are orthonormal under the weights.

    Attributes
    ----------
    residual, weight, square : arrays (rows,)
    score, cell, cluster : arrays (rows,)
    basis : array (functions, cells)
        The first function is constant.
    """

    score: Array
    residual: Array
    weight: Array
    square: Array
    cell: Array
    cluster: Array
    basis: Array
    effective: float

    @classmethod
    def of(cls, sample: Sample, cluster: Array) -> _ClusterSums:
        score, outcome, _ = next(sample.rows())
        weight, square = _weights(sample)
        cell = cells_of(score)
        # The argument of the cosines is the cumulative variance of the residuals, as in the posterior.
        least = PRIOR.smallest_outcome_variance / np.sqrt(float(sample.n))
        variance = np.bincount(cell, square * (score * (1 - score) + least))
        time = (np.cumsum(variance) - variance / 2) / variance.sum()
        function = np.cos(np.pi * np.arange(min(BASIS_SIZE, time.size))[:, None] * time)
        inner = (function * np.bincount(cell, weight)) @ function.T
        root = np.linalg.cholesky(inner + 1e-9 * np.trace(inner) * np.eye(len(inner)))
        basis = np.linalg.solve(root, function)
        parts = score, outcome - score, weight, square, cell, cluster, basis
        return cls(*parts, effective_clusters(cluster, weight))

    @cached_property
    def fitted(self) -> Array:
        """Estimated gap at each row, with each coefficient shrunk by its signal-to-noise ratio."""
        sums = np.stack([self._by_cluster(self.residual, function) for function in self.basis])
        gap, noise = sums.sum(axis=1), (sums**2).sum(axis=1)
        # The square of a tiny gap may underflow.
        square = gap**2
        kept = np.maximum(0.0, 1 - np.divide(noise, square, out=np.ones(gap.shape), where=square > 0))
        return np.asarray(((kept * gap) @ self.basis)[self.cell])

    def design(self) -> DesignEffect:
        """Return the design effects of the residuals, with and without subtracting a fitted gap."""
        fitted = self.fitted
        remainder = self.residual - fitted
        # Correct for the noise that the fit removes: its share is larger for clusters than for rows.
        rows = self.weight.sum() ** 2 / self.square.sum()
        correction = (1 - 1 / rows) / (1 - 1 / self.effective)
        most, usual, of_mean = self._basis_effects(remainder, correction)
        sign = np.where(fitted < 0, -1.0, 1.0)
        of_signed = max(1.0, correction * self._effect(remainder, sign=sign))
        size = self.weight @ np.abs(fitted) / self.weight.sum()
        noise = most * (self.square @ remainder**2) / self.weight.sum() ** 2
        certainty = (size**2 / (size**2 + noise)) ** 2 if size > 0 else 0.0
        return DesignEffect(
            effect=float(certainty * of_signed + (1 - certainty) * (most + usual) / 2),
            of_error=float(certainty * of_signed + (1 - certainty) * most),
            of_mean=of_mean,
            symmetric=sum(self._basis_effects(self.residual)[:2]) / 2,
        )

    def _basis_effects(self, residual: Array, times: float = 1.0) -> tuple[float, float, float]:
        """Return the largest design effect of the slow functions, the mean, and that of the constant."""
        each = [self._effect(residual, function) for function in self.basis]
        effects = np.maximum(1.0, times * np.array(each))
        mean = float(effects.mean())
        return max(mean, float(effects[: CLUSTERS.slow_functions].max())), mean, float(effects[0])

    def _by_cluster(self, residual: Array, function: Array | None = None, sign: Array | None = None) -> Array:
        """Return the sum of the residuals of each cluster, weighted by a basis function or by signs."""
        factor = self.weight * residual
        factor = factor * function[self.cell] if function is not None else factor
        return np.bincount(self.cluster, factor if sign is None else factor * sign)

    def _effect(self, residual: Array, function: Array | None = None, sign: Array | None = None) -> float:
        """Return the design effect of such a sum; 1 if its variance is zero."""
        square = self.square * residual**2
        alone = float((square if function is None else square * function[self.cell] ** 2).sum())
        together = float((self._by_cluster(residual, function, sign) ** 2).sum())
        return together / alone if alone > 0 else 1.0

    def correlation(self, residual: Array) -> float:
        """Return the sum of residual products over pairs within clusters, relative to its maximum."""
        order = np.lexsort((self.score, self.cluster))
        score, weight = self.score[order], self.weight[order]
        size = np.bincount(self.cluster, self.weight)
        # Weight of the rows of the same cluster with larger scores.
        beyond = np.cumsum(size)[self.cluster[order]] - np.cumsum(weight)
        least = (weight * score * (2 * beyond + weight)).sum()
        possible = least - (self._by_cluster(self.score) ** 2).sum()
        pairs = possible - self.square @ (self.score * (1 - self.score))
        excess = (self._by_cluster(residual) ** 2).sum() - self.square @ residual**2
        return float(np.clip(excess / pairs, 0.0, 1.0)) if pairs > 1e-9 * abs(possible) else 0.0
