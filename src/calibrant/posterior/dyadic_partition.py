"""Local component of the model average: a piecewise gap on a dyadic partition of the cells.

The model is a recursive prior. A range of cells stops with probability pi; otherwise it is split into two
halves. A range that stops has no gap, the same gap in all of its cells, or a short Gaussian process of its
own. The marginal likelihood of a range is therefore

    L(range) = pi L_stop(range) + (1 - pi) L(left half) L(right half),

which is summed exactly over all partitions, from single cells upwards. The posterior probability that each
range stops, the expected gap and posterior draws follow from the whole downwards. Each level takes time
linear in the number of cells.

The range of all cells always has a gap if it stops, because "no gap at all" is a component of its own.

Two priors with equal weight are averaged. In the sparse tree most ranges have no gap: it fits models that are
miscalibrated in one place. In the dense tree nearly all ranges have a gap: it fits models that are slightly
miscalibrated everywhere and much more so in one place.

See docs/methods/default-estimator.md, "Local component".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np

from calibrant.parallel import cached_property
from calibrant.posterior.process import ShrunkenCoefficients
from calibrant.posterior.variance_time import cumulative_sums
from calibrant.score_data import Array
from calibrant.settings import PRIOR, geometric


class _Layout(NamedTuple):
    """First and last cell of the ranges of all levels, level after level.

    Level d has 2^d ranges. Range i consists of the cells first[i], ..., last[i] - 1.
    """

    first: Array
    last: Array
    depth: int

    def level(self, depth: int) -> slice:
        """Return the indices of the ranges of a level."""
        return slice(2**depth - 1, 2 ** (depth + 1) - 1)

    def repeat_over_cells(self, depth: int, values: Array) -> Array:
        """Repeat the values of the ranges of a level over their cells."""
        ranges = self.level(depth)
        return np.repeat(values, self.last[ranges] - self.first[ranges], axis=-1)


@lru_cache(maxsize=32)
def _layout(cells: int) -> _Layout:
    depth = int(np.log2(cells))
    edges = [np.round(np.arange(2**k + 1) * (cells / 2**k)).astype(np.intp) for k in range(depth + 1)]
    return _Layout(
        np.concatenate([edge[:-1] for edge in edges]), np.concatenate([edge[1:] for edge in edges]), depth
    )


def process_levels(cells: int) -> list[int]:
    """Return the levels whose ranges may have a process: equal lengths of enough cells."""
    if cells & (cells - 1):
        return []
    return [k for k in range(1, int(np.log2(cells)) + 1) if cells >> k >= PRIOR.shortest_process]


class _ConstantGaps(NamedTuple):
    """A constant gap in each range: log Bayes factor against no gap, posterior mean and variance."""

    log_bayes_factor: Array
    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class _RangeProcess(ShrunkenCoefficients):
    """An independent Gaussian process in each range of a level, in units of the noise.

    Attributes
    ----------
    log_bayes_factor : array (problems, ranges)
        Log Bayes factor against no gap.
    z : array (problems, ranges, cells)
        Cosine coefficients of the data in the range.
    shrink : array (problems, ranges, cells)
        Posterior mean of the shrinkage factor of each coefficient.
    """

    log_bayes_factor: Array
    z: Array
    shrink: Array


class _PartitionSum(NamedTuple):
    """One of the two trees, summed over all partitions.

    Attributes
    ----------
    log_bayes_factor : array (problems,)
        Log Bayes factor against no gap.
    stop_probability : list of arrays (problems, ranges)
        For each level, posterior probability that a range stops, given that no range that contains it did.
    gap : list of arrays (problems, ranges)
        For each level, posterior probability of a gap in a range that stops.
    """

    log_bayes_factor: Array
    stop_probability: list[Array]
    gap: list[Array]


@dataclass(frozen=True, eq=False)
class DyadicPartition:
    """Posterior of the local component of each problem.

    "In noise units" below means: as a residual sum of a cell divided by its standard deviation.

    Attributes
    ----------
    x : array (problems, cells)
        Standardized residual sums of the cells, with unit noise.
    signal_to_noise : array (problems, cells) or (1, cells)
        Expectation of x per unit of gap: share of the rows in the cell, divided by the noise scale.
    """

    x: Array
    signal_to_noise: Array

    @property
    def layout(self) -> _Layout:
        """First and last cell of each range."""
        return _layout(self.x.shape[-1])

    def _sums(self, array: Array) -> Array:
        """Sum over the cells of each range, for all levels."""
        total = cumulative_sums(array)
        return np.asarray(total[:, self.layout.last] - total[:, self.layout.first])

    @cached_property
    def constant_gap(self) -> _ConstantGaps:
        """A constant gap in each range."""
        width = self._sums(self.signal_to_noise**2)
        sums = self._sums(self.signal_to_noise * self.x)
        square = sums * sums
        half_square = 0.5 * square
        logs, variances = [], []
        # A loop over sizes, because reductions over a short last axis are slow.
        sds = constant_sds()
        for sd in sds:
            size = sd**2
            variance = size / (1 + width * size)
            variances.append(variance)
            logs.append(half_square * variance + (0.5 * np.log(variance / size) - log(len(sds))))
        log_bayes_factor, weights = log_sum_and_weights(logs)
        shrinkage = sum(weight * variance for weight, variance in zip(weights, variances, strict=True))
        mean_square = sum(weight * variance**2 for weight, variance in zip(weights, variances, strict=True))
        return _ConstantGaps(
            log_bayes_factor,
            shrinkage * sums,
            shrinkage + square * np.maximum(mean_square - shrinkage**2, 0.0),
        )

    @cached_property
    def processes(self) -> dict[int, _RangeProcess]:
        """An independent process in each range, for the levels that may have one."""
        return {level: self._range_process(level) for level in process_levels(self.x.shape[-1])}

    def _range_process(self, level: int) -> _RangeProcess:
        """Compute the posterior of the processes in the ranges of a level."""
        from scipy.fft import dct

        problems, cells = self.x.shape
        length = cells >> level
        z = dct(self.x.reshape(problems, -1, length), norm="ortho")
        square = z * z
        # Signal-to-noise ratio of a process with unit variance, in one coefficient.
        sizes = length * self.signal_to_noise.mean(axis=-1) ** 2
        first, others = square[..., 0], square[..., 1:]
        sds, no_shape = process_sds(), PRIOR.process_probability_of_no_shape
        mean_prior = -log(len(sds) + 1)  # equal for a mean of zero and for each standard deviation
        means, shapes = [np.full_like(first, mean_prior)], [np.full_like(first, log(no_shape))]
        shares, spectra = [], []
        for sd in sds:
            size = sd**2 * sizes[:, None]
            share = size / (1 + size)
            shares.append(share)
            means.append(0.5 * (share * first - np.log1p(size)) + mean_prior)
            signal = size * spectrum_of(length)
            spectrum = signal / (1 + signal)
            spectra.append(spectrum[:, None])
            likelihood = np.matmul(others, spectrum[..., None])[..., 0]
            cost = np.log1p(signal).sum(axis=-1, keepdims=True)
            shapes.append(0.5 * (likelihood - cost) + log((1 - no_shape) / len(sds)))
        mean_log, by_mean = log_sum_and_weights(means)
        shape_log, by_shape = log_sum_and_weights(shapes)
        shrink = np.empty_like(z)
        shrink[..., 0] = sum(w * share for w, share in zip(by_mean[1:], shares, strict=True))
        shrink[..., 1:] = sum(w[..., None] * share for w, share in zip(by_shape[1:], spectra, strict=True))
        return _RangeProcess(mean_log + shape_log, z, shrink)

    @cached_property
    def _gaps(self) -> tuple[list[Array], list[Array]]:
        """Log Bayes factor of a gap in each range, and probability that it is constant, by level."""
        logs, constant_gaps = [], []
        for level in range(self.layout.depth + 1):
            log_gap = self.constant_gap.log_bayes_factor[:, self.layout.level(level)]
            constant_gap = np.ones_like(log_gap)
            if level in self.processes:
                # Both kinds of gap have equal prior probability.
                log_flat = log_gap - log(2)
                log_gap = np.logaddexp(log_flat, self.processes[level].log_bayes_factor - log(2))
                constant_gap = np.exp(log_flat - log_gap)
            logs.append(log_gap)
            constant_gaps.append(constant_gap)
        return logs, constant_gaps

    @cached_property
    def _partition_sums(self) -> list[_PartitionSum]:
        """The sparse and the dense tree, each summed over all partitions."""
        return [self._sum(empty) for empty in probabilities_of_no_gap()]

    def _sum(self, empty: float) -> _PartitionSum:
        """Sum over all partitions, where a range that stops has no gap with prior probability `empty`."""
        first, *others = self._gaps[0]
        final = PRIOR.probability_of_final_range
        stops = [first, *(np.logaddexp(log_gap + log1p(-empty), log(empty)) for log_gap in others)]
        gaps = [np.ones_like(first)]
        gaps += [
            np.exp(log_gap + log1p(-empty) - stop) for log_gap, stop in zip(others, stops[1:], strict=True)
        ]
        total, stop_probability = stops[-1], [np.ones_like(stops[-1])]
        for stop in stops[-2::-1]:
            halves = total.reshape(len(total), -1, 2).sum(axis=-1) + log1p(-final)
            stop = stop + log(final)
            total = np.logaddexp(stop, halves)
            stop_probability.insert(0, np.exp(stop - total))
        return _PartitionSum(total[:, 0], stop_probability, gaps)

    @cached_property
    def _average(self) -> tuple[Array, list[Array]]:
        """Log Bayes factor against no gap, and posterior probabilities of the sparse and the dense tree."""
        return log_sum_and_weights([summed.log_bayes_factor - log(2) for summed in self._partition_sums])

    @property
    def log_bayes_factor(self) -> Array:
        """Log Bayes factor against no gap, (problems,)."""
        return self._average[0]

    @cached_property
    def stops_with_gap_probability(self) -> list[Array]:
        """Posterior probability that a range stops and has a gap, by level, (problems, ranges) each."""
        stopping = [np.zeros_like(log_gap) for log_gap in self._gaps[0]]
        for weight, summed in zip(self._average[1], self._partition_sums, strict=True):
            stops_with_gap_probability = weight[:, None]
            for level, (stop_probability, gap) in enumerate(
                zip(summed.stop_probability, summed.gap, strict=True)
            ):
                stopping[level] += stops_with_gap_probability * stop_probability * gap
                stops_with_gap_probability = np.repeat(
                    stops_with_gap_probability * (1 - stop_probability), 2, axis=-1
                )
        return stopping

    @cached_property
    def one_sided(self) -> tuple[Array, Array]:
        """Expected negative and positive part of the gap, summed over cells, in noise units."""
        total_signal = self._sums(self.signal_to_noise)
        up = (
            expected_positive_part(self.constant_gap.mean, np.sqrt(self.constant_gap.variance)) * total_signal
        )
        net = self.constant_gap.mean * total_signal
        over, under = np.zeros((2, len(self.x)), self.x.dtype)
        for level, stops_with_gap in enumerate(self.stops_with_gap_probability):
            ranges = self.layout.level(level)
            constant = stops_with_gap * self._gaps[1][level]
            under += (constant * up[:, ranges]).sum(axis=-1)
            over += (constant * (up - net)[:, ranges]).sum(axis=-1)
            if level in self.processes:
                process, process_weight = self.processes[level], stops_with_gap - constant
                above = expected_positive_part(process.mean, process.sd).sum(axis=-1)
                under += (process_weight * above).sum(axis=-1)
                over += (process_weight * (above - process.mean.sum(axis=-1))).sum(axis=-1)
        return over, under

    @cached_property
    def moments(self) -> tuple[Array, Array]:
        """Posterior mean and mean square of the gap in each cell, in noise units."""
        mean, square = np.zeros_like(self.x), np.zeros_like(self.x)
        for level, stops_with_gap in enumerate(self.stops_with_gap_probability):
            ranges, constant = self.layout.level(level), stops_with_gap * self._gaps[1][level]
            constant_gap = self.constant_gap.mean[:, ranges]
            mean += self.layout.repeat_over_cells(level, constant * constant_gap) * self.signal_to_noise
            square += (
                self.layout.repeat_over_cells(
                    level, constant * (constant_gap**2 + self.constant_gap.variance[:, ranges])
                )
                * self.signal_to_noise**2
            )
            if level in self.processes:
                process, process_weight = self.processes[level], (stops_with_gap - constant)[..., None]
                mean += (process_weight * process.mean).reshape(mean.shape)
                square += (process_weight * (process.mean**2 + process.sd**2)).reshape(mean.shape)
        return mean, square

    def draw(self, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of problem k from the posterior, (size, cells), in noise units."""
        weights = [float(weight[k]) for weight in self._average[1]]
        count = rng.multinomial(size, np.array(weights) / sum(weights))
        parts = [
            self._draw(summed, k, rng, int(part_size))
            for summed, part_size in zip(self._partition_sums, count, strict=True)
        ]
        return np.concatenate(parts)

    def _draw(self, summed: _PartitionSum, k: int, rng: np.random.Generator, size: int) -> Array:
        """Draw gaps of problem k from one of the two trees."""
        from scipy.fft import idct

        drawn = np.zeros((size, self.x.shape[-1]))
        signal_to_noise = self.signal_to_noise[k if len(self.signal_to_noise) > 1 else 0]
        alive = np.ones((size, 1), dtype=bool)
        for level, stop_probability in enumerate(summed.stop_probability):
            count = 2**level
            stops = alive & (rng.random((size, count)) < stop_probability[k])
            gaps = stops & (rng.random((size, count)) < summed.gap[level][k])
            constant = gaps & (rng.random((size, count)) < self._gaps[1][level][k])
            ranges = self.layout.level(level)
            noise = rng.standard_normal((size, count))
            gap = self.constant_gap.mean[k, ranges] + np.sqrt(self.constant_gap.variance[k, ranges]) * noise
            drawn += self.layout.repeat_over_cells(level, np.where(constant, gap, 0.0)) * signal_to_noise
            if level in self.processes:
                process = self.processes[level]
                draw, range_index = np.nonzero(gaps & ~constant)
                shrink = process.shrink[k][range_index]
                processes = idct(
                    shrink * process.z[k][range_index] + np.sqrt(shrink) * rng.standard_normal(shrink.shape),
                    norm="ortho",
                )
                drawn.reshape(size, count, drawn.shape[-1] >> level)[draw, range_index] += processes
            alive = np.repeat(alive & ~stops, 2, axis=-1)
        return drawn


