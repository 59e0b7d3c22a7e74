"""Beta kernels: densities on [0, 1] whose shape depends on where they are centred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from calibrant.score_data import Array
from calibrant.score_data.nodes import BITS, Nodes

Kind = Literal[1, 2]
# Terms this many times e below a kernel's peak are left out.
NEGLIGIBLE = 45.0
# Bandwidth from which on the usual cells are narrow enough.
COMMON = 2e-4
# Values of kernels held at a time.
TOGETHER = 1 << 16
# Nodes from which on a problem is summed by itself, each place over the nodes within its reach.
BANDED = 512


def logs(below: Array, above: Array) -> Array:
    """Stack ln p and ln(1 - p) of the distances p and 1 - p from both walls; the logarithm of 0 is finite.

    >>> logs(np.array([0.0, 0.5]), np.array([1.0, 0.5]))[:, 0].tolist()
    [-1e+290, -0.6931471805599453]
    """
    with np.errstate(divide="ignore"):
        pair = [np.where(p < 0.5, np.log(p), np.log1p(-q)) for p, q in ((below, above), (above, below))]
    # Far below any exponent that matters.
    return np.maximum(np.stack(pair, axis=-1), -1e290)


def shapes(centre: Array, bandwidth: Array, kind: Kind = 1) -> tuple[Array, Array]:
    """Return both shape parameters of Chen's kernel at each centre.

    The first kind is Beta(x/b + 1, (1 - x)/b + 1). The second is Beta(x/b, (1 - x)/b), whose mean is x,
    and bends the parameter of the nearer wall within 2 b of it (Chen 1999).

    >>> [part.round(3).tolist() for part in shapes(np.array([0.0, 0.5]), np.array(0.1))]
    [[1.0, 6.0], [11.0, 6.0]]
    >>> [part.round(3).tolist() for part in shapes(np.array([0.0, 0.5]), np.array(0.1), 2)]
    [[1.0, 5.0], [10.0, 5.0]]
    """
    if kind == 1:
        return centre / bandwidth + 1, (1 - centre) / bandwidth + 1

    def bent(x: Array) -> Array:
        inside = 4 * bandwidth**4 + 6 * bandwidth**2 + 2.25 - x * x - x / bandwidth
        near = 2 * bandwidth**2 + 2.5 - np.sqrt(np.maximum(inside, 0.0))
        # Below 1 the kernel would be infinite on the wall; above, if by rounding, rows there would not count.
        return np.where(x > 0, np.maximum(np.where(x < 2 * bandwidth, near, x / bandwidth), 1.0), 1.0)

    return bent(centre), bent(1 - centre)


def log_constant(a: Array, b: Array) -> Array:
    """Return the logarithm of what a Beta density is scaled by."""
    from scipy.special import gammaln

    return np.asarray(gammaln(a + b) - gammaln(a) - gammaln(b))


def spread(a: Array, b: Array) -> Array:
    """Return the standard deviation of Beta variables."""
    return np.asarray(np.sqrt(a * b / (a + b + 1)) / (a + b))


def bits_for(bandwidth: Array) -> Array:
    """Return the bits that tell cells apart for sums that are right to 1e-6: cells narrow with the kernel.

    >>> bits_for(np.array([0.1, 1e-3, 1e-4, 1e-5]))
    array([6, 6, 7, 9])
    """
    return BITS + np.ceil(np.log2(np.maximum(COMMON / bandwidth, 1.0)) / 2).astype(np.intp)


def sums(nodes: Nodes, at: Array, bandwidth: Array, kind: Kind = 1, *, power: int = 1) -> Array:
    """Sum mass and positive mass under Chen's kernel, or its square, at each place.

    Parameters
    ----------
    nodes : Nodes
        A batch of problems.
    at : array
        Places in order, the same for all problems.
    bandwidth : array
        Chen's b of each problem.
    kind : {1, 2}
    power : {1, 2}
        Of the kernel.

    Returns
    -------
    array, shape (problems, places, 2)

    Examples
    --------
    >>> node = Nodes(np.array([[0.2]]), np.array([[0.8]]), np.ones((1, 1, 2)))
    >>> sums(node, np.array([0.2, 0.5]), np.array([0.1]))[..., 0].round(3)  # Beta(3, 9) and Beta(6, 6)
    array([[3.322, 0.291]])
    """
    found = np.empty((len(bandwidth), at.size, 2))
    for some, places, near, height in _heights(nodes, at, bandwidth, kind, power):
        found[some, places] = height @ nodes.weights[some, near]
    return found


def masses(nodes: Nodes, at: Array, share: Array, bandwidth: Array, kind: Kind = 1) -> Array:
    """Integrate over the places, each of which has a share, what every node contributes to the density there.

    >>> node = Nodes(np.array([[0.2, 1e-9]]), np.array([[0.8, 1 - 1e-9]]), np.ones((1, 2, 2)))
    >>> masses(node, (np.arange(9999) + 0.5) / 9999, np.full(9999, 1 / 9999), np.array([0.01])).round(2)
    array([[1.01, 0.06]])
    """
    whole = np.zeros(nodes.below.shape)
    for some, places, near, height in _heights(nodes, at, bandwidth, kind):
        whole[some, near] += share[places] @ height
    return whole


def _heights(
    nodes: Nodes, at: Array, bandwidth: Array, kind: Kind, power: int = 1
) -> Iterator[tuple[slice, slice, Any, Array]]:
    """Yield kernels, or their powers, over some problems, places and nodes at a time."""
    a, b = shapes(at, bandwidth[:, None], kind)
    kernel = power * np.stack([a - 1, b - 1, log_constant(a, b)], axis=-1)
    known = logs(nodes.below, nodes.above)
    known = np.concatenate([known, np.ones((*known.shape[:-1], 1))], axis=-1).swapaxes(1, 2)
    problems, places, size = *kernel.shape[:2], known.shape[2]
    if size <= BANDED:
        step, every = max(1, TOGETHER // (places * size)), slice(None)
        for some in (slice(k, k + step) for k in range(0, problems, step)):
            height = kernel[some] @ known[some]
            yield some, every, every, np.exp(height, out=height)
        return
    # On the scale of the arcsine a kernel is nowhere wider than 3/4 of the root of b.
    place, reach = np.arcsin(np.sqrt(at)), 0.75 * np.sqrt(2 * NEGLIGIBLE * bandwidth)
    for k in range(problems):
        order = np.argsort(nodes.below[k], kind="stable")
        spots, own = nodes.below[k, order], known[k][:, order]
        left, right = (np.sin(np.clip(place + far, 0.0, np.pi / 2)) ** 2 for far in (-reach[k], reach[k]))
        first, last = np.searchsorted(spots, left), np.searchsorted(spots, right, "right")
        step = max(8, int(places * reach[k] / np.pi))
        for j in range(0, places, step):
            some, near = slice(j, j + step), slice(first[j], last[min(j + step, places) - 1])
            height = kernel[k, some] @ own[:, near]
            yield slice(k, k + 1), some, order[near], np.exp(height, out=height)[None]
