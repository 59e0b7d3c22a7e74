"""Marginal likelihoods and expected one-sided gaps of the smooth and the local component, for many data sets.

A compiled loop does the work where there is one. `process` and `dyadic_partition` compute the same in
numpy, and moments and draws, which few problems need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log

import numpy as np

from calibrant import compiled
from calibrant.posterior import dyadic_partition, process
from calibrant.score_data import Array

# Coefficients from which on threads share them.
SHARED = 1 << 16


@dataclass(frozen=True, eq=False)
class MarginalLikelihoods:
    """What coefficients say, (problems,) each.

    Attributes
    ----------
    process, tree : arrays
        Log of the Bayes factor against no gap.
    smooth, stretches : pairs of arrays
        Expected negative and positive part of the gap under process and tree, in units.
    offset, shape : arrays (problems, components)
        Log likelihoods of the components of a process.
    """

    process: Array
    tree: Array
    smooth: tuple[Array, Array]
    stretches: tuple[Array, Array]
    offset: Array
    shape: Array


def marginal_likelihoods(
    z: Array, pull: Array, precision: Array, uncertain: float, sides: bool
) -> MarginalLikelihoods:
    """Look at coefficients (problems, cells).

    Parameters
    ----------
    pull : array (frames, cells)
    precision : array (frames,)
        Of as many problems in turn.
    uncertain : float
        Share of what uncertainty adds to a smooth gap.
    sides : bool
        Whether the sides are asked for; without they are zero.
    """
    cells, shapes = z.shape[-1], getattr(compiled.loops, "shapes", None)
    if shapes is None or cells < 2 or cells & (cells - 1):
        return _look_plainly(z, pull, precision, uncertain, sides)
    tables = _tables(cells)
    means = process.SIZES + 1
    out = np.empty((len(z), 6 + means + len(tables[3])))
    z, pull = np.ascontiguousarray(z), np.ascontiguousarray(pull, np.float64)
    sizes = [process.sizes_of(precision, largest) for largest in (process.LARGEST, process.LARGEST_MEAN)]

    frames = len(pull)
    each = 1 if frames == 1 else len(z) // frames

    def look(first: int) -> None:
        some, last = slice(first * each, (first + step) * each), first + step
        frame = [array if frames == 1 else array[first:last] for array in (pull, *sizes)]
        shapes(z[some], *frame, *tables, _rules(uncertain), out[some], sides)

    # Threads share problems, but none shares a frame unless there is no other.
    count = len(z) // max(each, 1)
    step = max(1, count if z.size < SHARED else -(-count // compiled.threads()))
    for _ in compiled.shared(look, range(0, count, step)):
        pass
    evidence, stretches, over, under, tree_over, tree_under = out[:, :6].T
    at = 6 + means
    return MarginalLikelihoods(
        evidence, stretches, (over, under), (tree_over, tree_under), out[:, 6:at], out[:, at:]
    )


def _look_plainly(
    z: Array, pull: Array, precision: Array, uncertain: float, sides: bool
) -> MarginalLikelihoods:
    """Look at coefficients in numpy."""
    from scipy.fft import idct

    p = process.Process.of(z, precision)
    t = dyadic_partition.DyadicPartition(idct(z, norm="ortho"), process.of_each(pull, len(z)))
    none = np.zeros((2, len(z)))
    smooth, stretches = (none[0], none[1]), (none[0], none[1])
    if sides:
        up = uncertain * dyadic_partition.positive(p.mean, p.sd) + (1 - uncertain) * np.maximum(p.mean, 0.0)
        under = up.sum(axis=-1)
        smooth, stretches = (under - p.mean.sum(axis=-1), under), t.sides
    return MarginalLikelihoods(p.evidence, t.evidence, smooth, stretches, p.offset, p.shape)


@lru_cache(maxsize=32)
def _tables(cells: int) -> tuple[Array, ...]:
    """Return spectra, turns of the transforms, and priors."""
    waves = [dyadic_partition.spectrum_of(cells >> level) for level in dyadic_partition.waving_levels(cells)]
    together = np.concatenate([*waves, np.zeros(0)])
    return (
        process.spectra_of(cells),
        together,
        turns_of(cells),
        process.prior_of_shape(cells),
        process.prior_of_mean(),
    )


@lru_cache(maxsize=32)
def turns_of(cells: int) -> Array:
    """Return at n + 2j the cosine and after it the sine of (2j + 1) pi / 4n, for each n = 2^k < `cells`."""
    turns = np.zeros(max(cells, 2))
    n = 2
    while n < cells:
        angle = (2 * np.arange(n // 2) + 1) * (np.pi / (4 * n))
        turns[n : 2 * n : 2], turns[n + 1 : 2 * n : 2] = np.cos(angle), np.sin(angle)
        n *= 2
    return turns


@lru_cache(maxsize=2)
def _rules(uncertain: float) -> Array:
    """Return the numbers of the prior, in the order that the loops know."""
    sizes = [size**2 for size in (*dyadic_partition.LEVELS, *dyadic_partition.WAVES)]
    waves = len(dyadic_partition.WAVES)
    logs = [
        dyadic_partition.STOP, 1 - dyadic_partition.STOP,
        *dyadic_partition.EMPTY, 1 - dyadic_partition.WAVING,
        log(dyadic_partition.NO_MEAN), log((1 - dyadic_partition.NO_MEAN) / waves),
        log(dyadic_partition.NO_SHAPE), log((1 - dyadic_partition.NO_SHAPE) / waves),
    ]  # fmt: skip
    return np.array([*sizes, *logs, uncertain])
