"""The paper's density estimator with Chen's beta kernels, whose support is the range of the scores.

The shape of the kernel depends on the score at which the density is evaluated. The estimate does not
integrate to one; f and pi1 f1 are divided by the same constant.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant.estimators.base import Entry, number_or_text
from calibrant.estimators.density import LEAST, Density, DensityFit, KernelDensity, check_bandwidth
from calibrant.inputs import InputError, check_choice, is_number
from calibrant.parallel import cached_property
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.beta import Kind, bits_for, masses, shapes, spread, sums
from calibrant.score_data.kernels import KERNELS
from calibrant.score_data.nodes import nodes

BetaName = Literal["beta", "beta2"]
BETA_KERNELS: dict[str, Kind] = {"beta": 1, "beta2": 2}
Mass = Literal["whole", "each"]
MASSES: tuple[Mass, ...] = ("whole", "each")
# Narrower kernels are not told apart, and wider ones are flat.
NARROWEST, WIDEST = 1e-5, 100.0
# Wider kernels need no fewer places.
FLAT = 1 / 64
# Places of the grid for each root of b in the range of the scores.
PLACES = 24.0
# Share of the squared bandwidth of a rule that the variance of the kernel has: chosen on development
# distributions (`python benchmarks/beta_kernels.py --rule`).
SHARE = 0.5


@dataclass(frozen=True, eq=False)
class DensityBetaFit(DensityFit):
    """Densities by beta kernels on a grid that is denser at both ends and includes both boundaries.

    Rows exactly on a boundary have no density. They are counted separately (`boundary_mass`).
    """

    @property
    def width(self) -> Array:
        """Mean standard deviation of the kernel, weighted by the density."""
        mass = self.density * self.share
        total = mass.sum(axis=-1)
        return np.divide(
            (mass * self._widths).sum(axis=-1), total, out=np.zeros(total.shape), where=total > 0
        )

    @property
    def _widths(self) -> Array:
        low, high = self.data.support
        z, _ = _grid(self.score.size - 2)
        return (high - low) * spread(*shapes(z, self._bandwidth[..., None], self.estimator.kind))

    @property
    def nearby(self) -> Array:
        """Effective local sample size at each score: (sum of weights)^2 / sum of squared weights."""
        first, second = (
            self.estimator.smooth(node_batch, self.score.size - 2, self._bandwidth, power)[0][..., 0]
            for node_batch, power in ((self.data, 1), (self.data.squared(), 2))
        )
        return np.divide(first**2, second, out=np.zeros(first.shape), where=self._is_defined & (second > 0))

    @cached_property
    def _is_defined(self) -> Array:
        """Where the curve is defined: enough rows under the kernel."""
        return self.data.n[..., None] * self._widths * self.density >= LEAST


@dataclass(frozen=True)
class DensityBeta(KernelDensity):
    """Beta kernel estimate (Chen 1999) of the density of scores and of positive scores.

    Scores with a smaller range, such as confidences, are first rescaled to [0, 1]. Time is O(N + places) for
    N rows (see `calibrant.score_data.nodes`). Sums are accurate to 1e-6 where the density is above a
    millionth of its maximum.

    Parameters
    ----------
    bandwidth : {"scott", "silverman", "isj"} or float
        Chen's b: the variance of the kernel at a score s is about b s (1 - s). With a rule, b is chosen so
        that this variance, averaged over the scores, is half the squared bandwidth of the rule.
    kernel : {"beta", "beta2"}
        Chen's first or second kernel. The mean of the second is the score itself, except near the boundaries.
    mass : {"whole", "each"}
        What is normalised to integrate to one: the whole density ("whole", the common use of Chen's
        estimate), or the contribution of each row ("each"). With "whole", rows near a boundary contribute
        less, so the estimate is not consistent if most rows are there. With "each", all rows have the same
        weight. These are the macro and the micro estimator of Gouriéroux and Monfort (2006).
    places : float
        Number of grid points times sqrt(b). Fewer points are faster, for simulations with many small fits.

    See Also
    --------
    Density : Densities by a kernel with reflection.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> calibrated = Sample(score, rng.random(2000) < score)
    >>> bool(DensityBeta().fit(calibrated).error() < 0.02)
    True
    """

    bandwidth: Literal["scott", "silverman", "isj"] | float = "scott"
    kernel: BetaName = "beta"
    mass: Mass = "whole"
    places: float = PLACES

    narrowest: ClassVar[float] = NARROWEST

    def __post_init__(self) -> None:
        check_choice("kernel", self.kernel, tuple(BETA_KERNELS))
        check_choice("mass", self.mass, MASSES)
        check_bandwidth(self.bandwidth)
        if not (is_number(self.places) and 4 <= self.places <= 1000):
            raise InputError("places", "be a number from 4 to 1000", self.places)

    @classmethod
    def entries(cls) -> tuple[Entry, ...]:
        """Return an entry for each kind."""
        kinds = {"beta": "first", "beta2": "second"}
        return tuple(
            Entry(
                f"density-{kernel}",
                f"d{kernel}",
                "bandwidth",
                f"beta kernel density estimate, {kind} kind",
                partial(cls.parse, kernel=kernel),
            )
            for kernel, kind in kinds.items()
        )

    @classmethod
    def parse(cls, parameter: str | None, kernel: Any = "beta") -> Self:
        """Read the bandwidth or its rule and, after another colon, what has mass one."""
        bandwidth, _, mass = (parameter or "scott").partition(":")
        return cls(number_or_text(bandwidth), kernel, mass or "whole")  # type: ignore[arg-type]

    def __str__(self) -> str:
        return f"density-{self.kernel}:{self.bandwidth}" + ("" if self.mass == "whole" else f":{self.mass}")

    @property
    def kind(self) -> Kind:
        """Number of Chen's kernel: 1 or 2."""
        return BETA_KERNELS[self.kernel]

    def chosen_bandwidth(self, data: ScoreData) -> Array:
        """Return the bandwidth of each problem, as given or by the rule."""
        bandwidth = super().chosen_bandwidth(data)
        return matched(data, bandwidth) if isinstance(self.bandwidth, str) else bandwidth

    def _grids(self, chosen_bandwidth: Array) -> Array:
        """Return the number of points of the grid for each bandwidth."""
        return _sizes(self.places / np.sqrt(np.clip(chosen_bandwidth, NARROWEST, FLAT)))

    def fit_on_grid(self, data: ScoreData, chosen_bandwidth: Array, size: int) -> DensityBetaFit:
        """Fit problems that share a grid."""
        width = np.clip(chosen_bandwidth, NARROWEST, WIDEST)
        smoothed, boundary_mass, total = self.smooth(data, size, width)
        z, share = _grid(size)
        low, high = data.support
        score, share = low + (high - low) * z, (high - low) * share
        mass, positive = np.moveaxis(smoothed, -1, 0)
        inner = total[..., 0] - boundary_mass[..., 0].sum(axis=-1)
        smoothed_mass = (mass * share).sum(axis=-1)
        # One constant for both: what is left of the rows, over the integral of all kernels.
        factor = np.divide(inner, smoothed_mass, out=np.ones(inner.shape), where=smoothed_mass > 0)[..., None]
        factor = factor / total[..., :1]
        residual = data.bins(np.array([])).gap[..., 0]
        return DensityBetaFit(
            estimator=self,
            score=score,
            share=share,
            density=factor * mass,
            positive=factor * positive,
            boundary_mass=boundary_mass / total[..., None, :1],
            residual=residual,
            bandwidth=np.where(chosen_bandwidth > 0, width, 0.0),
            floored=chosen_bandwidth < NARROWEST,
            data=data,
        )

    def smooth(
        self, data: ScoreData, size: int, bandwidth: Array, power: int = 1
    ) -> tuple[Array, Array, Array]:
        """Sum mass and positive mass under the kernels, or their squares, at the points of a grid.

        Returns
        -------
        smoothed, boundary_mass, total : arrays
            Shapes (*batch, size + 2, 2), (*batch, 2, 2) and (*batch, 2); the last axis has mass and positive
            mass.
        """
        (at, share), width = _grid(size), bandwidth.ravel()
        parts, first = [], 0
        for node_batch in nodes(data, bits_for(width).tolist()):
            node_width = width[first : (first := first + len(node_batch.below))]
            rows = node_batch
            if self.mass == "each":
                rows = node_batch.over(masses(node_batch, at, share, node_width, self.kind) ** power)
            parts.append(
                (
                    sums(rows, at, node_width, self.kind, power=power),
                    node_batch.boundary_mass,
                    node_batch.total,
                )
            )
        smoothed, boundary_mass, total = (
            np.concatenate(column).reshape(*bandwidth.shape, *column[0].shape[1:])
            for column in zip(*parts, strict=True)
        )
        return smoothed, boundary_mass, total


