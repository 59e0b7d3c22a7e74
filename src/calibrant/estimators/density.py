"""The paper's density estimator ECE_d: the integral of |pi1 f1 - s f|, without division."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calibrant._check import check_choice
from calibrant.density import NARROWEST, RULES, STEP, Grid
from calibrant.estimators.base import Norm, check_norm
from calibrant.evidence import Array, Evidence
from calibrant.kernels import KERNELS, overlap

# Where fewer effective rows than this stand under the kernel there is no curve.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class DensityFit:
    """Smoothed densities on a grid, and the errors they give.

    Attributes
    ----------
    score : array
        The grid, shared by the batch.
    density, positive : arrays
        Density of the scores, and share of positive rows times the density of their scores.
    bandwidth : array
        Bandwidth of each batch entry as used; 0 where all scores are (nearly) the same.
    floored : array
        Whether the rule asked for a bandwidth below the narrowest one, .0003.
    """

    score: Array
    step: float
    density: Array
    positive: Array
    bandwidth: Array
    floored: Array
    n: Array
    kernel: str
    mean_residual: Array

    @property
    def nearby(self) -> Array:
        """Effective number of rows that speak at each score."""
        length = self.step * self.score.size
        own = overlap(self.kernel, self._width, self.score.size, length)
        return self.n[..., None] * np.maximum(self.density, 0) / own

    @property
    def _width(self) -> Array:
        return np.maximum(self.bandwidth, NARROWEST)

    def curve(self) -> Array:
        """Frequency of the positive outcome at each score; NaN where there is no data."""
        seen = self.n[..., None] * self._width[..., None] * self.density >= LEAST
        ratio = np.divide(self.positive, self.density, out=np.full(self.density.shape, np.nan), where=seen)
        return np.clip(ratio, 0.0, 1.0)

    def error(self, norm: Norm = "l1") -> Array:
        """Integral of the gap over the density (l1), its root mean square (l2), its largest (max)."""
        check_norm(norm)
        gap = self.positive - self.score * self.density
        if norm == "l1":
            value = np.abs(gap).sum(axis=-1) * self.step
        elif norm == "l2":
            some = self.density > 1e-12 * self.density.max(axis=-1, keepdims=True)
            square = np.divide(gap**2, self.density, out=np.zeros(gap.shape), where=some)
            value = np.sqrt(square.sum(axis=-1) * self.step)
        else:
            value = np.nanmax(np.abs(self.curve() - self.score), axis=-1)
        return np.where(self.bandwidth > 0, value, np.abs(self.mean_residual))


@dataclass(frozen=True)
class Density:
    """Kernel density estimate of scores and of positive scores on a bounded domain.

    Parameters
    ----------
    bandwidth : {"silverman", "scott", "isj"} or float
        Standard deviation of the kernel, or the rule that finds it from the scores of each
        problem. The same one serves both densities.
    kernel : {"triweight", "gaussian", "epanechnikov", "cosine"}
    step : float
        Step of the grid, halved until it is at most a third of the bandwidth. The default serves
        every purpose; a coarser one is faster where a simulation needs many small fits.

    Examples
    --------
    >>> from calibrant.evidence import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> calibrated = Sample(score, rng.random(2000) < score)
    >>> bool(Density().fit(calibrated).error() < 0.02)
    True
    """

    bandwidth: Literal["silverman", "scott", "isj"] | float = "silverman"
    kernel: Literal["triweight", "gaussian", "epanechnikov", "cosine"] = "triweight"
    step: float = STEP

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, tuple(KERNELS))
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, tuple(RULES))
        elif not (np.isfinite(self.bandwidth) and self.bandwidth > 0):
            raise ValueError(f"bandwidth must be a positive number or a rule, got {self.bandwidth!r}")
        if not 0 < self.step <= 0.1:
            raise ValueError(f"step must be a positive number of at most 0.1, got {self.step!r}")

    def __str__(self) -> str:
        return f"density:{self.bandwidth}"

    def fit(self, evidence: Evidence) -> DensityFit:
        """Choose the bandwidth, bin onto the grid, smooth."""
        if isinstance(self.bandwidth, str):
            asked = np.asarray(RULES[self.bandwidth](evidence), dtype=float)
        else:
            asked = np.full(evidence.batch, float(self.bandwidth))
        width = np.maximum(asked, NARROWEST)
        grid = Grid.of(evidence, float(width.min()), self.step)
        density, positive = grid.smooth(self.kernel, width[()])
        return DensityFit(
            score=grid.score,
            step=grid.step,
            density=density,
            positive=positive,
            bandwidth=np.where(asked > 0, width, 0.0),
            floored=asked < NARROWEST,
            n=evidence.n,
            kernel=self.kernel,
            mean_residual=grid.residual,
        )
