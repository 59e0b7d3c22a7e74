"""Marginal likelihoods and expected one-sided gaps of the smooth and the local component, for many data sets.

A compiled loop (`compiled/shapes.c`) does the work where it is available. `process` and `dyadic_partition`
compute the same in numpy. They also compute moments and draws, which are needed for few problems.

See docs/methods/default-estimator.md, "Model average".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log

import numpy as np

from calibrant import compiled
from calibrant.parallel import parallel_map, threads
from calibrant.posterior import dyadic_partition, process
from calibrant.score_data import Array
from calibrant.settings import PRIOR

# Sizes of the grids, and shortest range with a process, for which the compiled loop is written.
COMPILED_FOR = {"smooth_sd_count": 8, "constant_sd_count": 5, "process_sd_count": 4, "shortest_process": 8}
# Number of coefficients from which the problems are divided among threads.
PARALLEL_FROM = 1 << 16


@dataclass(frozen=True, eq=False)
class MarginalLikelihoods:
    """Log Bayes factors and expected one-sided gaps of the two components, (problems,) each.

    Attributes
    ----------
    process, tree : arrays
        Log Bayes factor of the smooth and of the local component against no gap.
    smooth, local : pairs of arrays
        Expected negative and positive part of the gap under the smooth and under the local component, summed
        over cells, in noise units.
    offset, shape : arrays (problems, grid points)
        Log likelihood ratios of the prior grid of the smooth component (see `process.Process`).
    """

    process: Array
    tree: Array
    smooth: tuple[Array, Array]
    local: tuple[Array, Array]
    offset: Array
    shape: Array


def marginal_likelihoods(
    z: Array, signal_to_noise: Array, precision: Array, uncertain: float, sides: bool
) -> MarginalLikelihoods:
    """Compute the marginal likelihoods of data given by cosine coefficients.

    Parameters
    ----------
    z : array (problems, cells)
        Cosine coefficients with unit noise.
    signal_to_noise : array (frames, cells)
        Expectation of the standardized residual sum of a cell per unit of gap.
    precision : array (frames,)
        n divided by the mean variance of an outcome. Each frame holds for the same number of successive
        problems.
    uncertain : float
        Weight of the posterior standard deviation in the expected one-sided gaps of the smooth component
        (`PRIOR.counted_uncertainty`).
    sides : bool
        Whether to compute the one-sided gaps; they are zero otherwise.
    """
    cells, shapes = z.shape[-1], getattr(compiled.loops, "shapes", None)
    fits = all(getattr(PRIOR, name) == value for name, value in COMPILED_FOR.items())
    if shapes is None or not fits or cells < 2 or cells & (cells - 1):
        return _marginal_likelihoods_numpy(z, signal_to_noise, precision, uncertain, sides)
    tables = _tables(cells)
    means = PRIOR.smooth_sd_count + 1
    out = np.empty((len(z), 6 + means + len(tables[3])))
    z, signal_to_noise = np.ascontiguousarray(z), np.ascontiguousarray(signal_to_noise, np.float64)
    sizes = [
        process.sizes_of(precision, largest) for largest in (PRIOR.largest_smooth_sd, PRIOR.largest_mean_sd)
    ]

    frames = len(signal_to_noise)
    per_frame = 1 if frames == 1 else len(z) // frames

    def compute(first: int) -> None:
        problems, last = slice(first * per_frame, (first + step) * per_frame), first + step
        frame_arrays = [array if frames == 1 else array[first:last] for array in (signal_to_noise, *sizes)]
        shapes(z[problems], *frame_arrays, *tables, _rules(uncertain), out[problems], sides)

    # Problems are divided among threads by whole frames, unless there is only one frame.
    count = len(z) // max(per_frame, 1)
    step = max(1, count if z.size < PARALLEL_FROM else -(-count // threads()))
    for _ in parallel_map(compute, range(0, count, step)):
        pass
    smooth_log, local_log, over, under, tree_over, tree_under = out[:, :6].T
    shape_start = 6 + means
    return MarginalLikelihoods(
        smooth_log,
        local_log,
        (over, under),
        (tree_over, tree_under),
        out[:, 6:shape_start],
        out[:, shape_start:],
    )


def _marginal_likelihoods_numpy(
    z: Array, signal_to_noise: Array, precision: Array, uncertain: float, sides: bool
) -> MarginalLikelihoods:
    """Compute the same in numpy."""
    from scipy.fft import idct

    smooth_part = process.Process.of(z, precision)
    local_part = dyadic_partition.DyadicPartition(
        idct(z, norm="ortho"), process.of_each(signal_to_noise, len(z))
    )
    zeros = np.zeros((2, len(z)))
    smooth, local = (zeros[0], zeros[1]), (zeros[0], zeros[1])
    if sides:
        up = uncertain * dyadic_partition.positive(smooth_part.mean, smooth_part.sd) + (
            1 - uncertain
        ) * np.maximum(smooth_part.mean, 0.0)
        under = up.sum(axis=-1)
        smooth, local = (under - smooth_part.mean.sum(axis=-1), under), local_part.sides
    return MarginalLikelihoods(
        smooth_part.log_bayes_factor,
        local_part.log_bayes_factor,
        smooth,
        local,
        smooth_part.offset,
        smooth_part.shape,
    )


@lru_cache(maxsize=32)
def _tables(cells: int) -> tuple[Array, ...]:
    """Return spectra, twiddle factors of the cosine transforms and log priors."""
    spectra = [
        dyadic_partition.spectrum_of(cells >> level) for level in dyadic_partition.waving_levels(cells)
    ]
    all_spectra = np.concatenate([*spectra, np.zeros(0)])
    return (
        process.spectra_of(cells),
        all_spectra,
        turns_of(cells),
        process.prior_of_shape(cells),
        process.prior_of_mean(),
    )


@lru_cache(maxsize=32)
def turns_of(cells: int) -> Array:
    """Return the twiddle factors of cosine transforms of all lengths n = 2^k below `cells`.

    Entries n + 2j and n + 2j + 1 are the cosine and the sine of (2j + 1) pi / 4n.
    """
    factors = np.zeros(max(cells, 2))
    n = 2
    while n < cells:
        angle = (2 * np.arange(n // 2) + 1) * (np.pi / (4 * n))
        factors[n : 2 * n : 2], factors[n + 1 : 2 * n : 2] = np.cos(angle), np.sin(angle)
        n *= 2
    return factors


@lru_cache(maxsize=32)
def _rules(uncertain: float) -> Array:
    """Return the numbers of the local component's prior, in the order that the compiled loop expects."""
    process_sds, final = PRIOR.process_sds, PRIOR.probability_of_final_range
    no_mean, no_shape = PRIOR.process_probability_of_no_mean, PRIOR.process_probability_of_no_shape
    return np.array([
        *(sd**2 for sd in (*PRIOR.constant_sds, *process_sds)),
        final, 1 - final, *dyadic_partition.probabilities_of_no_gap(), 1 - PRIOR.process_weight,
        log(no_mean), log((1 - no_mean) / len(process_sds)),
        log(no_shape), log((1 - no_shape) / len(process_sds)), uncertain,
    ])  # fmt: skip
