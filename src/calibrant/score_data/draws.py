"""Outcomes of many small groups at once: binomial, or normal where a group's variance allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from calibrant import compiled
from calibrant.score_data.moments import Array

if TYPE_CHECKING:
    from calibrant.score_data.residuals import Residuals

# Up to this many expected outcomes numpy spends one uniform number on each group, by inversion.
INVERTED = 30.0
# Rows of a group beyond which comparing with every count is slower than inversion by numpy.
MOST = 40
# No uniform number lies above.
CERTAIN = 1 - 2.0**-52
# Numbers drawn together: they stay in the cache while they are compared.
CHUNK = 1 << 15
# Where a residual has at least this variance it is as good as normal.
NORMAL = 30.0
# Sets drawn together.
TOGETHER = 32


def each_chance(chance: Array | float, size: int) -> Array:
    """Return the chances (rows, size) by which samples are drawn, row after row.

    >>> each_chance(0.5, 2)
    array([[0.5, 0.5]])
    """
    return np.atleast_2d(np.broadcast_to(chance, (*np.shape(chance)[:-1], size)))


def binomial(rng: np.random.Generator, n: Array, p: Array, size: int) -> Array:
    """Draw `size` times the outcomes of groups of n rows with chance p, as `rng.binomial(n, p)` does.

    Where chances have several rows, `size` times by each, one after the other. Counts are returned as floats.

    numpy sets up its inversion anew for every number, because neighbouring groups differ. Here a group's
    distribution function is computed once and compared with all uniform numbers that belong to it: the
    same numbers come out, and the generator ends in the same state.

    >>> n, p = np.array([1, 3, 2]), np.array([0.2, 0.9, 0.5])
    >>> fast, plain = (np.random.default_rng(0) for _ in range(2))
    >>> bool(np.all(binomial(fast, n, p, 1000) == plain.binomial(n, p, (1000, 3))))
    True
    """
    chances = np.atleast_2d(p)
    drawn = np.zeros((len(chances) * size, n.size))
    for k, chance in enumerate(chances):
        _draw(rng, n, chance, drawn[k * size : (k + 1) * size])
    return drawn


def _draw(rng: np.random.Generator, n: Array, p: Array, out: Array) -> None:
    """Draw outcomes (sets, groups) where there may be any."""
    # numpy spends no number on what cannot happen.
    some = np.flatnonzero((p != 0) & (n != 0))
    if some.size < n.size:
        n, p = n[some], p[some]
    shape = len(out), some.size
    rare = np.minimum(p, 1 - p)
    if n.max(initial=0) > MOST or np.any(n * rare > INVERTED) or np.any(p < 0) or np.any(n < 0):
        out[:, some] = rng.binomial(n, p, shape)
        return
    # How likely at most 0, 1, ... outcomes are in each group; a group of n rows never has more than n.
    mass, often = np.exp(n * np.log1p(-rare)), p > 0.5
    base, unit = np.where(often, n, 0.0), np.where(often, -1.0, 1.0)
    at_most = [mass]
    for k in range(1, int(n.max(initial=0))):
        if at_most[-1].min() >= CERTAIN:
            break
        mass = mass * (n - k + 1) * rare / (k * (1 - rare))
        at_most.append(np.where(k < n, at_most[-1] + mass, np.inf))
    small = np.min_scalar_type(int(n.max(initial=0)))
    step = max(1, CHUNK // max(1, n.size))
    for a in range(0, len(out), step):
        uniform = rng.random((min(step, len(out) - a), n.size))
        count = np.zeros(uniform.shape, dtype=small)
        for bound in at_most:
            count += uniform > bound
        out[a : a + step, some] = base + unit * count


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Outcomes of calibrated data at the steps of a problem, from random words.

    A step of little variance has a binomial number of outcomes: as many as there are bounds below a word of
    32 bits. One of more variance is normal, by a table with a quantile for each word of 16 bits.

    Attributes
    ----------
    steps : int
    exact, normal : arrays of int
        Which steps are drawn either way.
    bounds : array of uint32 (most outcomes, steps)
    unit, base : arrays
        The residual of an exact step is its base plus as many units as outcomes.
    sd : array
        Of the residual of a normal step.
    """

    steps: int
    exact: Array
    normal: Array
    bounds: Array
    unit: Array
    base: Array
    sd: Array

    @classmethod
    def of(cls, residuals: Residuals) -> Outcomes:
        """Return how to draw for a single problem."""
        variance = residuals.spread * residuals.score * (1 - residuals.score)
        large = variance >= NORMAL
        exact = np.flatnonzero(~large)
        some = residuals[exact]
        rows = np.maximum(np.rint(some.mass**2 / some.spread), 1)
        often = some.score > 0.5
        bounds = _bounds(rows, np.minimum(some.score, 1 - some.score))
        # The rarer outcome is counted: of a score close to 1 the misses.
        unit = np.where(often, -1.0, 1.0) * some.mass / rows
        base = some.mass * (often - some.score)
        return cls(large.size, exact, np.flatnonzero(large), bounds, unit, base, np.sqrt(variance[large]))

    def blocks(self, rng: np.random.Generator, size: int) -> Iterator[Array]:
        """Draw residuals (sets, steps), `size` sets in all.

        >>> from calibrant.score_data import Residuals, Sample
        >>> sample = Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True]))
        >>> steps = Residuals.of(sample).coarser(10)
        >>> next(Outcomes.of(steps).blocks(np.random.default_rng(0), 3)).round(1)
        array([[ 0.6,  0.2],
               [-0.4,  0.2],
               [-0.4,  0.2]])
        """
        for first in range(0, size, TOGETHER):
            sets = min(TOGETHER, size - first)
            out = np.empty((sets, self.steps))
            if self.exact.size:
                self._count(random_words(rng, (sets, self.exact.size)), out)
            if self.normal.size:
                self._scale(random_words(rng, (sets, self.normal.size), 2), out)
            yield out

    def _count(self, words: Array, out: Array) -> None:
        if compiled.loops is not None:
            compiled.loops.outcomes(words, self.bounds, self.unit, self.base, self.exact, out)
            return
        count = np.zeros(words.shape, dtype=np.int32)
        for bound in self.bounds:
            count += words > bound
        out[:, self.exact] = self.base + self.unit * count

    def _scale(self, words: Array, out: Array) -> None:
        if compiled.loops is not None:
            compiled.loops.normals(words, _quantiles(), self.sd, self.normal, out)
            return
        out[:, self.normal] = self.sd * _quantiles()[words]


