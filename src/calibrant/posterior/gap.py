"""The calibration gap as a Gaussian process whose size and roughness are unknown.

The running sum of the residuals, read in the time of its own variance, is Brownian motion plus a
drift; the drift is the calibration gap. Over G cells of equal variance the residuals are therefore
data with unit noise, and a cosine transform makes them independent: the mean z_0 and one
coefficient z_k for each frequency. A gap of size tau and roughness K gives z_k the variance

    1 + e tau^2 c (1 + (k / K)^2)^(-3),    e = rows / mean variance of an outcome,

with c such that the shares of the frequencies sum to one; the mean has a size of its own. Sizes and
roughnesses are weighed by their likelihood, and a share of the prior belongs to the model without
any gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np

from calibrant.evidence import Array, Residuals
from calibrant.evidence.kernels import KERNELS
from calibrant.questions import Question

# The prior. Sizes are in units of probability, the smallest as small as the noise where that is less;
# nobody tunes these for a data set.
CALIBRATED, NO_SHAPE, NO_MEAN = 0.235, 0.02, 0.1
SMALLEST, LARGEST, LARGEST_MEAN, SIZES = 0.0125, 0.5, 0.3125, 8
ROUGHNESS, ROUGHER, STEEPNESS = (1.25, 5.0, 16.0), 2.5, 3
# Cells of equal variance; beyond 4096 rows their number grows like the root of n.
CELLS, MOST = 64, 4096
# The first, rough look at the gap, which the variance needs: points, and the bandwidth in ranks, for few
# rows by Silverman's rule and never more than these rows. A wide look mixes the variances of scores that
# crowd at 0 or 1 with those of the others, and the noise it misses is taken for a gap.
LOOK, LOOK_WIDTH, LOOK_ROWS = 256, 0.28868, 12.0
# Added to the variance of an outcome, times the root of n: scores of exactly 0 or 1 have none.
LEAST = 0.01
# Problems times components times frequencies held at once.
TOGETHER = 1 << 22


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the data say about the gap in each cell, for a flat batch of problems.

    Attributes
    ----------
    z : array (problems, G)
        Cosine coefficients of the unit-noise data.
    scale : array (problems,)
        What a unit is worth, as a share of all rows.
    mass, score : arrays (problems, G)
        Share of the rows and mean score of each cell.
    shrink : array (problems, G)
        Share of each coefficient that belongs to the gap, averaged over sizes and roughnesses.
    shape, offset : arrays (problems, components)
        Log likelihood of each component against no gap: of the shape, and of the mean.
    """

    z: Array
    scale: Array
    mass: Array
    score: Array
    shrink: Array
    shape: Array
    offset: Array

    @classmethod
    def of(cls, z: Array, scale: Array, mass: Array, score: Array) -> Posterior:
        """Weigh sizes and roughnesses by what the coefficients say."""
        return cls(z, scale, mass, score, *_weigh(z, 1 / (scale**2 * z.shape[-1])))

    def again(self, z: Array) -> Posterior:
        """Return posteriors of other coefficients on the same scores, (sets, problems, G), set after set."""
        sets, problems = z.shape[:2]
        posteriors = []
        for k in range(problems):
            # One problem at a time, for problems of equal scale are weighed together.
            scale, mass, score = (
                np.broadcast_to(array[k], (sets, *array.shape[1:]))
                for array in (self.scale, self.mass, self.score)
            )
            posteriors.append(Posterior.of(np.ascontiguousarray(z[:, k]), scale, mass, score))
        stacked = (np.stack([getattr(each, f.name) for each in posteriors], axis=1) for f in fields(self))
        return Posterior(*(array.reshape(sets * problems, *array.shape[2:]) for array in stacked))

    @classmethod
    def of_residuals(cls, flat: Residuals, cells: int) -> Posterior:
        """Return the posterior of residuals in score order."""
        return cls.of(*units(flat, halfway(flat, look(flat)), cells))

    @classmethod
    def joined(cls, batches: Sequence[Posterior]) -> Posterior:
        """Return several batches as one."""
        return cls(*(np.concatenate([getattr(batch, f.name) for batch in batches]) for f in fields(cls)))

    def __getitem__(self, some: slice) -> Posterior:
        """Return some of the problems."""
        return Posterior(*(getattr(self, f.name)[some] for f in fields(self)))

    @cached_property
    def gap(self) -> Array:
        """Posterior mean of outcome minus score, summed over each cell, as a share of all rows."""
        from scipy.fft import idct

        return self.scale[:, None] * idct(self.shrink * self.z, norm="ortho")

    @cached_property
    def sd(self) -> Array:
        """Posterior standard deviation of the same."""
        from scipy.fft import dct

        h, g = self.shrink, self.z.shape[-1]
        # The variance holds cos^2, hence even frequencies; those beyond the last fold back with a minus.
        even = np.zeros_like(h)
        half = (g - 1) // 2
        even[:, 2 : 2 * half + 1 : 2] = (h[:, 1 : half + 1] - h[:, g - 1 : g - 1 - half : -1]) / 2
        variance = (h.sum(axis=-1, keepdims=True) + dct(even, type=3)) / g
        return self.scale[:, None] * np.sqrt(np.maximum(variance, 0.0))

    @cached_property
    def sides(self) -> tuple[Array, Array]:
        """Expected mass of the gap on each side: scores too high, scores too low."""
        from scipy.special import ndtr

        sd = np.maximum(self.sd, 1e-300)
        q = self.gap / sd
        up = sd * np.exp(-0.5 * q * q) / np.sqrt(2 * np.pi) + self.gap * ndtr(q)
        return (up - self.gap).sum(axis=-1), up.sum(axis=-1)

    @cached_property
    def square(self) -> Array:
        """Expected square of the gap per row in each cell, times the cell's share of the rows."""
        return np.divide(
            self.gap**2 + self.sd**2, self.mass, out=np.zeros(self.gap.shape), where=self.mass > 0
        )

    def draw(self, rng: np.random.Generator, size: int, calmer: float = 1.0) -> Array:
        """Draw gaps from the posterior, (problems, size, G), as shares of all rows.

        With `calmer` below one they keep closer to the posterior mean.
        """
        from scipy.fft import idct

        noise = rng.standard_normal((len(self.z), size, self.z.shape[-1]))
        drawn = (self.shrink * self.z)[:, None] + calmer * np.sqrt(self.shrink)[:, None] * noise
        return self.scale[:, None, None] * idct(drawn, norm="ortho")

    def evidence(self, classes: int | None = None) -> Array:
        """Return the log of the Bayes factor for some gap against none.

        With a number of classes, that many problems in a row are those of one model: they share
        their size and roughness, and the answer is one for each model.
        """
        shape, offset = self.shape, self.offset
        if classes is not None:
            shape, offset = (
                array.reshape(-1, classes, array.shape[-1]).sum(axis=1) for array in (shape, offset)
            )
        return evidence_of(shape, offset, self.z.shape[-1], classes)


