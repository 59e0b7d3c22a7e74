"""Rows that belong together: how much more their sums vary than those of independent rows.

The design effect is the variance of a sum of residuals over that of the same sum if rows were
independent. It depends on the sum. A patient's rows that share a score move the gap at that score
together; rows at scores far apart move the mean of the gap, and hardly its shape. What matters is the
sum that the calibration error is made of: residuals signed by the gap. Where the gap is too small to
have a known sign, the mean, the tilt and slow waves stand in, whichever varies most. Noise that is
larger in the mean than in the shape is read as in between, and what is missing widens the interval.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.score_data.cells import Cells
from calibrant.score_data.layout import FINE
from calibrant.score_data.moments import Array
from calibrant.score_data.sample import Sample

# Cosine waves that sums of residuals are looked at along, and those that count by themselves.
WAVES, SLOWEST = 8, 2
# Variance of an outcome that is added where a score says there is none, times the root of n.
LEAST = 0.01


@dataclass(frozen=True)
class DesignEffect:
    """What clusters do to sums of residuals.

    Attributes
    ----------
    effect : float
        How many times larger the variance is than if rows were independent, mean and shape of the gap
        together; at least one, as all of these.
    of_error : float
        The same of the calibration error; where its sign is in doubt, of the sum that varies most.
    of_mean : float
        The same of the mean residual.
    symmetric : float
        The effect with no gap taken off: it stays when the residuals of whole clusters change sign.
    """

    effect: float = 1.0
    of_error: float = 1.0
    of_mean: float = 1.0
    symmetric: float = 1.0

    @classmethod
    def of(cls, sample: Sample, cluster: Array) -> DesignEffect:
        """Look at the clusters of a single problem, two or more of them; they are numbered from 0 on.

        Four rows, each of them asked three times:

        >>> score, outcome = np.array([0.2, 0.4, 0.6, 0.8]), np.array([False, True, False, True])
        >>> cluster = np.repeat(np.arange(4), 3)
        >>> round(DesignEffect.of(Sample(score[cluster], outcome[cluster]), cluster).symmetric, 6)
        3.0
        """
        return _Sums.of(sample, cluster).design()


def are_alone(cluster: Array, weight: Array | None, *, counts: bool = True) -> bool:
    """Tell whether rows are treated as independent.

    They are where no two rows belong together, those that count several times included, and where all rows
    belong to one cluster: nothing is known about variation between clusters then, and the result is about
    this cluster.

    >>> are_alone(np.array([0, 2, 1]), None), are_alone(np.array([0, 2, 1]), np.array([1, 2, 1]))
    (True, False)
    >>> are_alone(np.array([0, 0, 0]), None)
    True
    """
    counted = weight is not None and counts and bool(np.any(weight > 1))
    clusters = int(cluster.max()) + 1
    return clusters == 1 or (not counted and clusters == cluster.size)


def correlation(sample: Sample, cluster: Array, *, fitted: bool = True) -> float:
    """Return the correlation of two rows of one cluster, as a share of the largest that there can be.

    Two outcomes covary most if the less likely one never happens alone: min(p, q) - p q.

    >>> cluster = np.repeat(np.arange(4), 3)
    >>> correlation(Sample(np.full(12, 0.5), np.array([True, False, False, True])[cluster]), cluster)
    1.0
    """
    sums = _Sums.of(sample, cluster)
    return sums.correlation(sums.residual - sums.fitted if fitted else sums.residual)


def thinned(sample: Sample, times: float) -> Cells:
    """Return sums of rows that say as much as so many times fewer independent ones.

    >>> float(thinned(Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True])), 2.0).n)
    2.0
    """
    cells = Cells.of(sample)
    spread = None if cells.spread is None else cells.spread * times
    return replace(cells, squares=cells.squares * times, spread=spread)


def cells_of(score: Array) -> Array:
    """Return the cell of each score among those that hold any.

    >>> cells_of(np.array([0.9, 0.1, 0.9]))
    array([1, 0, 1])
    """
    cell = FINE.locate(score)
    held = np.bincount(cell) > 0
    return (np.cumsum(held) - 1)[cell]


def effective_clusters(cluster: Array, weight: Array | None) -> float:
    """Return the number of equally large clusters that would be as good as these.

    >>> effective_clusters(np.array([0, 0, 1, 1]), None)
    2.0
    """
    size = np.bincount(cluster, weight)
    return float(size.sum(dtype=np.float64) ** 2 / np.square(size, dtype=np.float64).sum())


def _weights(sample: Sample) -> tuple[Array, Array]:
    """Return the weight of each row, and what it adds to the sum of squares: its count, if it is one."""
    weight = np.ones(sample.shape[-1]) if sample.weight is None else sample.weight.astype(np.float64)
    return weight, weight if sample.counts else weight**2


@dataclass(frozen=True, eq=False)
class _Sums:
    """The rows of a problem, and waves over its cells that are orthonormal by weight.

    Attributes
    ----------
    residual, weight, square : arrays (rows,)
    score, cell, cluster : arrays (rows,)
    waves : array (waves, cells)
        The first one is flat.
    """

    score: Array
    residual: Array
    weight: Array
    square: Array
    cell: Array
    cluster: Array
    waves: Array
    effective: float

    @classmethod
    def of(cls, sample: Sample, cluster: Array) -> _Sums:
        score, outcome, _ = next(sample.rows())
        weight, square = _weights(sample)
        cell = cells_of(score)
        # Time runs with the variance of the residuals, as it does for the posterior.
        least = LEAST / np.sqrt(float(sample.n))
        clock = np.bincount(cell, square * (score * (1 - score) + least))
        time = (np.cumsum(clock) - clock / 2) / clock.sum()
        wave = np.cos(np.pi * np.arange(min(WAVES, time.size))[:, None] * time)
        inner = (wave * np.bincount(cell, weight)) @ wave.T
        root = np.linalg.cholesky(inner + 1e-9 * np.trace(inner) * np.eye(len(inner)))
        waves = np.linalg.solve(root, wave)
        parts = score, outcome - score, weight, square, cell, cluster, waves
        return cls(*parts, effective_clusters(cluster, weight))

    @cached_property
    def fitted(self) -> Array:
        """A gap at each row, of the waves that stand out of their own noise."""
        sums = np.stack([self._by_cluster(self.residual, wave) for wave in self.waves])
        gap, noise = sums.sum(axis=1), (sums**2).sum(axis=1)
        # The square of a tiny gap may be nothing.
        square = gap**2
        kept = np.maximum(0.0, 1 - np.divide(noise, square, out=np.ones(gap.shape), where=square > 0))
        return np.asarray(((kept * gap) @ self.waves)[self.cell])

    def design(self) -> DesignEffect:
        """Return the design effects, by the residuals themselves and by what a fitted gap leaves of them."""
        fitted = self.fitted
        rest = self.residual - fitted
        # The fit takes a part of the noise off, of which fewer clusters than rows lose more.
        rows = self.weight.sum() ** 2 / self.square.sum()
        lost = (1 - 1 / rows) / (1 - 1 / self.effective)
        most, usual, of_mean = self._along(rest, lost)
        sign = np.where(fitted < 0, -1.0, 1.0)
        strong = max(1.0, lost * self._effect(rest, sign=sign))
        size = self.weight @ np.abs(fitted) / self.weight.sum()
        doubt = most * (self.square @ rest**2) / self.weight.sum() ** 2
        sure = (size**2 / (size**2 + doubt)) ** 2 if size > 0 else 0.0
        return DesignEffect(
            effect=float(sure * strong + (1 - sure) * (most + usual) / 2),
            of_error=float(sure * strong + (1 - sure) * most),
            of_mean=of_mean,
            symmetric=sum(self._along(self.residual)[:2]) / 2,
        )

    def _along(self, residual: Array, times: float = 1.0) -> tuple[float, float, float]:
        """Return the largest design effect along slow waves, the mean along all, and that of the flat one."""
        along = np.maximum(1.0, times * np.array([self._effect(residual, wave) for wave in self.waves]))
        usual = float(along.mean())
        return max(usual, float(along[:SLOWEST].max())), usual, float(along[0])

    def _by_cluster(self, residual: Array, wave: Array | None = None, sign: Array | None = None) -> Array:
        """Return the sum of each cluster's residuals along a wave over the cells, or signed."""
        factor = self.weight * residual
        factor = factor * wave[self.cell] if wave is not None else factor
        return np.bincount(self.cluster, factor if sign is None else factor * sign)

    def _effect(self, residual: Array, wave: Array | None = None, sign: Array | None = None) -> float:
        """Return the variance of such a sum over that of independent rows; 1 where there is none."""
        square = self.square * residual**2
        alone = float((square if wave is None else square * wave[self.cell] ** 2).sum())
        together = float((self._by_cluster(residual, wave, sign) ** 2).sum())
        return together / alone if alone > 0 else 1.0

    def correlation(self, residual: Array) -> float:
        """Return the covariance of two residuals of one cluster, all pairs together, over the largest."""
        order = np.lexsort((self.score, self.cluster))
        score, weight = self.score[order], self.weight[order]
        whole = np.bincount(self.cluster, self.weight)
        # Weight of the same cluster that lies at larger scores.
        beyond = np.cumsum(whole)[self.cluster[order]] - np.cumsum(weight)
        least = (weight * score * (2 * beyond + weight)).sum()
        possible = least - (self._by_cluster(self.score) ** 2).sum()
        pairs = possible - self.square @ (self.score * (1 - self.score))
        excess = (self._by_cluster(residual) ** 2).sum() - self.square @ residual**2
        return float(np.clip(excess / pairs, 0.0, 1.0)) if pairs > 1e-9 * abs(possible) else 0.0
