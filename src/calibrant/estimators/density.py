"""The paper's density estimator ECE_d: the integral of |pi1 f1 - s f|, without division."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.estimators.base import Estimator, Fit, Norm, SeveralFits, number_or_text
from calibrant.estimators.smoothing import NARROWEST, RULES, STEP, WIDEST, Grid, steps
from calibrant.evidence import Array, Evidence
from calibrant.evidence.kernels import KERNELS, overlap
from calibrant.evidence.moments import distinct
from calibrant.inputs import InputError, check_choice, is_number

# Where fewer effective rows than this stand under the kernel there is no curve.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class DensityFit(Fit):
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
    frequency : array
        Frequency of the outcome at each score of the grid; NaN where there is no data.
    """

    estimator: Density
    grid: Grid
    density: Array
    positive: Array
    bandwidth: Array
    floored: Array
    evidence: Evidence

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape of the batch."""
        return self.evidence.batch

    @property
    def kernel(self) -> str:
        """Name of the kernel."""
        return self.estimator.kernel

    @property
    def score(self) -> Array:
        """The grid."""
        return self.grid.score

    @property
    def nearby(self) -> Array:
        """Effective number of rows that speak at each score: (sum of weights)^2 / sum of squares."""
        points, step = self.score.size, self.grid.step
        own = overlap(self.kernel, self.width, points, points * step)
        square, _ = Grid.of(self.evidence.squared(), step).smooth(self.kernel, self.width)
        ratio = np.divide(self.density**2, square, out=np.zeros(own.shape), where=self._seen)
        return self.evidence.n[..., None] * ratio / own

    @property
    def width(self) -> Array:
        """Standard deviation of the kernel."""
        return np.maximum(self.bandwidth, NARROWEST)

    def as_used(self) -> Density:
        """Return the estimator with the bandwidth of this one problem."""
        return replace(self.estimator, bandwidth=float(self.width))

    @cached_property
    def _seen(self) -> Array:
        """Where the curve is defined: rows enough under the kernel, and more than the transform's ripple."""
        kernel = KERNELS[self.kernel]
        width = self.width[..., None]
        enough = self.evidence.n[..., None] * width * self.density >= LEAST
        ripple = np.abs(kernel.transform(np.pi * width / self.grid.step * np.linspace(0.9, 1, 50)))
        peak = self.density.max(axis=-1, keepdims=True)
        enough &= self.density > 10 * ripple.max(axis=-1, keepdims=True) * peak
        return enough & self.grid.reached(kernel.reach * self.width)

    @property
    def frequency(self) -> Array:
        """Frequency of the positive outcome at each score; NaN where there is no data."""
        empty = np.full(self.density.shape, np.nan)
        return np.clip(np.divide(self.positive, self.density, out=empty, where=self._seen), 0.0, 1.0)

    def _error(self, norm: Norm) -> Array:
        """Return the mean gap over the density (l1), its root mean square (l2) or the largest gap (max)."""
        gap = self.positive - self.score * distinct(self.density)
        if norm == "l1":
            value = np.abs(gap).sum(axis=-1) * self.grid.step
        elif norm == "l2":
            some = self.density > 1e-12 * self.density.max(axis=-1, keepdims=True)
            square = np.divide(gap**2, self.density, out=np.zeros(gap.shape), where=some)
            value = np.sqrt(square.sum(axis=-1) * self.grid.step)
        else:
            value = np.nanmax(np.abs(self.frequency - self.score), axis=-1)
        return np.where(self.bandwidth > 0, value, np.abs(self.grid.residual))


@dataclass(frozen=True)
class Density(Estimator):
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

    name = "density"
    short = "d"
    parameter = "bandwidth"
    summary = "kernel density estimate"

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, tuple(KERNELS))
        if isinstance(self.bandwidth, str):
            check_choice("bandwidth", self.bandwidth, tuple(RULES))
        elif not (is_number(self.bandwidth) and np.isfinite(self.bandwidth) and self.bandwidth > 0):
            rule = f"be a positive number or one of {', '.join(RULES)}"
            raise InputError("bandwidth", rule, self.bandwidth)
        if not (is_number(self.step) and 0 < self.step <= 0.1):
            raise InputError("step", "be a positive number of at most 0.1", self.step)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the bandwidth or its rule and, after another colon, the kernel."""
        bandwidth, _, kernel = (parameter or "silverman").partition(":")
        return cls(number_or_text(bandwidth), kernel or "triweight")  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"density:{self.bandwidth}" + ("" if self.kernel == "triweight" else f":{self.kernel}")

    def fit(self, evidence: Evidence) -> DensityFit | SeveralFits:
        """Choose the bandwidth of each problem, bin onto a grid, smooth.

        Problems that need different steps get different grids: no problem's error depends on
        which others are in its batch.
        """
        if isinstance(self.bandwidth, str):
            asked = np.asarray(RULES[self.bandwidth](evidence), dtype=float)
        else:
            asked = np.full(evidence.batch, float(self.bandwidth))
        step = steps(np.maximum(asked, NARROWEST), self.step)
        if np.all(step == step.flat[0]):
            return self._fit(evidence, asked, float(step.flat[0]))
        masks = [step == one for one in np.unique(step)]
        parts = [(mask, self._fit(evidence[mask], asked[mask], float(step[mask][0]))) for mask in masks]
        return SeveralFits(self, evidence.batch, parts)

    def fit_alike(self, evidence: Evidence) -> DensityFit:
        """Fit problems that share one bandwidth, and so one grid."""
        fit = self.fit(evidence)
        assert isinstance(fit, DensityFit)
        return fit

    def _fit(self, evidence: Evidence, asked: Array, step: float) -> DensityFit:
        width = np.clip(asked, NARROWEST, WIDEST)
        grid = Grid.of(evidence, step)
        density, positive = grid.smooth(self.kernel, width)
        return DensityFit(
            estimator=self,
            grid=grid,
            density=density,
            positive=positive,
            bandwidth=np.where(asked > 0, width, 0.0),
            floored=asked < NARROWEST,
            evidence=evidence,
        )