def posterior_of(question: Question) -> Posterior:
    """Return the posterior of all problems of a question; it is computed once.

    >>> from calibrant.inputs import predictions
    >>> from calibrant.questions import named
    >>> question = Question.of(predictions([0, 1, 1], [0.2, 0.4, 0.9]), named("class"))
    >>> posterior_of(question) is posterior_of(question)
    True
    """

    def compute() -> Posterior:
        flats = [residuals.flat for residuals in question.residuals]
        return Posterior.joined([Posterior.of_residuals(flat, int(n_cells(flat.n)[0])) for flat in flats])

    return question.once("posterior", compute)


def evidence_of(shape: Array, offset: Array, cells: int, classes: int | None = None) -> Array:
    """Return the log of the Bayes factor from log likelihoods, which are sums for several classes."""
    # Residuals of the classes of a row add up to zero: one class of them all is redundant.
    if classes is not None and classes > 1:
        shape, offset = (array * ((classes - 1) / classes) for array in (shape, offset))
    return _log_mean(shape, _shape_prior(cells)) + _log_mean(offset, _mean_prior())


def chance(evidence: Array) -> Array:
    """Return the posterior probability that there is any gap at all."""
    odds = (1 - CALIBRATED) / CALIBRATED * np.exp(np.clip(evidence, -600, 600))
    return odds / (1 + odds)


