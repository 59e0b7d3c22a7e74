"""Random outcomes of many small groups: binomial, or normal for groups of large variance."""

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

# Largest expected count for which numpy draws a binomial by inversion, from one uniform number per group.
MAX_INVERSION_MEAN = 30.0
# For larger groups, comparing with every count is slower than the inversion of numpy.
MAX_ROWS = 40
# Upper bound of the uniform numbers.
MAX_UNIFORM = 1 - 2.0**-52
# Numbers drawn at once, so that they stay in the cache.
CHUNK = 1 << 15
# Residuals with at least this variance are drawn from a normal distribution.
NORMAL = 30.0
# Sets drawn at once.
SETS = 32


def broadcast_probability(probability: Array | float, size: int) -> Array:
    """Broadcast probabilities to shape (rows, size).

    >>> broadcast_probability(0.5, 2)
    array([[0.5, 0.5]])
    """
    return np.atleast_2d(np.broadcast_to(probability, (*np.shape(probability)[:-1], size)))


def binomial(rng: np.random.Generator, n: Array, p: Array, size: int) -> Array:
    """Draw `size` sets of binomial counts of groups with n rows and probability p, like `rng.binomial(n, p)`.

    If p has several rows, `size` sets are drawn for each of them in turn. Counts are returned as floats.

    numpy repeats the setup of its inversion for every number, because neighbouring groups differ. Here the
    distribution function of a group is computed once and compared with all its uniform numbers. The results
    and the final state of the generator are identical.

    >>> n, p = np.array([1, 3, 2]), np.array([0.2, 0.9, 0.5])
    >>> fast, plain = (np.random.default_rng(0) for _ in range(2))
    >>> bool(np.all(binomial(fast, n, p, 1000) == plain.binomial(n, p, (1000, 3))))
    True
    """
    chances = np.atleast_2d(p)
    drawn = np.zeros((len(chances) * size, n.size))
    for k, probability in enumerate(chances):
        _draw(rng, n, probability, drawn[k * size : (k + 1) * size])
    return drawn


def _draw(rng: np.random.Generator, n: Array, p: Array, out: Array) -> None:
    """Draw counts (sets, groups) of the groups with a positive expectation."""
    # numpy draws no random number if n or p is zero.
    possible = np.flatnonzero((p != 0) & (n != 0))
    if possible.size < n.size:
        n, p = n[possible], p[possible]
    shape = len(out), possible.size
    rare = np.minimum(p, 1 - p)
    if n.max(initial=0) > MAX_ROWS or np.any(n * rare > MAX_INVERSION_MEAN) or np.any(p < 0) or np.any(n < 0):
        out[:, possible] = rng.binomial(n, p, shape)
        return
    # Distribution function of each group at 0, 1, ...; infinite from n on.
    mass, often = np.exp(n * np.log1p(-rare)), p > 0.5
    base, unit = np.where(often, n, 0.0), np.where(often, -1.0, 1.0)
    at_most = [mass]
    for k in range(1, int(n.max(initial=0))):
        if at_most[-1].min() >= MAX_UNIFORM:
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
        out[a : a + step, possible] = base + unit * count


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Simulated residuals of calibrated data at the steps of a problem, from random words.

    A step of small variance has a binomial count: the number of bounds below a random word of 32 bits. A step
    of large variance is normal, by a table of quantiles for each word of 16 bits.

    Attributes
    ----------
    steps : int
    exact, normal : arrays of int
        Indices of the binomial and of the normal steps.
    bounds : array of uint32 (most outcomes, steps)
    unit, base : arrays
        The residual of a binomial step is base + unit * count.
    sd : array
        Standard deviation of the residual of a normal step.
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
        """Prepare the draws for a single problem."""
        variance = residuals.spread * residuals.score * (1 - residuals.score)
        large = variance >= NORMAL
        exact = np.flatnonzero(~large)
        binomial_steps = residuals[exact]
        rows = np.maximum(np.rint(binomial_steps.mass**2 / binomial_steps.spread), 1)
        often = binomial_steps.score > 0.5
        bounds = _bounds(rows, np.minimum(binomial_steps.score, 1 - binomial_steps.score))
        # Count the rarer outcome: negatives for scores above 0.5.
        unit = np.where(often, -1.0, 1.0) * binomial_steps.mass / rows
        base = binomial_steps.mass * (often - binomial_steps.score)
        return cls(large.size, exact, np.flatnonzero(large), bounds, unit, base, np.sqrt(variance[large]))

    def blocks(self, rng: np.random.Generator, size: int) -> Iterator[Array]:
        """Yield blocks of residuals (sets, steps), `size` sets in total.

        >>> from calibrant.score_data import Residuals, Sample
        >>> sample = Sample(np.array([0.2, 0.2, 0.9, 0.9]), np.array([False, True, True, True]))
        >>> steps = Residuals.of(sample).coarser(10)
        >>> next(Outcomes.of(steps).blocks(np.random.default_rng(0), 3)).round(1)
        array([[ 0.6,  0.2],
               [-0.4,  0.2],
               [-0.4,  0.2]])
        """
        for first in range(0, size, SETS):
            sets = min(SETS, size - first)
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
    """Draw random words of `size` bytes, identical on every machine.

    >>> random_words(np.random.default_rng(0), (1, 3))
    array([[3653403231, 2735729615, 2195314465]], dtype=uint32)
    """
    count = shape[0] * shape[1]
    raw = rng.bit_generator.random_raw(-(-count * size // 8)).astype("<u8", copy=False)
    return raw.view(f"<u{size}")[:count].reshape(shape).astype(f"u{size}", copy=False)


def _bounds(n: Array, p: Array) -> Array:
    """Return the distribution function of a binomial count at 0, 1, ..., scaled to words of 32 bits."""
    if n.size == 0:
        return np.zeros((0, 0), dtype=np.uint32)
    mass = np.exp(n * np.log1p(-p))
    total, at_most = mass, list[Array]()
    # The count never exceeds n, and from this probability on no word is above the bound.
    while (chance := np.where(len(at_most) < n, total, 1.0)).min() < 1 - 2.0**-33:
        at_most.append(chance)
        mass = mass * np.maximum(n - len(at_most) + 1, 0) * p / (len(at_most) * (1 - p))
        total = total + mass
    bounds = np.clip(np.rint(np.array(at_most).reshape(-1, n.size) * 2.0**32) - 1, 0, 2**32 - 1)
    return bounds.astype(np.uint32)


@lru_cache(maxsize=1)
def _quantiles() -> Array:
    """Return normal quantiles for each word of 16 bits, scaled to variance 1."""
    from scipy.special import ndtri

    values = ndtri((np.arange(2**16) + 0.5) / 2**16)
    return np.asarray(values / np.sqrt(np.mean(values**2)))