def expected_positive_part(mean: Array, sd: Array) -> Array:
    """Return E max(X, 0) of normal variables X with these means and standard deviations.

    >>> expected_positive_part(np.array([0.0, 2.0]), np.array([1.0, 0.0])).round(4)
    array([0.3989, 2.    ])
    """
    sd = np.maximum(sd, 1e-30)
    # Beyond 40 standard deviations the density is zero.
    q = np.minimum(np.abs(mean) / sd, 40.0)
    density = np.exp(-0.5 * q * q)
    # Tail probability beyond q, by the rational approximation 7.1.26 of Abramowitz and Stegun (error < 1e-7).
    t = 1 / (1 + 0.3275911 / sqrt(2) * q)
    series = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
    lower_part = sd * density / sqrt(2 * pi) - np.abs(mean) * (0.5 * series * density)
    return np.asarray(np.maximum(lower_part, 0.0) + np.maximum(mean, 0.0))


def probabilities_of_no_gap() -> tuple[float, float]:
    """Return the prior probability that a range that stops has no gap: in the sparse, in the dense tree."""
    return PRIOR.probability_of_no_gap_sparse, PRIOR.probability_of_no_gap_dense


@lru_cache(maxsize=32)
def spectrum_of(length: int) -> Array:
    """Return the normalized spectrum of a process in a range of `length` cells, for k >= 1."""
    share = (1 + (np.arange(1, length) / PRIOR.process_roughness) ** 2) ** -PRIOR.spectrum_exponent
    return np.asarray(share / share.sum())


def log_sum_and_weights(logs: list[Array]) -> tuple[Array, list[Array]]:
    """Return the log of the sum of exponentials, and the share of each term.

    >>> total, shares = log_sum_and_weights([np.log(np.array([1.0])), np.log(np.array([3.0]))])
    >>> total.round(4), [share.round(2) for share in shares]
    (array([1.3863]), [array([0.25]), array([0.75])])
    """
    top = logs[0]
    for other in logs[1:]:
        top = np.maximum(top, other)
    weights = [np.exp(each - top) for each in logs]
    total = np.asarray(sum(weights))
    return top + np.log(total), [weight / total for weight in weights]


def constant_sds() -> tuple[float, ...]:
    """Return the prior standard deviations of a constant gap in a range."""
    return geometric(PRIOR.smallest_sd, PRIOR.largest_sd, PRIOR.constant_sd_count)


def process_sds() -> tuple[float, ...]:
    """Return the prior standard deviations of a process in a range."""
    return geometric(PRIOR.smallest_sd, PRIOR.largest_sd, PRIOR.process_sd_count)