def n_cells(n: Array) -> Array:
    """Return the number of cells of equal variance for n rows.

    >>> n_cells(np.array([30.0, 1000.0, 1e6]))
    array([  30,   64, 1024])
    """
    grown = 2 ** np.ceil(np.log2(np.maximum(n, 1)) / 2 - 1e-9)
    # Effective sizes may fall short of a whole number by rounding.
    return np.clip(np.minimum(n + 1e-6, np.maximum(CELLS, grown)), 1, MOST).astype(np.intp)


def n_points(n: Array) -> Array:
    """Return the number of points of the first look for n rows: each row, or one point for 12 to 24 rows.

    >>> n_points(np.array([30.0, 1000.0, 1e5, 1e8]))
    array([  30,  256, 4096, 4096])
    """
    grown = 2 ** np.floor(np.log2(np.maximum(n + 1e-6, 1) / LOOK_ROWS))
    return np.clip(np.minimum(n + 1e-6, np.maximum(LOOK, grown)), 1, MOST).astype(np.intp)


def units(flat: Residuals, variance: Array, cells: int) -> tuple[Array, Array, Array, Array]:
    """Return coefficients, scale, share of the rows and mean score over cells of equal variance."""
    from scipy.fft import dct

    n = flat.n
    clock, residual, mass, scored = (
        running(term) for term in (flat.spread * variance, flat.residual, flat.mass, flat.mass * flat.score)
    )
    times = clock[:, -1:] * np.linspace(0, 1, cells + 1)
    sums, rows, scores = np.diff(interpolate(times, clock, (residual, mass, scored)), axis=-1)
    unit = np.sqrt(clock[:, -1] / cells)
    score = np.divide(scores, rows, out=np.zeros(rows.shape), where=rows > 0)
    return dct(sums / unit[:, None], norm="ortho"), unit / n, rows / n[:, None], score


def halfway(flat: Residuals, gap: Array | None = None) -> Array:
    """Return the variance of an outcome at each step: what the score says, or halfway to what a gap says."""
    s = flat.score
    least = LEAST / np.sqrt(flat.n)[:, None]
    if gap is None:
        return s * (1 - s) + least
    p = np.clip(s + gap, 0.0, 1.0)
    return 0.5 * (p * (1 - p) + s * (1 - s)) + least


def look(flat: Residuals) -> Array:
    """Return residuals smoothed over ranks, at each step."""
    from scipy.fft import dct, idct

    n = flat.n
    points = int(n_points(n).min())
    mass = running(flat.mass)
    ranks = mass[:, -1:] * np.linspace(0, 1, points + 1)
    (sums,) = interpolate(ranks, mass, (running(flat.residual),))
    mean = np.diff(sums, axis=-1) * (points / n)[:, None]
    width = np.minimum(LOOK_WIDTH * (0.75 * n) ** -0.2, LOOK_ROWS / n)
    gain = KERNELS["triweight"].transform(np.pi * width[:, None] * np.arange(points))
    smooth = idct(dct(mean) * gain)
    rank = (mass[:, 1:] + mass[:, :-1]) / 2 * (points / n)[:, None] - 0.5
    left = np.clip(np.floor(rank), 0, max(points - 2, 0)).astype(np.intp)
    share = np.clip(rank - left, 0.0, 1.0)
    low, high = (np.take_along_axis(smooth, at, axis=-1) for at in (left, np.minimum(left + 1, points - 1)))
    return low + share * (high - low)


