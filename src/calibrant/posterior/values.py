"""A gap of its own for each distinct score, where there are few of them, or for scores that hold many rows.

No smoothness is borrowed: what a model says when it says .7 need not tell anything about .8, and a
model that is certain (a score of 1) may be wrong in a way of its own. The gaps have one unknown size
in common. Where a few scores stand out among others, the others have no gap.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.evidence import Array, Residuals
from calibrant.posterior.clock import running
from calibrant.posterior.process import softmax
from calibrant.posterior.tree import positive

# Distinct scores that are few, and the rows that each has on average at least; and the share of the rows
# at a score that stands out, and their number at least.
FEW, ROWS, HEAVY, HEAVY_ROWS = 32, 3, 0.05, 20
# Sizes of the gaps, in units of probability.
SIZES = tuple(np.geomspace(0.04, 0.3, 4))


def is_few(held: Residuals) -> bool:
    """Return whether the scores of a single problem are few, and repeat."""
    return bool(held.mass.size <= FEW and held.mass.size * ROWS <= held.n + 1e-6)


@dataclass(frozen=True, eq=False)
class Few:
    """The distinct scores of problems that have few, or those that stand out; else the shares are zero.

    Attributes
    ----------
    share, score : arrays (problems, values)
        Share of the rows, and score.
    unit : array (problems, values)
        Standard deviation of the mean residual at a score, times its share.
    rows : array (problems, values)
        Effective number of rows.
    overlap, inside : arrays (problems, cells, values)
        How much of each score lies in each cell, and how much of each cell at each score.
    whole : array (problems,)
        Whether these are all scores.
    """

    share: Array
    score: Array
    unit: Array
    rows: Array
    overlap: Array
    inside: Array
    whole: Array

    @property
    def any(self) -> Array:
        """Whether each problem has any such scores."""
        return self.share.sum(axis=-1) > 0

    def __getitem__(self, some: slice | Array) -> Few:
        """Return some of the problems."""
        return Few(*(getattr(self, f.name)[some] for f in fields(self)))

    def repeated(self, times: int) -> Few:
        """Return the same for so many problems in turn; one for all, and what is in cells, stays."""
        if times == 1 or len(self.share) == 1:
            return self
        small = ("share", "score", "unit", "rows", "whole")
        return replace(self, **{name: getattr(self, name).repeat(times, axis=0) for name in small})

    @property
    def pull(self) -> Array:
        """What a gap of one adds at each score, in units of the noise."""
        return np.divide(self.share, self.unit, out=np.zeros(self.unit.shape), where=self.unit > 0)

    @classmethod
    def of(cls, flat: Residuals, variance: Array, cells: int) -> tuple[Few, Array] | None:
        """Return the distinct scores and their data with unit noise; None where no problem has few."""
        held = flat.mass > 0
        count = np.count_nonzero(held, axis=-1)
        whole = (count <= FEW) & (count * ROWS <= flat.n + 1e-6)
        held[~whole] &= (flat.mass >= np.maximum(HEAVY * flat.n, HEAVY_ROWS)[:, None])[~whole]
        count = np.count_nonzero(held, axis=-1)
        if not count.any():
            return None
        problems, width = len(count), int(count.max())
        share, score, unit, rows, x = np.zeros((5, problems, width))
        overlap, inside = np.zeros((2, problems, cells, width))
        for k in np.flatnonzero(count):
            at, n, d = held[k], float(flat.n[k]), int(count[k])
            mass, residual, spread = flat.mass[k, at], flat.residual[k, at], flat.spread[k, at]
            noise = spread * variance[k, at]
            share[k, :d], score[k, :d], rows[k, :d] = mass / n, flat.score[k, at], mass**2 / spread
            unit[k, :d], x[k, :d] = np.sqrt(noise) / n, residual / np.sqrt(noise)
            clock = running(flat.spread[k] * variance[k])
            edge = clock[-1] * np.linspace(0, 1, cells + 1)
            met = np.diff(np.clip(edge[:, None] - clock[:-1][at], 0.0, noise), axis=0)
            overlap[k, :, :d], inside[k, :, :d] = met / noise, met * (cells / clock[-1])
        return cls(share, score, unit, rows, overlap, inside, whole), x

    def from_cells(self, residual: Array) -> Array:
        """Return unit-noise data at the scores of each problem from residuals (problems * sets, cells).

        They are shares of all rows; a cell that reaches over a score is shared out in proportion.
        """
        problems, cells, values = self.inside.shape
        sums = residual.reshape(problems, -1, cells) @ self.inside
        unit = np.broadcast_to(self.unit[:, None], sums.shape)
        return np.divide(sums, unit, out=np.zeros(sums.shape), where=unit > 0).reshape(-1, values)


@dataclass(frozen=True, eq=False)
class EachValue:
    """The gap at each distinct score of each problem.

    Attributes
    ----------
    few : Few
        One for all problems, or one for each.
    x : array (problems, values)
        Data with unit noise.
    """

    few: Few
    x: Array

    @cached_property
    def _sizes(self) -> tuple[Array, Array, Array]:
        """Return log likelihoods of the sizes, and for each slope and variance of the gaps."""
        size, pull = np.square(SIZES), self.few.pull[..., None]
        variance = size / (1 + pull**2 * size)
        slope = variance * pull
        log = 0.5 * (np.square(self.x)[..., None] * pull**2 * variance + np.log(variance / size)).sum(axis=-2)
        return log, slope, variance

    @property
    def evidence(self) -> Array:
        """Log of the Bayes factor against no gap; minus infinity where no score stands out."""
        log = self._sizes[0]
        top = log.max(axis=-1)
        total = top + np.log(np.exp(log - top[..., None]).mean(axis=-1))
        return np.where(self.few.any, total, -np.inf)

    @cached_property
    def weight(self) -> Array:
        """Chance of each size."""
        return softmax(self._sizes[0])

    @cached_property
    def sides(self) -> tuple[Array, Array]:
        """Expected share of the rows times the gap's negative and positive part."""
        _, slope, variance = self._sizes
        mean, share = slope * self.x[..., None], self.few.share[..., None] * self.weight[:, None]
        up = (positive(mean, np.sqrt(variance)) * share).sum(axis=(-1, -2))
        return up - (mean * share).sum(axis=(-1, -2)), up

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square of the gap at each score."""
        _, slope, variance = self._sizes
        mean, weight = slope * self.x[..., None], self.weight[:, None]
        return (mean * weight).sum(axis=-1), ((mean**2 + variance) * weight).sum(axis=-1)

    def draw(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of problem k, (size, values)."""
        _, slope, variance = self._sizes
        one = k if len(slope) > 1 else 0
        which = rng.choice(len(SIZES), size, p=self.weight[k])
        noise = rng.standard_normal((size, self.x.shape[-1]))
        mean = slope[one][:, which].T * self.x[k]
        return np.asarray(mean + np.sqrt(variance[one][:, which].T) * noise)