def random_words(rng: np.random.Generator, shape: tuple[int, int], size: int = 4) -> Array:
    """Draw random words of so many bytes, the same on every machine.

    >>> random_words(np.random.default_rng(0), (1, 3))
    array([[3653403231, 2735729615, 2195314465]], dtype=uint32)
    """
    count = shape[0] * shape[1]
    raw = rng.bit_generator.random_raw(-(-count * size // 8)).astype("<u8", copy=False)
    return raw.view(f"<u{size}")[:count].reshape(shape).astype(f"u{size}", copy=False)


def _bounds(n: Array, p: Array) -> Array:
    """Return the words beyond which there are more than 0, 1, ... outcomes of n with a small chance p."""
    if n.size == 0:
        return np.zeros((0, 0), dtype=np.uint32)
    mass = np.exp(n * np.log1p(-p))
    at_most, bounds, k = mass, [], 0
    while True:
        # Of n rows there are never more than n.
        bounds.append(np.where(k < n, np.clip(np.rint(at_most * 2.0**32) - 1, 0, 2**32 - 1), 2**32 - 1))
        k += 1
        if bounds[-1].min() >= 2**32 - 1:
            return np.array(bounds[:-1]).reshape(-1, n.size).astype(np.uint32)
        mass = mass * np.maximum(n - k + 1, 0) * p / (k * (1 - p))
        at_most = at_most + mass


@lru_cache(maxsize=1)
def _quantiles() -> Array:
    """Return equally likely values of a normal variable, one for each word of 16 bits, with variance one."""
    from scipy.special import ndtri

    values = ndtri((np.arange(2**16) + 0.5) / 2**16)
    return np.asarray(values / np.sqrt(np.mean(values**2)))
