"""Chen's beta kernel densities row by row, by scipy.stats, and the errors integrated from them.

S. X. Chen, "Beta kernel estimators for density functions" (1999): the first kernel, and the second, which is
bent near the walls. Rows on a wall are held apart: no kernel off the wall reaches them.
"""

from math import sqrt

import numpy as np
from scipy.integrate import quad
from scipy.stats import beta

from .density import NODES, WEIGHTS, split_at_sign_changes


def shape(x, b, kind):
    """Both parameters of the kernel at x."""
    if kind == 1:
        return x / b + 1, (1 - x) / b + 1

    def rho(z):
        return max(1.0, 2 * b**2 + 5 / 2 - sqrt(4 * b**4 + 6 * b**2 + 9 / 4 - z**2 - z / b))

    return (rho(x) if x < 2 * b else x / b), (rho(1 - x) if x > 1 - 2 * b else (1 - x) / b)


def sums(scores, weights, *, bandwidth, kind, at, support=(0, 1), power=1):
    """Sum of the weights times the kernel at each place, or times its power."""
    low, high = support
    scores = (np.asarray(scores, dtype=float) - low) / (high - low)
    places = (np.atleast_1d(np.asarray(at, dtype=float)) - low) / (high - low)
    return np.array([beta.pdf(scores, *shape(x, bandwidth, kind)) ** power @ weights for x in places])


def ece(scores, outcomes, *, bandwidth, kind, support=(0, 1), weights=None, norm="l1", each=False):
    """Integral of |pi1 f1 - s f|, f of mass one, or the root of the integral of its square over f.

    With `each` every row has mass one.
    """
    scores, outcomes = np.asarray(scores, dtype=float), np.asarray(outcomes, dtype=float)
    weights = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    given, (low, high) = weights, support
    on_wall = (scores == low) | (scores == high)

    if each:
        weights = weights.copy()
        for i in np.flatnonzero(~on_wall):
            z = (scores[i] - low) / (high - low)
            options = {"points": [0.001, 0.01, z], "limit": 400, "epsabs": 1e-10}
            weights[i] /= quad(lambda x, z=z: beta.pdf(z, *shape(x, bandwidth, kind)), 0, 1, **options)[0]

    def parts(at):
        pair = (weights[~on_wall], (weights * outcomes)[~on_wall])
        options = {"bandwidth": bandwidth, "kind": kind, "at": at, "support": support}
        return [sums(scores[~on_wall], each, **options) for each in pair]

    def excess(at):
        whole, positive = parts(at)
        return positive - np.atleast_1d(at) * whole

    # Kernels are about as wide everywhere on the scale of the arcsine.
    angle = np.linspace(0, np.pi / 2, 2 + int(8 / sqrt(bandwidth)))
    bends = [x for x in (2 * bandwidth, 1 - 2 * bandwidth) if 0 < x < 1] if kind == 2 else []
    ends = low + (high - low) * np.unique(np.append(np.sin(angle) ** 2, bends))
    ends = split_at_sign_changes(excess, ends) if norm == "l1" else ends
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    at = (middle[:, None] + half[:, None] * NODES).ravel()
    share = (half[:, None] * WEIGHTS).ravel()
    whole, positive = parts(at)
    inner = given[~on_wall].sum() / given.sum() / (whole @ share)
    gap = positive - at * whole
    total = 0.0
    for wall in (low, high):
        here = scores == wall
        if here.any():
            mass, off = given[here].sum(), given[here] @ (outcomes[here] - wall)
            total += (abs(off) if norm == "l1" else off**2 / mass) / given.sum()
    if norm == "l1":
        return inner * (np.abs(gap) @ share) + total
    square = np.divide(gap**2, whole, out=np.zeros(len(at)), where=whole > 0)
    return sqrt(inner * (square @ share) + total)
