"""Beta kernels: densities on [0, 1] whose shape depends on their centre (Chen 1999)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np

from calibrant.score_data import Array
from calibrant.score_data.nodes import BITS, Nodes

Kind = Literal[1, 2]
# Terms below exp(-NEGLIGIBLE) times the peak of a kernel are omitted.
NEGLIGIBLE = 45.0
# Smallest bandwidth for which the default cells are narrow enough.
DEFAULT_CELLS_FROM = 2e-4
# Maximum number of kernel values in memory.
CHUNK = 1 << 16
# Problems with more nodes are summed one by one, and each point only over the nodes within the kernel width.
BANDED = 512


def logs(below: Array, above: Array) -> Array:
    """Stack ln p and ln(1 - p), given the distances p and 1 - p from 0 and 1; the logarithm of 0 is finite.

    >>> logs(np.array([0.0, 0.5]), np.array([1.0, 0.5]))[:, 0].tolist()
    [-1e+290, -0.6931471805599453]
    """
    with np.errstate(divide="ignore"):
        pair = [np.where(p < 0.5, np.log(p), np.log1p(-q)) for p, q in ((below, above), (above, below))]
    # Far below any relevant exponent.
    return np.maximum(np.stack(pair, axis=-1), -1e290)


def shapes(centre: Array, bandwidth: Array, kind: Kind = 1) -> tuple[Array, Array]:
    """Return both shape parameters of Chen's kernel at each centre.

    The first kind is Beta(x/b + 1, (1 - x)/b + 1). The second is Beta(x/b, (1 - x)/b), whose mean is x;
    within 2 b of 0 or 1 the parameter of the nearer boundary is modified (Chen 1999).

    >>> [part.round(3).tolist() for part in shapes(np.array([0.0, 0.5]), np.array(0.1))]
    [[1.0, 6.0], [11.0, 6.0]]
    >>> [part.round(3).tolist() for part in shapes(np.array([0.0, 0.5]), np.array(0.1), 2)]
    [[1.0, 5.0], [10.0, 5.0]]
    """
    if kind == 1:
        return centre / bandwidth + 1, (1 - centre) / bandwidth + 1

    def modified(x: Array) -> Array:
        inside = 4 * bandwidth**4 + 6 * bandwidth**2 + 2.25 - x * x - x / bandwidth
        near = 2 * bandwidth**2 + 2.5 - np.sqrt(np.maximum(inside, 0.0))
        # A parameter below 1 makes the kernel infinite at the boundary; one above 1, if only by rounding,
        # makes it zero there.
        return np.where(x > 0, np.maximum(np.where(x < 2 * bandwidth, near, x / bandwidth), 1.0), 1.0)

    return modified(centre), modified(1 - centre)


def log_constant(a: Array, b: Array) -> Array:
    """Return the log of the normalising constant of a Beta density."""
    from scipy.special import gammaln

    return np.asarray(gammaln(a + b) - gammaln(a) - gammaln(b))


def spread(a: Array, b: Array) -> Array:
    """Return the standard deviation of Beta variables."""
    return np.asarray(np.sqrt(a * b / (a + b + 1)) / (a + b))


def bits_for(bandwidth: Array) -> Array:
    """Return the mantissa bits that define the cells, so that sums have a relative error of about 1e-6.

    >>> bits_for(np.array([0.1, 1e-3, 1e-4, 1e-5]))
    array([6, 6, 7, 9])
    """
    return BITS + np.ceil(np.log2(np.maximum(DEFAULT_CELLS_FROM / bandwidth, 1.0)) / 2).astype(np.intp)


def sums(nodes: Nodes, at: Array, bandwidth: Array, kind: Kind = 1, *, power: int = 1) -> Array:
    """Sum mass and positive mass under Chen's kernel, or its square, at each point.

    Parameters
    ----------
    nodes : Nodes
        A batch of problems.
    at : array
        Sorted points, shared by all problems.
    bandwidth : array
        Bandwidth b of each problem.
    kind : {1, 2}
    power : {1, 2}
        Power of the kernel.

    Returns
    -------
    array, shape (problems, points, 2)

    Examples
    --------
    >>> node = Nodes(np.array([[0.2]]), np.array([[0.8]]), np.ones((1, 1, 2)))
    >>> sums(node, np.array([0.2, 0.5]), np.array([0.1]))[..., 0].round(3)  # Beta(3, 9) and Beta(6, 6)
    array([[3.322, 0.291]])
    """
    sums = np.empty((len(bandwidth), at.size, 2))
    for problems, points, near, height in _heights(nodes, at, bandwidth, kind, power):
        sums[problems, points] = height @ nodes.weights[problems, near]
    return sums


def masses(nodes: Nodes, at: Array, share: Array, bandwidth: Array, kind: Kind = 1) -> Array:
    """Integrate the kernel of each point over the points, at every node; `share` are quadrature weights.

    >>> node = Nodes(np.array([[0.2, 1e-9]]), np.array([[0.8, 1 - 1e-9]]), np.ones((1, 2, 2)))
    >>> masses(node, (np.arange(9999) + 0.5) / 9999, np.full(9999, 1 / 9999), np.array([0.01])).round(2)
    array([[1.01, 0.06]])
    """
    total = np.zeros(nodes.below.shape)
    for problems, points, near, height in _heights(nodes, at, bandwidth, kind):
        total[problems, near] += share[points] @ height
    return total


def _heights(
    nodes: Nodes, at: Array, bandwidth: Array, kind: Kind, power: int = 1
) -> Iterator[tuple[slice, slice, Any, Array]]:
    """Yield kernels, or their powers, in blocks: slices of problems and points, nodes, and kernel values."""
    a, b = shapes(at, bandwidth[:, None], kind)
    kernel = power * np.stack([a - 1, b - 1, log_constant(a, b)], axis=-1)
    known = logs(nodes.below, nodes.above)
    known = np.concatenate([known, np.ones((*known.shape[:-1], 1))], axis=-1).swapaxes(1, 2)
    problems, places, size = *kernel.shape[:2], known.shape[2]
    if size <= BANDED:
        step, every = max(1, CHUNK // (places * size)), slice(None)
        for block in (slice(k, k + step) for k in range(0, problems, step)):
            height = kernel[block] @ known[block]
            yield block, every, every, np.exp(height, out=height)
        return
    # On the arcsine square root scale the standard deviation of a kernel is at most 3/4 of the root of b.
    place, radius = np.arcsin(np.sqrt(at)), 0.75 * np.sqrt(2 * NEGLIGIBLE * bandwidth)
    for k in range(problems):
        order = np.argsort(nodes.below[k], kind="stable")
        spots, kernel_logs = nodes.below[k, order], known[k][:, order]
        left, right = (np.sin(np.clip(place + far, 0.0, np.pi / 2)) ** 2 for far in (-radius[k], radius[k]))
        first, last = np.searchsorted(spots, left), np.searchsorted(spots, right, "right")
        step = max(8, int(places * radius[k] / np.pi))
        for j in range(0, places, step):
            block, near = slice(j, j + step), slice(first[j], last[min(j + step, places) - 1])
            height = kernel[k, block] @ kernel_logs[:, near]
            yield slice(k, k + 1), block, order[near], np.exp(height, out=height)[None]
