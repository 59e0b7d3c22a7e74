"""A gap that lives in stretches of the scores: a tree that halves them until nothing happens within.

A stretch of cells stops or is halved, with even chances. One that stops has no gap (`EMPTY`), the
same gap in all its cells, or a smooth one of its own, a short Gaussian process. The likelihood of a
stretch that is halved is the product of its halves', so the whole tree is summed bottom up, exactly,
and the chance to stop at each stretch, the expected gap and draws follow top down, in time linear in
the cells for each level.

Two priors are averaged. In a sparse tree most stretches have no gap: a model that is wrong in one place. In a
dense tree nearly all have one: a model that is wrong everywhere and much more so in one place, whose small
gaps a sparse tree would take for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np

from calibrant.compiled.cached import cached_property
from calibrant.posterior.process import Shrunk
from calibrant.posterior.variance_time import running
from calibrant.score_data import Array

# The prior: chance that a stretch stops, and that one that stops has no gap, in a sparse tree and in a dense
# one. The whole of the scores has a gap for sure, for no gap anywhere is a model of its own.
STOP, EMPTY = 0.5, (0.85, 0.05)
# Sizes of a gap, in units of probability: of one that is the same in all cells, of one that waves.
LEVELS = tuple(np.geomspace(0.0125, 0.5, 5).tolist())
WAVES = tuple(np.geomspace(0.0125, 0.5, 4).tolist())
# Stretches of half the cells down to this many may wave; how roughly; the share of those with a gap that
# do; and of the wave's mean and shape to be missing.
SHORTEST, ROUGH, STEEP, WAVING, NO_MEAN, NO_SHAPE = 8, 2.0, 3, 0.5, 0.2, 0.5


class _Layout(NamedTuple):
    """Where the stretches of every level lie, level after level."""

    first: Array
    last: Array
    depth: int

    def level(self, depth: int) -> slice:
        """Return which stretches are those of a level."""
        return slice(2**depth - 1, 2 ** (depth + 1) - 1)

    def spread(self, depth: int, values: Array) -> Array:
        """Repeat values of the stretches of a level over their cells."""
        some = self.level(depth)
        return np.repeat(values, self.last[some] - self.first[some], axis=-1)


@lru_cache(maxsize=32)
def _layout(cells: int) -> _Layout:
    depth = int(np.log2(cells))
    edges = [np.round(np.arange(2**k + 1) * (cells / 2**k)).astype(np.intp) for k in range(depth + 1)]
    return _Layout(
        np.concatenate([edge[:-1] for edge in edges]), np.concatenate([edge[1:] for edge in edges]), depth
    )


def waving_levels(cells: int) -> list[int]:
    """Return the levels whose stretches may wave: those of equal length, from halves down."""
    if cells & (cells - 1):
        return []
    return [k for k in range(1, int(np.log2(cells)) + 1) if cells >> k >= SHORTEST]


class _Flat(NamedTuple):
    """The same gap in all cells of each stretch: evidence, posterior mean and variance of the gap."""

    evidence: Array
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class _Wave(Shrunk):
    """A process of its own in each stretch of a level, in units of the noise.

    Attributes
    ----------
    evidence : array (problems, stretches)
    z : array (problems, stretches, cells)
        Cosine coefficients of the data.
    shrink : array (problems, stretches, cells)
        Share of each coefficient that belongs to the gap.
    """

    evidence: Array
    z: Array
    shrink: Array


class _Summed(NamedTuple):
    """One tree summed over all partitions.

    Attributes
    ----------
    evidence : array (problems,)
        Log of the Bayes factor against no gap.
    chance : list of arrays (problems, stretches)
        Chance of each stretch of each level to stop if it is reached.
    gap : list of arrays
        Chance of a gap in a stretch that stops.
    """

    evidence: Array
    chance: list[Array]
    gap: list[Array]


@dataclass(frozen=True, eq=False)
class DyadicPartition:
    """The tree of each problem.

    Attributes
    ----------
    x : array (problems, cells)
        Data with unit noise.
    pull : array (problems, cells) or (1, cells)
        What a gap of one adds to each cell: its share of the rows, in units.
    """

    x: Array
    pull: Array

    @property
    def layout(self) -> _Layout:
        """Where the stretches lie."""
        return _layout(self.x.shape[-1])

    def _sums(self, array: Array) -> Array:
        """Sum over the cells of every stretch of every level."""
        total = running(array)
        return np.asarray(total[:, self.layout.last] - total[:, self.layout.first])

    @cached_property
    def flat(self) -> _Flat:
        """The same gap in all cells, in every stretch."""
        width = self._sums(self.pull**2)
        sums = self._sums(self.pull * self.x)
        square = sums * sums
        half = 0.5 * square
        logs, variances = [], []
        # Size by size: reductions over a short last axis are slow.
        for level in LEVELS:
            size = level**2
            variance = size / (1 + width * size)
            variances.append(variance)
            logs.append(half * variance + (0.5 * np.log(variance / size) - log(len(LEVELS))))
        evidence, weights = mixed(logs)
        slope = sum(weight * variance for weight, variance in zip(weights, variances, strict=True))
        bend = sum(weight * variance**2 for weight, variance in zip(weights, variances, strict=True))
        return _Flat(evidence, slope * sums, slope + square * np.maximum(bend - slope**2, 0.0))

    @cached_property
    def waves(self) -> dict[int, _Wave]:
        """A process of its own in every stretch of the levels that may wave."""
        return {level: self._wave(level) for level in waving_levels(self.x.shape[-1])}

    def _wave(self, level: int) -> _Wave:
        from scipy.fft import dct

        problems, cells = self.x.shape
        length = cells >> level
        z = dct(self.x.reshape(problems, -1, length), norm="ortho")
        square = z * z
        # The mean square of the pull is what a gap of one adds to the mean square of the data.
        sizes = length * self.pull.mean(axis=-1) ** 2
        first, others = square[..., 0], square[..., 1:]
        means, shapes = [np.full_like(first, log(NO_MEAN))], [np.full_like(first, log(NO_SHAPE))]
        shares, spectra = [], []
        for wave in WAVES:
            size = wave**2 * sizes[:, None]
            share = size / (1 + size)
            shares.append(share)
            means.append(0.5 * (share * first - np.log1p(size)) + log((1 - NO_MEAN) / len(WAVES)))
            signal = size * spectrum_of(length)
            spectrum = signal / (1 + signal)
            spectra.append(spectrum[:, None])
            likelihood = np.matmul(others, spectrum[..., None])[..., 0]
            cost = np.log1p(signal).sum(axis=-1, keepdims=True)
            shapes.append(0.5 * (likelihood - cost) + log((1 - NO_SHAPE) / len(WAVES)))
        evidence, by_mean = mixed(means)
        more, by_shape = mixed(shapes)
        shrink = np.empty_like(z)
        shrink[..., 0] = sum(w * share for w, share in zip(by_mean[1:], shares, strict=True))
        shrink[..., 1:] = sum(w[..., None] * share for w, share in zip(by_shape[1:], spectra, strict=True))
        return _Wave(evidence + more, z, shrink)

    @cached_property
    def _gaps(self) -> tuple[list[Array], list[Array]]:
        """Return for each level the log likelihood of a gap in a stretch, and the chance that it is flat."""
        logs, flats = [], []
        for level in range(self.layout.depth + 1):
            log_gap = self.flat.evidence[:, self.layout.level(level)]
            flat = np.ones_like(log_gap)
            if level in self.waves:
                log_flat = log_gap + log1p(-WAVING)
                log_gap = np.logaddexp(log_flat, self.waves[level].evidence + log(WAVING))
                flat = np.exp(log_flat - log_gap)
            logs.append(log_gap)
            flats.append(flat)
        return logs, flats

    @cached_property
    def _summed(self) -> list[_Summed]:
        """Sum each of the two trees over all partitions."""
        return [self._sum(empty) for empty in EMPTY]

    def _sum(self, empty: float) -> _Summed:
        """Sum the tree in which a stretch that stops has no gap with this chance."""
        first, *others = self._gaps[0]
        stops = [first, *(np.logaddexp(log_gap + log1p(-empty), log(empty)) for log_gap in others)]
        gaps = [np.ones_like(first)]
        gaps += [
            np.exp(log_gap + log1p(-empty) - stop) for log_gap, stop in zip(others, stops[1:], strict=True)
        ]
        whole, chance = stops[-1], [np.ones_like(stops[-1])]
        for stop in stops[-2::-1]:
            halves = whole.reshape(len(whole), -1, 2).sum(axis=-1) + log1p(-STOP)
            stop = stop + log(STOP)
            whole = np.logaddexp(stop, halves)
            chance.insert(0, np.exp(stop - whole))
        return _Summed(whole[:, 0], chance, gaps)

    @cached_property
    def _mixed(self) -> tuple[Array, list[Array]]:
        """Log of the Bayes factor against no gap, and the weights of the sparse and the dense tree."""
        return mixed([summed.evidence - log(len(EMPTY)) for summed in self._summed])

    @property
    def evidence(self) -> Array:
        """Log of the Bayes factor against no gap."""
        return self._mixed[0]

    @cached_property
    def reached(self) -> list[Array]:
        """Chance of each stretch of each level to be one that stops and has a gap."""
        stopping = [np.zeros_like(log_gap) for log_gap in self._gaps[0]]
        for weight, summed in zip(self._mixed[1], self._summed, strict=True):
            reach = weight[:, None]
            for level, (chance, gap) in enumerate(zip(summed.chance, summed.gap, strict=True)):
                stopping[level] += reach * chance * gap
                reach = np.repeat(reach * (1 - chance), 2, axis=-1)
        return stopping

    @cached_property
    def sides(self) -> tuple[Array, Array]:
        """Expected sum over the cells of the gap's negative and positive part, in units."""
        pull = self._sums(self.pull)
        up = positive(self.flat.mean, np.sqrt(self.flat.variance)) * pull
        net = self.flat.mean * pull
        over, under = np.zeros((2, len(self.x)), self.x.dtype)
        for level, reach in enumerate(self.reached):
            some = self.layout.level(level)
            even = reach * self._gaps[1][level]
            under += (even * up[:, some]).sum(axis=-1)
            over += (even * (up - net)[:, some]).sum(axis=-1)
            if level in self.waves:
                wave, waving = self.waves[level], reach - even
                above = positive(wave.mean, wave.sd).sum(axis=-1)
                under += (waving * above).sum(axis=-1)
                over += (waving * (above - wave.mean.sum(axis=-1))).sum(axis=-1)
        return over, under

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square in each cell, in units."""
        mean, square = np.zeros_like(self.x), np.zeros_like(self.x)
        for level, reach in enumerate(self.reached):
            some, even = self.layout.level(level), reach * self._gaps[1][level]
            flat = self.flat.mean[:, some]
            mean += self.layout.spread(level, even * flat) * self.pull
            square += self.layout.spread(level, even * (flat**2 + self.flat.variance[:, some])) * self.pull**2
            if level in self.waves:
                wave, waving = self.waves[level], (reach - even)[..., None]
                mean += (waving * wave.mean).reshape(mean.shape)
                square += (waving * (wave.mean**2 + wave.sd**2)).reshape(mean.shape)
        return mean, square

    def draw(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of problem k, (size, cells), in units."""
        weights = [float(weight[k]) for weight in self._mixed[1]]
        count = rng.multinomial(size, np.array(weights) / sum(weights))
        parts = [
            self._draw(summed, k, rng, int(some)) for summed, some in zip(self._summed, count, strict=True)
        ]
        return np.concatenate(parts)

    def _draw(self, summed: _Summed, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of problem k from one of the two trees."""
        from scipy.fft import idct

        drawn = np.zeros((size, self.x.shape[-1]))
        pull = self.pull[k if len(self.pull) > 1 else 0]
        alive = np.ones((size, 1), dtype=bool)
        for level, chance in enumerate(summed.chance):
            count = 2**level
            stops = alive & (rng.random((size, count)) < chance[k])
            gaps = stops & (rng.random((size, count)) < summed.gap[level][k])
            even = gaps & (rng.random((size, count)) < self._gaps[1][level][k])
            some = self.layout.level(level)
            noise = rng.standard_normal((size, count))
            gap = self.flat.mean[k, some] + np.sqrt(self.flat.variance[k, some]) * noise
            drawn += self.layout.spread(level, np.where(even, gap, 0.0)) * pull
            if level in self.waves:
                wave = self.waves[level]
                which, stretch = np.nonzero(gaps & ~even)
                h = wave.shrink[k][stretch]
                waves = idct(h * wave.z[k][stretch] + np.sqrt(h) * rng.standard_normal(h.shape), norm="ortho")
                drawn.reshape(size, count, drawn.shape[-1] >> level)[which, stretch] += waves
            alive = np.repeat(alive & ~stops, 2, axis=-1)
        return drawn


def positive(mean: Array, sd: Array) -> Array:
    """Return the expected positive part of normal variables.

    >>> positive(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(4)
    array([0.3989, 2.    ])
    """
    sd = np.maximum(sd, 1e-30)
    # Further out the density is zero.
    q = np.minimum(np.abs(mean) / sd, 40.0)
    density = np.exp(-0.5 * q * q)
    # Chance beyond q, by the rational approximation 7.1.26 of Abramowitz and Stegun (error below 1e-7).
    t = 1 / (1 + 0.3275911 / sqrt(2) * q)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    far = sd * density / sqrt(2 * pi) - np.abs(mean) * (0.5 * series * density)
    return np.asarray(np.maximum(far, 0.0) + np.maximum(mean, 0.0))


@lru_cache(maxsize=32)
def spectrum_of(length: int) -> Array:
    """Return the share of each frequency in a wave."""
    share = (1 + (np.arange(1, length) / ROUGH) ** 2) ** -float(STEEP)
    return np.asarray(share / share.sum())


def mixed(logs: list[Array]) -> tuple[Array, list[Array]]:
    """Return the log of the sum of exponentials, and the share of each.

    >>> total, shares = mixed([np.log(np.array([1.0])), np.log(np.array([3.0]))])
    >>> total.round(4), [share.round(2) for share in shares]
    (array([1.3863]), [array([0.25]), array([0.75])])
    """
    top = logs[0]
    for other in logs[1:]:
        top = np.maximum(top, other)
    weights = [np.exp(each - top) for each in logs]
    total = np.asarray(sum(weights))
    return top + np.log(total), [weight / total for weight in weights]
