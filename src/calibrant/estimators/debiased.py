"""Debiased binned errors: the expected contribution of noise is subtracted."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar, Self

import numpy as np

from calibrant import inputs
from calibrant.estimators.base import Estimator, Fit, Norm
from calibrant.estimators.binned import Size, adaptive_edges, check_size, parse_size, resolved_n_bins
from calibrant.score_data import Array, Bins, Moments, ScoreData


@dataclass(frozen=True, eq=False)
class DebiasedFit(Fit):
    """Sums of each bin, and debiased errors computed from them.

    Attributes
    ----------
    edges : array
        Edges of the bins.
    moments, squares : Moments
        Sums of each bin, and the same with squared weights (counts are not squared).
    n : array
        Effective number of rows.
    """

    edges: Array
    moments: Moments
    squares: Moments
    n: Array

    @property
    def bins(self) -> Bins:
        """Mass, score and outcome of each bin."""
        return self.moments.bins

    @property
    def size(self) -> Array:
        """Effective number of rows of each bin."""
        return _ratio(self.moments.w**2, self.squares.w)

    @property
    def _share(self) -> Array:
        return self.moments.w / self.moments.w.sum(axis=-1, keepdims=True)

    @property
    def _gap_and_spread(self) -> tuple[Array, Array]:
        """Gap of each bin, and variance of one of its outcomes."""
        rate = np.nan_to_num(self.bins.frequency)
        return np.nan_to_num(self.bins.gap), np.maximum(rate * (1 - rate), 0.0)

    @property
    def signed(self) -> Array:
        """Debiased mean gap without truncation at 0; it may be negative."""
        gap, spread = self._gap_and_spread
        noisy = folded_mean(gap, np.sqrt(_ratio(spread, self.size)))
        return (self._share * (2 * np.abs(gap) - noisy)).sum(axis=-1)

    def _error(self, norm: Norm) -> Array:
        """Return the debiased mean gap (l1) or the root of the debiased mean square (l2), at least 0.

        For l2, bins with a single row are left out, because their variance cannot be estimated.
        """
        if norm == "l1":
            return np.maximum(self.signed, 0.0)
        gap, spread = self._gap_and_spread
        more = self.size > 1 + 1e-9
        noise = np.divide(spread, self.size - 1, out=np.zeros(gap.shape), where=more)
        square = np.where(more, self._share * (gap**2 - noise), 0.0).sum(axis=-1)
        return np.sqrt(np.maximum(square, 0.0))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return the interval of the l2 error by Sun et al. (2024): the roots of that of its square.

        Its centre is a U-statistic: the mean product of the residuals of two rows of a bin. Bins with a
        single row have no pairs and are left out.
        """
        level = inputs.level(level)
        squared_noise, total = square_residual(self.squares), square_residual(self.moments)
        residual, w, share = self.bins.residual, self.moments.w, self._share
        pairs = w**2 - self.squares.w
        paired = self.size > 1 + 1e-9
        product = np.divide(residual**2 - squared_noise, pairs, out=np.zeros(w.shape), where=paired)
        centre = np.maximum((share * product).sum(axis=-1), 0.0)
        mean, square = np.where(paired, _ratio(residual, w), 0.0), _ratio(total, w)
        variance = (share * (4 * mean**2 * square - 3 * mean**4)).sum(axis=-1)
        variance = np.maximum(variance - (share * mean**2).sum(axis=-1) ** 2, 0.0)
        error = np.sqrt(variance / self.n)
        one_sided, two_sided = (NormalDist().inv_cdf(p) for p in (level, (1 + level) / 2))
        low = np.where(
            centre >= 2 * two_sided * error,
            centre - two_sided * error,
            np.where(
                centre >= 2 * one_sided * error, centre / 2, np.maximum(centre - one_sided * error, 0.0)
            ),
        )
        return np.sqrt(np.maximum(low, 0.0)), np.sqrt(np.minimum(centre + two_sided * error, 1.0))


def _ratio(a: Array, b: Array) -> Array:
    """Divide; return 0 where the denominator is 0."""
    return np.divide(a, b, out=np.zeros(np.shape(a)), where=b > 0)


def square_residual(m: Moments) -> Array:
    """Sum the squared residuals of each group."""
    origin = m.origin
    return m.wy * (1 - 2 * origin) + origin**2 * m.w - 2 * (m.wsy - origin * m.ws) + m.wss


def folded_mean(mean: Array, sd: Array) -> Array:
    """Return E|mean + sd Z| of a standard normal Z.

    >>> folded_mean(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(4)
    array([0.7979, 2.    ])
    """
    from scipy.special import erf

    ratio = np.divide(mean, sd, out=np.zeros(np.shape(mean)), where=sd > 0)
    # Far from zero the sign is certain; the cut keeps the square finite.
    ratio = np.clip(ratio, -40.0, 40.0)
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * erf(ratio / np.sqrt(2))
    return np.where(sd > 0, folded, np.abs(mean))


@dataclass(frozen=True)
class Debiased(Estimator):
    """Debiased calibration error with equal-mass bins.

    l1: 2 ECE - sum_b (n_b / n) E|d_b + s_b Z| with the gap d_b and its standard error s_b (Kumar et
    al. 2019, as evaluated by Kaengsepp et al. 2022). l2: y_b (1 - y_b) / (n_b - 1) is subtracted from the
    square of every gap (Ferro and Fricker 2012, Broecker 2012). If n is not a multiple of the number of bins,
    the first bins have one row more, as in the code behind the published tables.

    Parameters
    ----------
    n_bins : int or "sqrt"
        Number of bins.

    See Also
    --------
    Binned : The same without correction.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> fit = Debiased().fit(Sample(score, rng.random(2000) < score**2))
    >>> low, high = fit.interval()
    >>> bool(low < np.sqrt(1 / 30) < high)  # the true l2 error
    True
    """

    n_bins: Size = 15

    name = "debiased"
    short = "db"
    parameter = "bins"
    summary = "equal mass, less what chance adds"
    norms: ClassVar[tuple[Norm, ...]] = ("l1", "l2")

    def __post_init__(self) -> None:
        check_size(self.n_bins)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the number of bins."""
        return cls() if parameter is None else cls(parse_size(parameter))

    def native_interval(self, data: ScoreData, norm: Norm, level: float) -> tuple[float, float] | None:
        """Return the interval of the l2 error by Sun et al. (2024); None for other norms."""
        if norm != "l2":
            return None
        low, high = self.fit(data).interval(level)
        return float(low), float(high)

    def n_bins_at(self, n: Array) -> int:
        """Return the number of bins at n rows."""
        return resolved_n_bins(self.n_bins, n)

    def __str__(self) -> str:
        return f"debiased:{self.n_bins}"

    def fit(self, data: ScoreData) -> DebiasedFit:
        """Place the bins and sum."""
        edges = adaptive_edges(data, self.n_bins_at(data.n), larger_first=True)
        cuts, origin = edges[..., 1:-1], edges[..., :-1]
        moments, squares = (weighted_data.moments(cuts, origin) for weighted_data in (data, data.squared()))
        return DebiasedFit(self, edges, moments, squares, data.n)