def density_by(kernel: str, bandwidth: str | float | None) -> KernelDensity:
    """Return the density estimator with any kernel, and the default rule if no bandwidth is given.

    >>> str(density_by("beta2", 0.01)), str(density_by("cosine", None))
    ('density-beta2:0.01', 'density:silverman:cosine')
    """
    check_choice("kernel", kernel, (*KERNELS, *BETA_KERNELS))
    if kernel in BETA_KERNELS:
        return DensityBeta("scott" if bandwidth is None else bandwidth, kernel)  # type: ignore[arg-type]
    return Density("silverman" if bandwidth is None else bandwidth, kernel)  # type: ignore[arg-type]


def matched(data: ScoreData, width: Array) -> Array:
    """Return the b at which the mean variance of the kernels is a fixed share of the squared bandwidth.

    >>> from calibrant.score_data import Sample
    >>> scores = Sample(np.array([0.5, 0.5]), np.array([False, True]))
    >>> matched(scores, np.array(0.1)).round(6)  # .1^2 / 2 over 1/4
    np.float64(0.02)
    """
    low, high = data.support
    mean, n = data.bins(np.array([])).score[..., 0], data.n
    variance = data.variance() * np.maximum(n - 1, 0.0) / n
    spread_left = np.maximum((mean - low) * (high - mean) - variance, 1e-12)
    return np.asarray(np.minimum(SHARE * width**2 / spread_left, WIDEST))