def _weigh(z: Array, precision: Array) -> tuple[Array, Array, Array]:
    """Return the shrinkage of each coefficient, and the log likelihoods of the components against no gap."""
    cells, square = z.shape[-1], z * z
    spectra = _spectra(cells)
    sizes = _sizes(precision, LARGEST)
    count = 1 + SIZES * len(spectra)
    shrink = np.empty(z.shape)
    shape = np.empty((len(z), count))
    alike = bool(np.all(precision == precision[0]))
    step = len(z) if alike else max(1, TOGETHER // (count * cells))
    for a in range(0, len(z), step):
        some = slice(a, a + step)
        size = sizes[0] if alike else sizes[some]
        signal = (size[..., None, None] * spectra).reshape(*size.shape[:-1], count - 1, cells - 1)
        signal = np.concatenate([np.zeros((*size.shape[:-1], 1, cells - 1)), signal], axis=-2)
        share = signal / (1 + signal)
        cost = np.log1p(signal).sum(axis=-1)
        if alike:
            shape[some] = 0.5 * (square[some, 1:] @ share.T - cost)
            shrink[some, 1:] = _softmax(shape[some] + _shape_prior(cells)) @ share
        else:
            shape[some] = 0.5 * (np.einsum("bqk,bk->bq", share, square[some, 1:]) - cost)
            weight = _softmax(shape[some] + _shape_prior(cells))
            shrink[some, 1:] = np.einsum("bq,bqk->bk", weight, share)
    signal = np.concatenate([np.zeros((len(z), 1)), _sizes(precision, LARGEST_MEAN)], axis=1)
    share = signal / (1 + signal)
    offset = 0.5 * (share * square[:, :1] - np.log1p(signal))
    shrink[:, 0] = (_softmax(offset + _mean_prior()) * share).sum(axis=-1)
    return shrink, shape, offset


def _sizes(precision: Array, largest: float) -> Array:
    """Return variances of the gap against that of the noise, (problems, sizes): e tau^2 for each size tau."""
    least = np.minimum(1.0, precision * SMALLEST**2)
    ratio = precision * largest**2 / least
    return np.asarray(least[:, None] * ratio[:, None] ** np.linspace(0, 1, SIZES))


@lru_cache(maxsize=32)
def _spectra(cells: int) -> Array:
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
def _shape_prior(cells: int) -> Array:
    """Return the log prior of the components of the shape, no shape first."""
    weight = ROUGHER ** np.arange(len(_roughness(cells)))
    share = np.tile(weight / weight.sum() / SIZES, SIZES)
    return np.log(np.append(NO_SHAPE, (1 - NO_SHAPE) * share))


@lru_cache(maxsize=1)
def _mean_prior() -> Array:
    """Return the log prior of the components of the mean, no mean first."""
    return np.log(np.append(NO_MEAN, np.full(SIZES, (1 - NO_MEAN) / SIZES)))


def running(array: Array) -> Array:
    """Return the sums of the first 0, 1, 2, ... entries of each row."""
    total = np.cumsum(array, axis=-1)
    return np.concatenate([np.zeros((*total.shape[:-1], 1)), total], axis=-1)


def interpolate(x: Array, knots: Array, values: Sequence[Array]) -> Array:
    """Interpolate linearly, row by row, values known at increasing knots.

    >>> interpolate(np.array([[0.5]]), np.array([[0.0, 1.0, 2.0]]), (np.array([[0.0, 4.0, 5.0]]),))
    array([[[2.]]])
    """
    rows, count = knots.shape
    shift = 2.0 * np.arange(rows)[:, None]
    top = np.maximum(knots[:, -1:], 1e-300)
    at = np.searchsorted((knots / top + shift).ravel(), (x / top + shift).ravel(), side="right") - 1
    first = count * np.repeat(np.arange(rows), x.shape[-1])
    at = np.clip(at, first, first + count - 2)
    left = knots.ravel()[at]
    width = knots.ravel()[at + 1] - left
    share = np.divide(x.ravel() - left, width, out=np.zeros(width.shape), where=width > 0)
    at_x = []
    for value in values:
        low = value.ravel()[at]
        at_x.append((low + share * (value.ravel()[at + 1] - low)).reshape(x.shape))
    return np.array(at_x)


def _softmax(log: Array) -> Array:
    """Return weights in proportion to the exponentials, which sum to one."""
    weight = np.exp(log - log.max(axis=-1, keepdims=True))
    return weight / weight.sum(axis=-1, keepdims=True)


def _log_mean(log: Array, prior: Array) -> Array:
    """Return the log of the mean likelihood under a log prior."""
    top = (log + prior).max(axis=-1)
    return np.asarray(top + np.log(np.exp(log + prior - top[..., None]).sum(axis=-1)))
