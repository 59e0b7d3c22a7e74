"""Smoothing kernels with standard deviation 1, given by their characteristic functions.

A bandwidth is therefore always the kernel's standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import TypeAlias

import numpy as np

from calibrant.score_data import Array

Transform: TypeAlias = Callable[[Array], Array]


@dataclass(frozen=True)
class Kernel:
    """A symmetric probability density with standard deviation 1.

    Parameters
    ----------
    name : str
    transform : callable
        Characteristic function at frequencies (radians per standard deviation).
    support_radius : float
        Distance beyond which the density is zero.
    """

    name: str
    transform: Transform
    support_radius: float


def _polynomial(power: int) -> Transform:
    """Return the characteristic function of (1 - x^2)^power on [-1, 1]: (2p+1)!! j_p(u) / u^p.

    The spherical Bessel function is computed by upward recurrence. Near zero, where the recurrence loses
    accuracy, the power series is used.
    """
    double_factorial = float(np.prod(np.arange(1, 2 * power + 2, 2)))

    def transform(u: Array) -> Array:
        inverse = 1 / np.maximum(u, 0.5)
        before = np.sin(u) * inverse
        now = (before - np.cos(u)) * inverse
        for order in range(1, power):
            before, now = now, (2 * order + 1) * inverse * now - before
        for _ in range(power):
            now *= inverse
        now *= double_factorial
        small = u < 0.5
        square = u[small] ** 2
        term, series = np.ones_like(square), np.ones_like(square)
        for k in range(1, 7):
            term *= -square / (2 * k * (2 * k + 2 * power + 1))
            series += term
        now[small] = series
        return now

    return transform


def _scaled(transform: Transform, half_width: float) -> Transform:
    return lambda u: transform(half_width * u)


def _cosine(u: Array) -> Array:
    """Evaluate the characteristic function of (pi/4) cos(pi x / 2) on [-1, 1]."""
    ratio = (2 * u / pi) ** 2
    smooth = np.abs(ratio - 1) > 1e-6
    return np.where(smooth, np.cos(u) / np.where(smooth, 1 - ratio, 1.0), pi / 4)


def _gaussian(u: Array) -> Array:
    return np.exp(-0.5 * u * u)


_COSINE_WIDTH = 1 / sqrt(1 - 8 / pi**2)

KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("triweight", _scaled(_polynomial(3), 3.0), 3.0),
        Kernel("gaussian", _gaussian, 1e9),
        Kernel("epanechnikov", _scaled(_polynomial(1), sqrt(5)), sqrt(5)),
        Kernel("cosine", _scaled(_cosine, _COSINE_WIDTH), _COSINE_WIDTH),
    )
}


def gain(kernel: str, bandwidth: Array, points: int, length: float) -> Array:
    """Return the factor of each cosine coefficient when `points` sums on a grid are smoothed.

    The factor also corrects for the smoothing by linear binning.

    >>> gain("gaussian", np.array(0.1), 4, 1.0)[0]
    np.float64(1.0)
    """
    k = np.arange(points)
    blur = np.sinc(k / (2 * points)) ** 2
    return KERNELS[kernel].transform(pi * k * bandwidth[..., None] / length) / blur


def overlap(kernel: str, bandwidth: Array, points: int, length: float) -> Array:
    """Integrate the squared reflected kernel at each midpoint of a grid.

    Away from the boundaries this is the integral of the squared kernel divided by the bandwidth. At a
    boundary, where the kernel overlaps with its reflection, it is twice that. The effective local sample size
    at a density f is n f / overlap.

    >>> own = overlap("gaussian", np.array(0.01), 1000, 1.0) * 0.01
    >>> (own * 2 * sqrt(pi))[[0, 500]].round(2)
    array([2., 1.])
    """
    from scipy.fft import dct

    # cos^2 x = (1 + cos 2x) / 2 doubles the frequency; negligible terms of the series are omitted.
    square = KERNELS[kernel].transform(pi * np.arange(1, points) * bandwidth[..., None] / length) ** 2
    series = np.zeros((*square.shape[:-1], points))
    series[..., 2::2] = square[..., : (points - 1) // 2]
    return np.asarray((1 + square.sum(axis=-1, keepdims=True) + dct(series, type=3) / 2) / length)
