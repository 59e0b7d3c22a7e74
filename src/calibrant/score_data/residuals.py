"""Residuals in score order, the sufficient statistics of methods based on cumulative sums.

Scores in the same cell of the fine layout are pooled. Rows, sketches and merged sketches of that layout
therefore give the same residuals up to rounding. Scores that differ only by rounding are pooled across a cell
edge: edges are round numbers, and a score of 0.3 is often computed as the next smaller float.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.score_data.cells import Cells
from calibrant.score_data.layout import FINE
from calibrant.score_data.loops import sums_in_occupied_cells
from calibrant.score_data.moments import Array
from calibrant.score_data.rounding import look_rounded, pairs_are_chance, stand_alone
from calibrant.score_data.sample import Sample, sums_in_runs

# For at least this many rows, summing by cell is faster than sorting.
SUMMED_FROM = 8192
# Scores are tied if they differ by at most this share of the distance to 0 or 1.
TIED = 1e-11
# Rows of a cell share one score if their variance is below EXACT times the squared width of the cell. If at
# least a share DISCRETE of all rows is in such cells with several rows, the scores are discrete: then a cell
# of at least DOMINATED_ROWS rows also counts as a single score up to a variance of DOMINATED times the
# squared width.
EXACT, DISCRETE, DOMINATED_ROWS, DOMINATED = 1e-12, 0.1, 8.0, 0.005


@dataclass(frozen=True, eq=False)
class Residuals:
    """Mass, mean score and residual of the steps of each problem, in score order.

    Attributes
    ----------
    mass : array
        Weight of each step; the sum is the effective number of rows. Steps without mass are ignored.
    score : array
        Mean score of each step.
    residual : array
        Weighted sum of outcome minus score.
    spread : array
        Sum of squared weights (of weights, if they are counts). Its product with the variance of an outcome
        is the variance of the residual.
    single_score : array of bool
        Whether all rows of the step have the same score.
    """

    mass: Array
    score: Array
    residual: Array
    spread: Array
    single_score: Array

    @classmethod
    def of(cls, data: Any, *, ties: bool = True) -> Residuals:
        """Return the residuals of rows or of cells; without `ties`, no score is treated as shared.

        >>> residuals = Residuals.of(Sample(np.array([0.9, 0.2, 0.2]), np.array([True, False, True])))
        >>> residuals.score
        array([0.2, 0.2, 0.9])
        >>> residuals.residual.round(3)
        array([0.6, 0. , 0.1])
        """
        if isinstance(data, Cells):
            residuals = cls._from_cells(data)
        elif data.shape[-1] < SUMMED_FROM:
            residuals = cls._from_few(data)
        else:
            residuals = cls._from_many(data, ties=ties)
        residuals = residuals._ties_pooled()
        if not ties:
            return replace(residuals, single_score=np.zeros(residuals.mass.shape, dtype=bool))
        return residuals._without_rounding()

    def thinned(self, times: float, noisier: float = 1.0) -> Residuals:
        """Divide the effective number of rows by `times`, with the same frequencies.

        The variance of the residuals is multiplied by `noisier`.

        >>> residuals = Residuals.of(Sample(np.repeat([0.2, 0.9], 3), np.repeat([False, True], 3)))
        >>> float(residuals.thinned(3).n)
        2.0
        """
        spread = self.spread * (noisier / times)
        return replace(self, mass=self.mass / times, residual=self.residual / times, spread=spread)

    @property
    def n(self) -> Array:
        """Effective number of rows."""
        return self.mass.sum(axis=-1)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.mass.shape[:-1]

    @property
    def flat(self) -> Residuals:
        """The same problems with a single batch axis."""
        rows = int(np.prod(self.batch, dtype=np.intp))
        return Residuals(*(array.reshape(rows, -1) for array in self._parts))

    @property
    def _parts(self) -> tuple[Array, ...]:
        return self.mass, self.score, self.residual, self.spread, self.single_score

    @property
    def frequency(self) -> Array:
        """Share of positive outcomes of each step; the score if there is no mass."""
        gap = np.divide(self.residual, self.mass, out=np.zeros(self.mass.shape), where=self.mass > 0)
        return np.clip(self.score + gap, 0.0, 1.0)

    def __getitem__(self, entry: Any) -> Residuals:
        """Return a subset of the problems of a batch, or a subset of the steps of a single problem."""
        return Residuals(*(array[entry] for array in self._parts))

    def coarser(self, most: int) -> Residuals:
        """Pool neighbouring steps of a single problem to at most about `most` steps.

        >>> Residuals.of(Sample(np.arange(8) / 8, np.arange(8) > 3)).coarser(2).mass
        array([4., 4.])
        """
        occupied = self[self.mass > 0]
        if occupied.mass.size <= most:
            return occupied
        # Equal shares of the mean of two measures: the mass and the variance of the residuals.
        p = occupied.score
        variance = occupied.spread * (p * (1 - p) + 1e-6)
        time = np.cumsum((occupied.mass / occupied.mass.sum() + variance / variance.sum()) / 2)
        return occupied.pooled(np.minimum((time * most).astype(np.intp), most - 1))

    def pooled(self, group: Array) -> Residuals:
        """Pool the steps of each group of neighbours in a single problem.

        >>> residuals = Residuals.of(Sample(np.array([0.2, 0.4, 0.9]), np.array([False, True, True])))
        >>> residuals.pooled(np.array([0, 0, 1])).mass
        array([2., 1.])
        """
        return self._pooled_runs(group)[np.flatnonzero(np.diff(group, prepend=group[0] - 1))]

    def _pooled_runs(self, run: Array) -> Residuals:
        """Pool neighbours that are equal in `run`: the first of them gets the mass, the others get none."""
        parts = (self.mass, self.residual, self.spread, self.mass * self.score)
        mass, residual, spread, ws = sums_in_runs(run, *parts)
        score = np.divide(ws, mass, out=self.score.copy(), where=mass > 0)
        # Rounding may move the mean out of the range of its scores, even past the next mean.
        fresh = np.ones(run.shape, dtype=bool)
        np.not_equal(run[..., 1:], run[..., :-1], out=fresh[..., 1:])
        start = np.flatnonzero(fresh)
        first, last = (self.score.ravel()[at] for at in (start, np.append(start[1:], run.size) - 1))
        score.ravel()[start] = np.clip(score.ravel()[start], first, last)
        single_score: Array = np.ones(run.shape, dtype=bool)
        same = last - first <= TIED * np.minimum(last, 1 - last)
        (mixed,) = sums_in_runs(run, (~self.single_score).astype(np.float64))
        single_score.ravel()[start] = same & (mixed.ravel()[start] == 0)
        return Residuals(mass, score, residual, spread, single_score)

    def _ties_pooled(self) -> Residuals:
        """Pool neighbours whose scores are equal up to rounding.

        >>> score = np.array([0.3, np.nextafter(0.3, 0), 0.5])  # 0.3 is the edge of a cell
        >>> Residuals.of(Sample(score, np.array([True, False, True]))).mass
        array([2., 0., 1.])
        """
        occupied = np.flatnonzero(self.mass)
        score = self.score.ravel()[occupied]
        tied = tied_with_previous(score)[1:]
        if not tied.any():
            return self
        fresh = np.zeros(self.mass.size, dtype=np.intp)
        fresh[occupied[1:][~tied]] = 1
        return self._pooled_runs(np.cumsum(fresh).reshape(self.mass.shape))

    def _without_rounding(self) -> Residuals:
        """Treat scores that only rounding may have made equal as not shared."""
        shape = (-1, self.mass.shape[-1])
        flat = [part.reshape(shape) for part in (self.mass, self.score, self.spread, self.single_score)]
        rounded = [_rounded(*problem) for problem in zip(*flat, strict=True)]
        return replace(self, single_score=self.single_score & ~np.reshape(rounded, self.mass.shape))

    @classmethod
    def _from_few(cls, sample: Sample) -> Residuals:
        score, outcome, weight = sample.in_order
        mass = np.ones(sample.shape) if weight is None else weight
        spread = mass if sample.counts else mass * mass
        rows = cls(mass, score, mass * (outcome - score), spread, np.ones(sample.shape, dtype=bool))
        cell = FINE.low.searchsorted(score, side="right") - 1
        pooled = rows._pooled_runs(cell)
        away = score - FINE.low[cell]
        ws, wss = sums_in_runs(cell, mass * away, mass * away**2)
        width = (FINE.high - FINE.low)[cell]
        single_score = _one_score(pooled.mass, ws, wss, width, pooled.spread)
        return replace(pooled, single_score=single_score)._scaled(sample.n)

    @classmethod
    def _from_many(cls, sample: Sample, *, ties: bool) -> Residuals:
        rows = sample.score, sample.outcome, sample.weight
        sums = None if ties else sums_in_occupied_cells(*rows, FINE)
        if sums is None:
            return cls._from_cells(Cells.of(sample))
        occupied, (w, ws, wy) = sums
        # Without sums of squares, no score can be identified as shared.
        return cls._of_sums(w, ws, wy, np.full(w.shape, np.nan), FINE.low[occupied], FINE.high[occupied], w)

    @classmethod
    def _from_cells(cls, cells: Cells) -> Residuals:
        """Return the residuals of the non-empty cells."""
        w, ws, wy, _, wss = cells.tie_groups().parts
        occupied = np.flatnonzero((w > 0).reshape(-1, w.shape[-1]).any(axis=0))
        # With many classes most cells are empty, so drop them first.
        per_row = None if cells.spread is not None else (cells.squares / w.sum(axis=-1))[..., None]
        w, ws, wy, wss, low, high = (
            array[..., occupied] for array in (w, ws, wy, wss, cells.low, cells.high)
        )
        spread = cells.squared_weights[..., occupied] if per_row is None else w * per_row
        return cls._of_sums(w, ws, wy, wss, low, high, spread)._scaled(cells.n)

    @classmethod
    def _of_sums(
        cls, w: Array, ws: Array, wy: Array, wss: Array, low: Array, high: Array, spread: Array
    ) -> Residuals:
        """Return the residuals of cells from sums of scores relative to the lower end of each cell."""
        mean = np.divide(ws, w, out=np.zeros(w.shape), where=w > 0)
        single_score = _one_score(w, ws, wss, high - low, spread)
        return cls(w, np.clip(low + mean, low, high), wy - w * low - ws, spread, single_score)

    def _scaled(self, n: Array) -> Residuals:
        """Scale the weights so that they sum to the effective number of rows."""
        factor = (n / self.mass.sum(axis=-1))[..., None]
        return replace(
            self, mass=self.mass * factor, residual=self.residual * factor, spread=self.spread * factor**2
        )


def across_clusters(residuals: Residuals, sample: Any, cluster: Array | None) -> Residuals:
    """Mark a score as shared only if rows of several clusters have it.

    Rows of the same cluster are correlated, which is no information about the score.

    >>> sample = Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True]))
    >>> across_clusters(Residuals.of(sample), sample, np.array([0, 0, 1, 2])).single_score[[0, 2]]
    array([False,  True])
    """
    occupied = np.flatnonzero(residuals.mass > 0)
    score = residuals.score[occupied]
    step = np.searchsorted((score[1:] + score[:-1]) / 2, next(sample.rows())[0])
    pairs = np.unique(np.stack([step, np.broadcast_to(cluster, step.shape)]), axis=1)  # type: ignore[arg-type]
    clusters = np.diff(np.searchsorted(pairs[0], np.arange(occupied.size + 1)))
    single_score = residuals.single_score.copy()
    single_score[occupied] &= clusters > 1
    return replace(residuals, single_score=single_score)


def _one_score(w: Array, ws: Array, wss: Array, width: Array, spread: Array) -> Array:
    """Return whether the rows of each cell share one score, from sums of scores and their squares.

    >>> w, wss = np.array([2.0, 2.0]), np.array([2.0, 4.0])
    >>> _one_score(w, np.array([2.0, 2.0]), wss, np.full(2, 3.0), w)
    array([ True, False])
    """
    mean, square = (np.divide(sums, w, out=np.zeros(w.shape), where=w > 0) for sums in (ws, wss))
    variance = square - mean**2
    exact = variance <= EXACT * np.maximum(width**2, mean**2)
    repeated = w * w > (1 + 1e-6) * spread
    discrete = np.where(exact & repeated, w, 0.0).sum(axis=-1) >= DISCRETE * w.sum(axis=-1)
    dominated = (variance <= DOMINATED * width**2) & (w * w > DOMINATED_ROWS * spread)
    return np.asarray(exact | (discrete[..., None] & dominated))


def _rounded(mass: Array, score: Array, spread: Array, single_score: Array) -> Array:
    """Return which steps of a problem have scores that look rounded: all, but for those that stand alone."""
    rounded = np.zeros(mass.shape, dtype=bool)
    occupied = (mass > 0) & (spread > 0)
    rows = np.divide(mass**2, spread, out=np.zeros(mass.shape), where=occupied)
    single = single_score & occupied
    if not (rows[single] > 1 + 1e-6).any():
        return rounded
    width = (FINE.high - FINE.low)[FINE.low.searchsorted(score[occupied], side="right") - 1]
    if look_rounded(score[single], rows[single]) or pairs_are_chance(
        score[occupied], rows[occupied], single[occupied], width
    ):
        rounded[single] = ~stand_alone(score[single], rows[single])
    return rounded


def tied_with_previous(score: Array) -> Array:
    """Return for each of the sorted scores whether it equals the previous one up to rounding.

    >>> tied_with_previous(np.array([0.3, 0.1 + 0.2, 0.5]))
    array([False,  True, False])
    """
    near = np.abs(np.diff(score)) <= TIED * np.minimum(score, 1 - score)[1:]
    return np.concatenate([np.zeros(min(1, score.size), dtype=bool), near])
