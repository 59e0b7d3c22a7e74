"""The paper's density estimator ECE_d: the integral of |pi1 f1 - s f|, without division."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, SeveralFits, number_or_text
from calibrant.estimators.smoothing import NARROWEST, RULES, STEP, WIDEST, Grid, steps
from calibrant.inputs import InputError, check_choice, is_number
from calibrant.parallel import cached_property
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.kernels import KERNELS, overlap

# Where fewer effective rows than this stand under the kernel there is no curve.
LEAST = 1e-3


@dataclass(frozen=True, eq=False)
class DensityFit(Fit):
    """Densities on a grid, and errors computed from them.

    Attributes
    ----------
    score : array
        The grid, shared by the batch.
    share : array
        Weight of each grid point in an integral over the scores.
    density, positive : arrays
        Density of the scores, and share of positive rows times the density of their scores.
    residual : array
        Mean of outcome minus score.
    bandwidth : array
        Bandwidth of each batch entry as used; 0 where all scores are (nearly) the same.
    floored : array
        Whether the rule gave less than the smallest allowed bandwidth.
    boundary_mass : array
        Share of all rows, and of the positive ones among them, that lie exactly on the lower or on the upper
        boundary and therefore have no density. It is 0 for kernels that are reflected at the boundaries.
    frequency : array
        Frequency of the outcome at each score of the grid; NaN where there is no data.
    """

    estimator: Any
    score: Array
    share: Array
    density: Array
    positive: Array
    residual: Array
    bandwidth: Array
    floored: Array
    data: ScoreData
    boundary_mass: Array = field(default_factory=lambda: np.zeros((2, 2)))

    @property
    def nearby(self) -> Array:
        """Effective local sample size at each score: (sum of weights)^2 / sum of squared weights."""
        points, step, kernel = self.score.size, float(self.share), self.estimator.kernel
        kernel_overlap = overlap(kernel, self.width, points, points * step)
        square, _ = Grid.of(self.data.squared(), step).smooth(kernel, self.width)
        ratio = np.divide(self.density**2, square, out=np.zeros(kernel_overlap.shape), where=self._is_defined)
        return self.data.n[..., None] * ratio / kernel_overlap

    @property
    def width(self) -> Array:
        """Standard deviation of the kernel."""
        return self._bandwidth

    @property
    def _bandwidth(self) -> Array:
        return np.maximum(self.bandwidth, self.estimator.narrowest)

    def as_used(self) -> KernelDensity:
        """Return the estimator with the bandwidth of this one problem."""
        used: KernelDensity = replace(self.estimator, bandwidth=float(self._bandwidth))
        return used

    @cached_property
    def _is_defined(self) -> Array:
        """Where the curve is defined: enough rows nearby, and above the error of the transform."""
        kernel, step = KERNELS[self.estimator.kernel], float(self.share)
        width = self.width[..., None]
        enough = self.data.n[..., None] * width * self.density >= LEAST
        ripple = np.abs(kernel.transform(np.pi * width / step * np.linspace(0.9, 1, 50)))
        peak = self.density.max(axis=-1, keepdims=True)
        enough &= self.density > 10 * ripple.max(axis=-1, keepdims=True) * peak
        return enough & Grid.of(self.data, step).reached(kernel.support_radius * self.width)

    @property
    def frequency(self) -> Array:
        """Frequency of the positive outcome at each score; NaN where there is no data."""
        empty = np.full(self.density.shape, np.nan)
        return np.clip(np.divide(self.positive, self.density, out=empty, where=self._is_defined), 0.0, 1.0)

    def _error(self, norm: Norm) -> Array:
        """Return the mean gap over the rows (l1), its root mean square (l2) or the largest gap (max)."""
        gap = self.positive - self.score * self.density
        on_wall = self.boundary_mass[..., 1] - self.score[[0, -1]] * self.boundary_mass[..., 0]
        if norm == "l1":
            value = (np.abs(gap) * self.share).sum(axis=-1) + np.abs(on_wall).sum(axis=-1)
        elif norm == "l2":
            square = (_over(gap**2, self.density) * self.share).sum(axis=-1)
            value = np.sqrt(square + _over(on_wall**2, self.boundary_mass[..., 0]).sum(axis=-1))
        else:
            inside = np.nan_to_num(np.abs(self.frequency - self.score)).max(axis=-1)
            value = np.maximum(inside, _over(np.abs(on_wall), self.boundary_mass[..., 0]).max(axis=-1))
        return np.where(self.bandwidth > 0, value, np.abs(self.residual))


def _over(square: Array, mass: Array) -> Array:
    """Divide squares by masses; return 0 where the mass is negligible."""
    occupied = mass > 1e-12 * mass.max(axis=-1, keepdims=True)
    return np.divide(square, mass, out=np.zeros(square.shape), where=occupied)


class KernelDensity(Estimator):
    """Base class of the estimators by kernel densities: each problem is smoothed on a grid that suits it."""

    bandwidth: Any
    kernel: Any
    narrowest: ClassVar[float]

    def chosen_bandwidth(self, data: ScoreData) -> Array:
        """Return the bandwidth of each problem, as given or by the rule."""
        if isinstance(self.bandwidth, str):
            return np.asarray(RULES[self.bandwidth](data), dtype=float)
        return np.full(data.batch, float(self.bandwidth))

    @abstractmethod
    def _grids(self, chosen_bandwidth: Array) -> Array:
        """Return what defines the grid for each bandwidth."""

    @abstractmethod
    def fit_on_grid(self, data: ScoreData, chosen_bandwidth: Array, grid: Any, /) -> DensityFit:
        """Fit problems that share a grid."""

    def fit(self, data: ScoreData) -> DensityFit | SeveralFits:
        """Fit each problem on its own grid, so that the result does not depend on the rest of the batch."""
        bandwidth = self.chosen_bandwidth(data)
        grids = self._grids(bandwidth)
        if np.all(grids == grids.flat[0]):
            return self.fit_on_grid(data, bandwidth, grids.flat[0].item())
        masks = [(grids == grid, grid.item()) for grid in np.unique(grids)]
        parts = [(mask, self.fit_on_grid(data[mask], bandwidth[mask], grid)) for mask, grid in masks]
        return SeveralFits(self, data.batch, parts)

    def fit_shared_bandwidth(self, data: ScoreData) -> DensityFit:
        """Fit problems that share one bandwidth, and so one grid."""
        fit = self.fit(data)
        assert isinstance(fit, DensityFit)
        return fit


@dataclass(frozen=True)
class Density(KernelDensity):
    """Kernel density estimate of scores and of positive scores on a bounded domain.

    Parameters
    ----------
    bandwidth : {"silverman", "scott", "isj"} or float
        Standard deviation of the kernel, or the rule that chooses it from the scores of each problem. Both
        densities have the same bandwidth.
    kernel : {"triweight", "gaussian", "epanechnikov", "cosine"}
        Shape of the kernel.
    step : float
        Step of the grid, halved until it is at most a third of the bandwidth. A larger step is faster, for
        simulations with many small fits.

    See Also
    --------
    DensityBeta : Densities by beta kernels.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> calibrated = Sample(score, rng.random(2000) < score)
    >>> bool(Density().fit(calibrated).error() < 0.02)
    True
    """

    bandwidth: Literal["silverman", "scott", "isj"] | float = "silverman"
    kernel: Literal["triweight", "gaussian", "epanechnikov", "cosine"] = "triweight"
    step: float = STEP

    narrowest: ClassVar[float] = NARROWEST
    name = "density"
    short = "d"
    parameter = "bandwidth"
    summary = "kernel density estimate"

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, tuple(KERNELS))
        check_bandwidth(self.bandwidth)
        if not (is_number(self.step) and 0 < self.step <= 0.1):
            raise InputError("step", "be a positive number of at most 0.1", self.step)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the bandwidth or its rule and, after another colon, the kernel."""
        bandwidth, _, kernel = (parameter or "silverman").partition(":")
        return cls(number_or_text(bandwidth), kernel or "triweight")  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"density:{self.bandwidth}" + ("" if self.kernel == "triweight" else f":{self.kernel}")

    def _grids(self, chosen_bandwidth: Array) -> Array:
        """Return the step of the grid for each bandwidth."""
        return steps(np.maximum(chosen_bandwidth, NARROWEST), self.step)

    def fit_on_grid(self, data: ScoreData, chosen_bandwidth: Array, step: float) -> DensityFit:
        """Fit problems that share a grid."""
        width = np.clip(chosen_bandwidth, NARROWEST, WIDEST)
        grid = Grid.of(data, step)
        density, positive = grid.smooth(self.kernel, width)
        return DensityFit(
            estimator=self,
            score=grid.score,
            share=np.asarray(grid.step),
            density=density,
            positive=positive,
            residual=grid.residual,
            bandwidth=np.where(chosen_bandwidth > 0, width, 0.0),
            floored=chosen_bandwidth < NARROWEST,
            data=data,
        )


def check_bandwidth(bandwidth: str | float) -> None:
    """Raise an error for a bandwidth that is neither a positive number nor the name of a rule."""
    if isinstance(bandwidth, str):
        check_choice("bandwidth", bandwidth, tuple(RULES))
    elif not (is_number(bandwidth) and np.isfinite(bandwidth) and bandwidth > 0):
        raise InputError("bandwidth", f"be a positive number or one of {', '.join(RULES)}", bandwidth)
