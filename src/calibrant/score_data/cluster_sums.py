"""Sums of residuals by cluster and bin of the score, for score data without rows.

The design effects and the test of clustered rows need the residuals of each cluster along the score, at a
coarse resolution. These sums have a fixed size and add up. The bins are unions of cells of the fine layout:
64 equal parts of [0, 1], the first and the last one divided by octaves of the distance to 0 or 1. The method
is described in docs/methods/clusters.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from calibrant.parallel import cached_property
from calibrant.score_data.cells import Cells
from calibrant.score_data.clusters import DesignEffect, effective_clusters, least_variance
from calibrant.score_data.layout import FINE
from calibrant.score_data.moments import Array
from calibrant.score_data.residuals import Residuals

# Equal parts of [0, 1], and octaves that the first and the last one are divided into.
PARTS, OCTAVES = 64, 33


def _bins_of_cells() -> Array:
    """Return the bin of each cell of the fine layout."""
    middle = (FINE.low + FINE.high) / 2
    part = np.minimum((middle * PARTS).astype(np.intp), PARTS - 1)
    distance = np.maximum(np.minimum(middle, 1 - middle), 2.0**-60)
    octave = np.where((part > 0) & (part < PARTS - 1), 0, np.minimum(-np.log2(distance) - 6, OCTAVES - 1))
    # Bins are contiguous: a new one begins where part or octave changes.
    change = (np.diff(part, prepend=0) != 0) | (np.diff(octave.astype(np.intp), prepend=OCTAVES - 1) != 0)
    return np.cumsum(change)


#: Bin of each cell of the fine layout, and number of bins.
BIN_OF_CELL = _bins_of_cells()
BIN_OF_CELL.flags.writeable = False
BINS = int(BIN_OF_CELL[-1]) + 1


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over the rows of each cluster in each bin of the score.

    Attributes
    ----------
    weight, residual : arrays (problems, clusters, BINS)
        Sums of weights, and of weights times residuals (outcome minus score). Every cluster has rows.
    counts : bool
        Whether weights are numbers of rows.

    Examples
    --------
    >>> weight = np.zeros((1, 3, BINS))
    >>> weight[0, :2, [5, 9]] = [2.0, 4.0]
    >>> ClusterSums.of(weight, np.zeros_like(weight)).clusters
    2
    """

    weight: Array
    residual: Array
    counts: bool = True

    @classmethod
    def of(cls, weight: Array, residual: Array, *, counts: bool = True) -> ClusterSums:
        """Leave out clusters without rows."""
        kept = weight.sum(axis=(0, 2)) > 0
        return cls(weight[:, kept], residual[:, kept], counts)

    @property
    def clusters(self) -> int:
        """Number of clusters."""
        return self.weight.shape[1]

    @cached_property
    def size(self) -> Array:
        """Weight of each cluster."""
        return np.asarray(self.weight[0].sum(axis=1))

    @property
    def effective(self) -> float:
        """Effective number of clusters."""
        return effective_clusters(np.arange(self.clusters), self.size)

    @property
    def are_independent(self) -> bool:
        """Whether rows are treated as independent: a single cluster, or clusters of single rows."""
        return self.clusters == 1 or (self.counts and bool(np.all(self.size <= 1)))

    def designs(self, problems: Iterable[Cells]) -> list[DesignEffect]:
        """Return the design effects of each problem."""
        return [
            DesignEffect.of_sums(sums_by_bin(cells), *each)
            for cells, *each in zip(problems, self.weight, self.residual, strict=True)
        ]

    def across(self, residuals: Residuals, problem: int) -> Residuals:
        """Mark a score as shared only if rows of several clusters have it.

        This is so if it has more rows than any cluster has in its bin. Otherwise it is not known.
        """
        share = residuals.mass / residuals.mass.sum()
        most = self.weight[problem].max(axis=0) / self.size.sum()
        several = share > most[BIN_OF_CELL[FINE.locate(residuals.score)]] * (1 + 1e-9)
        return replace(residuals, single_score=residuals.single_score & several)

    def steps(self, cells: Cells, problem: int) -> tuple[Residuals, Array]:
        """Return the residuals of the bins of a problem, and those of each cluster (steps, clusters).

        Both have the scale of the effective number of rows.
        """
        weight, square = sums_by_bin(cells)[:2]
        occupied = np.flatnonzero(weight > 0)
        score = np.bincount(BIN_OF_CELL, cells.sums.w * cells.score)
        scale = float(cells.n) / weight.sum()
        by_cluster = scale * self.residual[problem].T[occupied]
        mass, score = weight[occupied], score[occupied] / weight[occupied]
        spread = square[occupied] * scale**2
        single: Array = np.zeros(occupied.shape, dtype=bool)
        return Residuals(scale * mass, score, by_cluster.sum(axis=1), spread, single), by_cluster


def sums_by_bin(cells: Cells) -> Array:
    """Return the sums of w, w^2, w^2 r, w^2 r^2 and of the variance of w r in each bin, (5, BINS).

    Rows of a cell are taken to have equal weights. If weights are counts, w^2 stands for w.

    >>> from calibrant.score_data.sample import Sample
    >>> sums_by_bin(Cells.of(Sample(np.array([0.25, 0.5]), np.array([False, True]))))[:4].sum(axis=1)
    array([2.    , 2.    , 0.25  , 0.3125])
    """
    w, ws, wy, wsy, wss = cells.sums.parts
    low, square = cells.low, cells.squared_weights
    score, score_square = ws + low * w, wss + 2 * low * ws + low**2 * w
    residual = wy - score
    residual_square = np.maximum(wy - 2 * (wsy + low * wy) + score_square, 0.0)
    variance = np.maximum(score - score_square, 0.0) + least_variance(float(cells.n)) * w
    share = np.divide(square, w, out=np.zeros(w.shape), where=w > 0)
    columns = w, square, share * residual, share * residual_square, share * variance
    return np.stack([np.bincount(BIN_OF_CELL, each) for each in columns])
