"""Binomial outcomes of many small groups at once, number for number those of numpy."""

from __future__ import annotations

import numpy as np

from calibrant.evidence.moments import Array

# Up to this many expected outcomes numpy spends one uniform number on each group, by inversion.
INVERTED = 30.0
# Rows of a group beyond which comparing with every count is slower than inversion.
MOST = 40
# No uniform number lies above.
CERTAIN = 1 - 2.0**-52
# Numbers drawn together: they stay in the cache while they are compared.
CHUNK = 1 << 15


def binomial(rng: np.random.Generator, n: Array, p: Array, size: int) -> Array:
    """Draw `size` times the outcomes of groups of n rows with chance p, as `rng.binomial(n, p)` does.

    numpy sets up its inversion anew for every number, because neighbouring groups differ. Here a group's
    distribution function is computed once and compared with all uniform numbers that belong to it: the
    same numbers come out, and the generator ends in the same state.

    >>> n, p = np.array([1, 3, 2]), np.array([0.2, 0.9, 0.5])
    >>> fast, plain = (np.random.default_rng(0) for _ in range(2))
    >>> bool(np.all(binomial(fast, n, p, 1000) == plain.binomial(n, p, (1000, 3))))
    True
    """
    rare = np.minimum(p, 1 - p)
    if n.max() > MOST or np.any(n * rare > INVERTED) or np.any(p <= 0) or np.any(n < 1):
        return rng.binomial(n, p, (size, n.size))
    # How likely at most 0, 1, ... outcomes are in each group; a group of n rows never has more than n.
    mass = np.exp(n * np.log1p(-rare))
    at_most = [mass]
    for k in range(1, int(n.max())):
        if at_most[-1].min() >= CERTAIN:
            break
        mass = mass * (n - k + 1) * rare / (k * (1 - rare))
        at_most.append(np.where(k < n, at_most[-1] + mass, np.inf))
    small = np.min_scalar_type(int(n.max()))
    drawn = np.empty((size, n.size), dtype=np.int64)
    often = p > 0.5
    step = max(1, CHUNK // n.size)
    for a in range(0, size, step):
        uniform = rng.random((min(step, size - a), n.size))
        count = np.zeros(uniform.shape, dtype=small)
        for bound in at_most:
            count += uniform > bound
        drawn[a : a + step] = np.where(often, n - count, count)
    return drawn
