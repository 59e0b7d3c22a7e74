"""Smooth component of the model average: a Gaussian process over all scores with unknown size and roughness.

The data are the cosine coefficients z_k of `variance_time.whiten`: the mean z_0 and one coefficient for each
frequency k >= 1, all with unit noise. Given a size tau (in units of probability) and a roughness K,

    z_k ~ N(0, 1 + e tau^2 c_K (1 + (k / K)^2)^(-3)),    k >= 1,    e = n / mean variance of an outcome,

independently, where c_K makes the spectrum sum to one. The mean coefficient z_0 has a size of its own. The
posterior is a mixture over a grid of sizes and roughnesses.

See docs/methods/default-estimator.md, "Smooth component".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibrant.parallel import cached_property
from calibrant.posterior.variance_time import snr_grid
from calibrant.score_data import Array
from calibrant.settings import PRIOR

# Least number of cells for each unit of a further roughness, below which it is not resolved.
CELLS_PER_ROUGHNESS = 1.5


class ShrunkenCoefficients:
    """Shrunken cosine coefficients: posterior moments of the gap in each cell, in noise units."""

    z: Array
    shrink: Array

    @cached_property
    def mean(self) -> Array:
        """Posterior mean in each cell."""
        from scipy.fft import idct

        return np.asarray(idct(self.shrink * self.z, norm="ortho"))

    @cached_property
    def sd(self) -> Array:
        """Posterior standard deviation in each cell."""
        return posterior_sd(self.shrink)


@dataclass(frozen=True, eq=False)
class Process(ShrunkenCoefficients):
    """Posterior of the Gaussian process of each problem, in units of the noise.

    Attributes
    ----------
    z : array (problems, cells)
        Cosine coefficients of the data.
    shrink : array (problems, cells)
        Posterior mean of the shrinkage factor, signal variance / (1 + signal variance), of each coefficient.
    shape, offset : arrays (problems, grid points)
        Log likelihood ratio against no gap for each point of the prior grid: for the coefficients with k >= 1
        (`shape`), and for the mean coefficient (`offset`).
    """

    z: Array
    shrink: Array
    shape: Array
    offset: Array

    @classmethod
    def of(cls, z: Array, precision: Array) -> Process:
        """Compute the posterior over sizes and roughnesses.

        Parameters
        ----------
        z : array (problems, cells)
            Cosine coefficients with unit noise.
        precision : array (frames,)
            n divided by the mean variance of an outcome. Each value holds for the same number of successive
            problems.
        """
        cells, square, dtype = z.shape[-1], z * z, z.dtype
        spectra, prior = spectra_of(cells).astype(dtype), prior_of_shape(cells).astype(dtype)
        shrink, shape = np.empty(z.shape, dtype), np.empty((len(z), prior.size), dtype)
        zero_signal = np.zeros((1, cells - 1), dtype)
        per_frame = len(z) // len(precision)
        for k, size in enumerate(snr_grid(precision, PRIOR.largest_sd).astype(dtype)):
            rows = slice(k * per_frame, (k + 1) * per_frame)
            ratios = (size[:, None, None] * spectra).reshape(prior.size - 1, cells - 1)
            signal = np.concatenate([zero_signal, ratios])
            share = signal / (1 + signal)
            shape[rows] = 0.5 * (square[rows, 1:] @ share.T - np.log1p(signal).sum(axis=-1))
            shrink[rows, 1:] = softmax(shape[rows] + prior) @ share
        means = snr_grid(precision, PRIOR.largest_mean_sd).astype(dtype).repeat(per_frame, axis=0)
        signal = np.concatenate([np.zeros((len(means), 1), dtype), means], axis=1)
        share = signal / (1 + signal)
        offset = 0.5 * (share * square[:, :1] - np.log1p(signal))
        shrink[:, 0] = (softmax(offset + prior_of_mean().astype(dtype)) * share).sum(axis=-1)
        return cls(z, shrink, shape, offset)

    @property
    def log_bayes_factor(self) -> Array:
        """Log Bayes factor against no gap."""
        return smooth_log_bayes_factor(self.shape, self.offset, self.z.shape[-1])

    def draw(self, k: int, rng: np.random.Generator, size: int, draw_shrinkage: float = 1.0) -> Array:
        """Draw the gap of problem k in each cell, (size, cells), in units of the noise.

        `draw_shrinkage` multiplies the posterior standard deviation of the coefficients; values below one
        keep the draws closer to the posterior mean.
        """
        from scipy.fft import idct

        noise = rng.standard_normal((size, self.z.shape[-1]))
        shrink = self.shrink[k]
        return np.asarray(idct(shrink * self.z[k] + draw_shrinkage * np.sqrt(shrink) * noise, norm="ortho"))


def posterior_sd(shrink: Array) -> Array:
    """Return the standard deviation in each cell, given the variance of each cosine coefficient.

    >>> posterior_sd(np.array([1.0, 0.0, 0.0, 0.0]))
    array([0.5, 0.5, 0.5, 0.5])
    """
    from scipy.fft import dct

    g = shrink.shape[-1]
    # The variance is a sum of cos^2 terms, hence of even frequencies; frequencies of at least g are aliased
    # to lower ones with a negative sign.
    even = np.zeros_like(shrink)
    half = (g - 1) // 2
    even[..., 2 : 2 * half + 1 : 2] = (shrink[..., 1 : half + 1] - shrink[..., g - 1 : g - 1 - half : -1]) / 2
    variance = (shrink.sum(axis=-1, keepdims=True) + dct(even, type=3)) / g
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def smooth_log_bayes_factor(shape: Array, offset: Array, cells: int) -> Array:
    """Return the log Bayes factor of the process from the log likelihood ratios of the grid points."""
    return log_mean(shape, prior_of_shape(cells).astype(shape.dtype)) + log_mean(
        offset, prior_of_mean().astype(offset.dtype)
    )


def log_mean(log: Array, prior: Array) -> Array:
    """Return the log of the mean of exp(log) under a log prior, along the last axis."""
    total = log + prior
    top = total.max(axis=-1)
    return np.asarray(top + np.log(np.exp(total - top[..., None]).sum(axis=-1)))


def softmax(log: Array) -> Array:
    """Return exp(log) normalized to sum to one along the last axis."""
    weight = log - log.max(axis=-1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


@lru_cache(maxsize=32)
def spectra_of(cells: int) -> Array:
    """Return the normalized spectrum of each roughness for k >= 1, (roughnesses, cells - 1)."""
    k = np.arange(1, cells)
    spectra = [(1 + (k / rough) ** 2) ** -PRIOR.spectrum_exponent for rough in _roughness(cells)]
    return np.array([spectrum / max(spectrum.sum(), 1e-300) for spectrum in spectra])


def _roughness(cells: int) -> tuple[float, ...]:
    """Return the values of the roughness K that can be resolved with this number of cells."""
    frequencies, ratio = list(PRIOR.roughness), PRIOR.roughness_ratio
    while ratio * frequencies[-1] < cells / CELLS_PER_ROUGHNESS:
        frequencies.append(ratio * frequencies[-1])
    return tuple(frequencies)


@lru_cache(maxsize=32)
def prior_of_shape(cells: int) -> Array:
    """Return the log prior of the grid points of the coefficients with k >= 1; the first is their absence."""
    absent, sds = PRIOR.probability_of_no_shape, PRIOR.smooth_sd_count
    weight = PRIOR.roughness_weight_ratio ** np.arange(len(_roughness(cells)))
    share = np.tile(weight / weight.sum() / sds, sds)
    return np.log(np.append(absent, (1 - absent) * share))


@lru_cache(maxsize=32)
def prior_of_mean() -> Array:
    """Return the log prior of the grid points of the mean coefficient; the first is its absence."""
    absent, sds = PRIOR.probability_of_no_mean, PRIOR.smooth_sd_count
    return np.log(np.append(absent, np.full(sds, (1 - absent) / sds)))
