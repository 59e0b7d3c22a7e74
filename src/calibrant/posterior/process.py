"""A gap that is a Gaussian process over all scores, whose size and roughness are unknown.

A cosine transform makes its coefficients independent: the mean z_0 and one coefficient z_k for each
frequency. A gap of size tau and roughness K gives z_k the variance

    1 + e tau^2 c (1 + (k / K)^2)^(-3),    e = rows / mean variance of an outcome,

with c such that the shares of the frequencies sum to one; the mean has a size of its own. Sizes and
roughnesses are weighed by their likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.score_data import Array

# The prior. Sizes are in units of probability, the smallest as small as the noise where that is less;
# nobody tunes these for a data set.
NO_SHAPE, NO_MEAN = 0.02, 0.1
SMALLEST, LARGEST, LARGEST_MEAN, SIZES = 0.0125, 0.5, 0.3125, 8
_BETWEEN = np.linspace(0, 1, SIZES)
ROUGHNESS, ROUGHER, STEEPNESS = (1.25, 5.0, 16.0), 0.6, 3


class Shrunk:
    """Cosine coefficients of which a share belongs to the gap: its mean and spread in each cell."""

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
        return spread_of(self.shrink)


@dataclass(frozen=True, eq=False)
class Process(Shrunk):
    """The process of each problem, in units of the noise.

    Attributes
    ----------
    z : array (problems, cells)
        Cosine coefficients of the data.
    shrink : array (problems, cells)
        Share of each coefficient that belongs to the gap, averaged over sizes and roughnesses.
    shape, offset : arrays (problems, components)
        Log likelihood of each component against no gap: of the shape, and of the mean.
    """

    z: Array
    shrink: Array
    shape: Array
    offset: Array

    @classmethod
    def of(cls, z: Array, precision: Array) -> Process:
        """Weigh sizes and roughnesses by what the coefficients say.

        Parameters
        ----------
        z : array (problems, cells)
        precision : array (frames,)
            Rows over the mean variance of an outcome; each of as many problems in turn.
        """
        cells, square, kind = z.shape[-1], z * z, z.dtype
        spectra, prior = spectra_of(cells).astype(kind), prior_of_shape(cells).astype(kind)
        shrink, shape = np.empty(z.shape, kind), np.empty((len(z), prior.size), kind)
        none = np.zeros((1, cells - 1), kind)
        each = len(z) // len(precision)
        for k, size in enumerate(sizes_of(precision, LARGEST).astype(kind)):
            some = slice(k * each, (k + 1) * each)
            sized = (size[:, None, None] * spectra).reshape(prior.size - 1, cells - 1)
            signal = np.concatenate([none, sized])
            share = signal / (1 + signal)
            shape[some] = 0.5 * (square[some, 1:] @ share.T - np.log1p(signal).sum(axis=-1))
            shrink[some, 1:] = softmax(shape[some] + prior) @ share
        means = of_each(sizes_of(precision, LARGEST_MEAN).astype(kind), len(z))
        signal = np.concatenate([np.zeros((len(means), 1), kind), means], axis=1)
        share = signal / (1 + signal)
        offset = 0.5 * (share * square[:, :1] - np.log1p(signal))
        shrink[:, 0] = (softmax(offset + prior_of_mean().astype(kind)) * share).sum(axis=-1)
        return cls(z, shrink, shape, offset)

    @property
    def evidence(self) -> Array:
        """Log of the Bayes factor against no gap."""
        return evidence_of(self.shape, self.offset, self.z.shape[-1])

    def draw(self, k: int, rng: np.random.Generator, size: int, draw_shrinkage: float = 1.0) -> Array:
        """Draw from problem k, (size, cells); a `draw_shrinkage` below one keeps it near the mean."""
        from scipy.fft import idct

        noise = rng.standard_normal((size, self.z.shape[-1]))
        h = self.shrink[k]
        return np.asarray(idct(h * self.z[k] + draw_shrinkage * np.sqrt(h) * noise, norm="ortho"))


def spread_of(shrink: Array) -> Array:
    """Return the standard deviation in each cell of coefficients with these variances.

    >>> spread_of(np.array([1.0, 0.0, 0.0, 0.0]))
    array([0.5, 0.5, 0.5, 0.5])
    """
    from scipy.fft import dct

    g = shrink.shape[-1]
    # The variance holds cos^2, hence even frequencies; those beyond the last fold back with a minus.
    even = np.zeros_like(shrink)
    half = (g - 1) // 2
    even[..., 2 : 2 * half + 1 : 2] = (shrink[..., 1 : half + 1] - shrink[..., g - 1 : g - 1 - half : -1]) / 2
    variance = (shrink.sum(axis=-1, keepdims=True) + dct(even, type=3)) / g
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))


def evidence_of(shape: Array, offset: Array, cells: int) -> Array:
    """Return the log of the Bayes factor from the log likelihoods of the components."""
    return log_mean(shape, prior_of_shape(cells).astype(shape.dtype)) + log_mean(
        offset, prior_of_mean().astype(offset.dtype)
    )


def of_each(frames: Array, problems: int) -> Array:
    """Return for each problem what is its frame's; what is the same for all stays as it is."""
    return frames if len(frames) in (1, problems) else frames.repeat(problems // len(frames), axis=0)


def log_mean(log: Array, prior: Array) -> Array:
    """Return the log of the mean likelihood under a log prior."""
    total = log + prior
    top = total.max(axis=-1)
    return np.asarray(top + np.log(np.exp(total - top[..., None]).sum(axis=-1)))


def softmax(log: Array) -> Array:
    """Return weights along the last axis in proportion to the exponentials, which sum to one."""
    weight = log - log.max(axis=-1, keepdims=True)
    np.exp(weight, out=weight)
    weight /= weight.sum(axis=-1, keepdims=True)
    return weight


def sizes_of(precision: Array, largest: float) -> Array:
    """Return variances of the gap against that of the noise, (problems, sizes): e tau^2 for each size tau."""
    least = np.minimum(1.0, precision * SMALLEST**2)
    ratio = precision * largest**2 / least
    return np.asarray(least[:, None] * ratio[:, None] ** _BETWEEN)


@lru_cache(maxsize=32)
def spectra_of(cells: int) -> Array:
    """Return the share of each frequency in a gap, for each roughness."""
    k = np.arange(1, cells)
    spectra = [(1 + (k / rough) ** 2) ** -float(STEEPNESS) for rough in _roughness(cells)]
    return np.array([spectrum / max(spectrum.sum(), 1e-300) for spectrum in spectra])


def _roughness(cells: int) -> tuple[float, ...]:
    """Return frequencies up to which a gap may be lively: those of 64 cells, and fourfold as cells allow."""
    frequencies = list(ROUGHNESS)
    while 4 * frequencies[-1] < cells / 1.5:
        frequencies.append(4 * frequencies[-1])
    return tuple(frequencies)


@lru_cache(maxsize=32)
def prior_of_shape(cells: int) -> Array:
    """Return the log prior of the components of the shape, no shape first."""
    weight = ROUGHER ** np.arange(len(_roughness(cells)))
    share = np.tile(weight / weight.sum() / SIZES, SIZES)
    return np.log(np.append(NO_SHAPE, (1 - NO_SHAPE) * share))


@lru_cache(maxsize=1)
def prior_of_mean() -> Array:
    """Return the log prior of the components of the mean, no mean first."""
    return np.log(np.append(NO_MEAN, np.full(SIZES, (1 - NO_MEAN) / SIZES)))
