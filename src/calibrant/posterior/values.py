"""A gap of its own for each distinct score, where there are few of them and many rows at each.

No smoothness is borrowed: what a model says when it says .7 need not tell anything about .8. The gaps
have one unknown size in common.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from calibrant.evidence import Array, Residuals
from calibrant.posterior.clock import running
from calibrant.posterior.process import softmax
from calibrant.posterior.tree import positive

# Distinct scores that are few, and the rows that each has on average at least.
FEW, ROWS = 32, 3
# Sizes of the gaps, in units of probability.
SIZES = tuple(np.geomspace(0.0125, 0.5, 6))


@dataclass(frozen=True, eq=False)
class Few:
    """The distinct scores of problems that have few; of other problems the shares are zero.

    Attributes
    ----------
    share, score : arrays (problems, values)
        Share of the rows, and score.
    unit : array (problems, values)
        Standard deviation of the mean residual at a score, times its share.
    rows : array (problems, values)
        Effective number of rows.
    overlap : array (problems, cells, values)
        How much of each score lies in each cell.
    """

    share: Array
    score: Array
    unit: Array
    rows: Array
    overlap: Array

    @property
    def any(self) -> Array:
        """Whether each problem has few distinct scores."""
        return self.share.sum(axis=-1) > 0

    def __getitem__(self, some: slice) -> Few:
        """Return some of the problems."""
        return Few(*(getattr(self, f.name)[some] for f in fields(self)))

    @property
    def pull(self) -> Array:
        """What a gap of one adds at each score, in units of the noise."""
        return np.divide(self.share, self.unit, out=np.zeros(self.unit.shape), where=self.unit > 0)

    @classmethod
    def of(cls, flat: Residuals, variance: Array, cells: int) -> tuple[Few, Array] | None:
        """Return the distinct scores and their data with unit noise; None where no problem has few."""
        held = flat.mass > 0
        count = np.count_nonzero(held, axis=-1)
        few = (count <= FEW) & (count * ROWS <= flat.n + 1e-6)
        if not few.any():
            return None
        problems, width = len(count), int(count[few].max())
        share, score, unit, rows, x = np.zeros((5, problems, width))
        overlap = np.zeros((problems, cells, width))
        for k in np.flatnonzero(few):
            at, n, d = held[k], float(flat.n[k]), int(count[k])
            mass, residual, spread = flat.mass[k, at], flat.residual[k, at], flat.spread[k, at]
            noise = spread * variance[k, at]
            share[k, :d], score[k, :d], rows[k, :d] = mass / n, flat.score[k, at], mass**2 / spread
            unit[k, :d], x[k, :d] = np.sqrt(noise) / n, residual / np.sqrt(noise)
            clock = running(noise)
            edge = clock[-1] * np.linspace(0, 1, cells + 1)
            upto = np.clip((edge[:, None] - clock[:-1]) / noise, 0.0, 1.0)
            overlap[k, :, :d] = np.diff(upto, axis=0)
        return cls(share, score, unit, rows, overlap), x


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
        """Return log likelihoods (problems, sizes); and slope and variance (problems, values, sizes) of the gaps."""
        size, pull = np.square(SIZES), self.few.pull[..., None]
        variance = size / (1 + pull**2 * size)
        slope = variance * pull
        log = 0.5 * (np.square(self.x)[..., None] * pull**2 * variance + np.log(variance / size)).sum(axis=-2)
        return log, slope, variance

    @property
    def evidence(self) -> Array:
        """Log of the Bayes factor against no gap; minus infinity where distinct scores are many."""
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