def _sizes(chosen_bandwidth: Array) -> Array:
    """Round numbers of grid points up to powers of two, or one and a half times these.

    >>> _sizes(np.array([40.0, 70.0, 100.0])).tolist()
    [48, 96, 128]
    """
    power = 2.0 ** np.floor(np.log2(chosen_bandwidth) - 1e-9)
    return np.where(chosen_bandwidth <= 1.5 * power, 1.5 * power, 2 * power).astype(np.intp)


@lru_cache(maxsize=32)
def _grid(size: int) -> tuple[Array, Array]:
    """Return the points of Fejér's first rule on [0, 1] and both boundaries, and their integration weights.

    >>> at, share = _grid(8)
    >>> bool(abs(share @ at**7 - 1 / 8) < 1e-15), at[[0, -1]], share[[0, -1]]
    (True, array([0., 1.]), array([0., 0.]))
    """
    from scipy.fft import dct

    angle = (np.arange(size) + 0.5) * np.pi / size
    series = np.zeros(size)
    series[::2] = 1 / (1 - np.arange(0.0, size, 2) ** 2)
    at = np.concatenate([[0.0], np.sin(angle / 2) ** 2, [1.0]])
    share = np.concatenate([[0.0], dct(series, type=3) / size, [0.0]])
    at.flags.writeable = share.flags.writeable = False
    return at, share
