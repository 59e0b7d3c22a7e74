"""Residuals in score order: what is left of the evidence when only its running sums matter.

Scores that share a cell of the fine layout count as one score, so rows, sketches and merged
sketches of that layout give the same profile to rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.evidence.cells import FINE, Cells
from calibrant.evidence.moments import Array
from calibrant.evidence.sample import Sample

# From this many rows on, counting by cell is cheaper than sorting.
COUNTED = 8192


@dataclass(frozen=True, eq=False)
class Residuals:
    """Mass, mean score and residual of the steps of each problem, in score order.

    Attributes
    ----------
    mass : array
        Weight of each step; sums to the effective number of rows. Steps without mass do not count.
    score : array
        Mean score of each step.
    residual : array
        Sum of outcome minus score, weighted.
    spread : array
        Sum of squared weights (of weights, where they are counts): times the variance of an
        outcome, the variance of the residual.
    """

    mass: Array
    score: Array
    residual: Array
    spread: Array

    @classmethod
    def of(cls, evidence: Any) -> Residuals:
        """The profile of rows or of cells.

        >>> profile = Residuals.of(Sample(np.array([0.9, 0.2, 0.2]), np.array([True, False, True])))
        >>> profile.score
        array([0.2, 0.2, 0.9])
        >>> profile.residual.round(3)
        array([0.6, 0. , 0.1])
        """
        if isinstance(evidence, Cells):
            return cls._from_cells(evidence)
        if evidence.shape[-1] < COUNTED:
            return cls._from_rows(evidence)
        squares = None if evidence.counts else evidence.squared()
        return cls._counted(evidence, squares)

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
        """The same problems along one axis."""
        rows = int(np.prod(self.batch, dtype=np.intp))
        parts = (self.mass, self.score, self.residual, self.spread)
        return Residuals(*(part.reshape(rows, -1) for part in parts))

    @property
    def frequency(self) -> Array:
        """Share of positive outcomes of each step; the score where there is no mass."""
        gap = np.divide(self.residual, self.mass, out=np.zeros(self.mass.shape), where=self.mass > 0)
        return np.clip(self.score + gap, 0.0, 1.0)

    @property
    def brier(self) -> Array:
        """Mean squared difference of outcome and score."""
        p, s = self.frequency, self.score
        return (self.mass * (p * (1 - 2 * s) + s * s)).sum(axis=-1) / self.n

    def __getitem__(self, entry: Any) -> Residuals:
        """One problem of a batch, or some of them."""
        return Residuals(self.mass[entry], self.score[entry], self.residual[entry], self.spread[entry])

    def coarser(self, most: int) -> Residuals:
        """At most about `most` steps for a single problem: neighbours joined where steps are many."""
        held = self.mass > 0
        one = Residuals(self.mass[held], self.score[held], self.residual[held], self.spread[held])
        if one.mass.size <= most:
            return one
        # Both rows and their variance are spread evenly, whatever the scores crowd at.
        p = one.score
        share = one.mass / one.mass.sum()
        clock = one.spread * (p * (1 - p) + 1e-6)
        place = np.cumsum((share + clock / clock.sum()) / 2)
        group = np.minimum((place * most).astype(np.intp), most - 1)
        first = np.flatnonzero(np.diff(group, prepend=-1))
        mass, residual, spread, score = (
            np.add.reduceat(part, first)
            for part in (one.mass, one.residual, one.spread, one.mass * one.score)
        )
        return Residuals(mass, score / mass, residual, spread)

    def redraw(self, chance: Array, rng: np.random.Generator, size: int) -> Residuals:
        """`size` copies of a single problem with outcomes drawn with the given chance at each step."""
        rows = np.maximum(np.rint(self.mass**2 / self.spread), 1).astype(np.int64)
        if rows.max() == 1:
            drawn = (rng.random((size, rows.size), dtype=np.float32) < chance).astype(np.float64)
        else:
            drawn = rng.binomial(rows, chance, (size, rows.size)) / rows
        residual = self.mass * (drawn - self.score)
        shape = residual.shape
        mass, score, spread = (np.broadcast_to(p, shape) for p in (self.mass, self.score, self.spread))
        return Residuals(mass, score, residual, spread)

    @classmethod
    def _from_rows(cls, sample: Sample) -> Residuals:
        score, outcome, weight = sample._in_order
        shape = sample.shape
        mass = np.ones(shape) if weight is None else weight * 1.0
        residual = mass * (outcome - score)
        cell = FINE.locate(score.ravel()).reshape(shape)
        fresh = np.ones(shape, dtype=bool)
        fresh[..., 1:] = cell[..., 1:] != cell[..., :-1]
        spread = mass if sample.counts else mass * mass
        if not fresh.all():
            # A run's sums stand at its first row and zeros at the others, so a batch stays rectangular.
            start = np.flatnonzero(fresh)
            parts = (mass, residual, spread, mass * score)
            total, r, q, ws = (np.add.reduceat(part.ravel(), start) for part in parts)
            mean = np.divide(ws, total, out=score.ravel()[start], where=total > 0)
            mass, residual, spread = np.zeros((3, *shape))
            score = score.copy()
            for whole, part in ((mass, total), (residual, r), (spread, q), (score, mean)):
                whole.ravel()[start] = part
        return cls(mass, score, residual, spread)._scaled(sample.n)

    @classmethod
    def _counted(cls, sample: Sample, squares: Sample | None) -> Residuals:
        w, ws = sample._tally([FINE.locate], FINE.size, FINE.low, powers=1)
        spread = None
        if squares is not None:
            (s,) = squares._tally([FINE.locate], FINE.size, FINE.low, powers=0)
            spread = s[0] + s[1]
        return cls._from_sums(w[0] + w[1], ws[0] + ws[1], w[1], FINE.low, FINE.high, spread, sample.n)

    @classmethod
    def _from_cells(cls, cells: Cells) -> Residuals:
        s = cells.sums
        share = (cells.squares / s.w.sum(axis=-1))[..., None]
        return cls._from_sums(s.w, s.ws, s.wy, cells.low, cells.high, s.w * share, cells.n)

    @classmethod
    def _from_sums(
        cls, w: Array, ws: Array, wy: Array, low: Array, high: Array, spread: Array | None, n: Array
    ) -> Residuals:
        held = np.flatnonzero((w > 0).reshape(-1, w.shape[-1]).any(axis=0))
        w, ws, wy = (part[..., held] for part in (w, ws, wy))
        spread = w if spread is None else spread[..., held]
        low, high = low[held], high[held]
        offset = np.divide(ws, w, out=np.zeros(w.shape), where=w > 0)
        score = np.clip(low + offset, low, high)
        return cls(w, score, wy - w * low - ws, spread)._scaled(n)

    def _scaled(self, n: Array) -> Residuals:
        """Weights on the scale on which they sum to the effective number of rows."""
        factor = (n / self.mass.sum(axis=-1))[..., None]
        if np.all(factor == 1):
            return self
        return replace(
            self, mass=self.mass * factor, residual=self.residual * factor, spread=self.spread * factor**2
        )
