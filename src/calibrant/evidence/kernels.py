"""Smoothing kernels, each with standard deviation 1, known by what the cosine transform needs.

A `Kernel` holds the characteristic function and the roughness (integral of the square). A
bandwidth is therefore always the kernel's standard deviation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, pi, sqrt
from typing import Any

import numpy as np

from calibrant.evidence import Array

# What is made of the sines of smaller angles needs all their digits, which products of others do not have.
NEAR = 8.0


@dataclass(frozen=True)
class Kernel:
    """A symmetric probability density with standard deviation 1.

    Parameters
    ----------
    name : str
    transform : callable
        Characteristic function at frequencies (radians per standard deviation). With `spaced` these are, on
        the last axis, 0, 1, 2, ... times the second one, which takes some kernels less time.
    roughness : float
        Integral of the squared density; a smooth over bandwidth h leaves an effective sample of
        n h f / roughness at a point of density f.
    reach : float
        Distance beyond which the density is zero.
    """

    name: str
    transform: Callable[..., Array]
    roughness: float
    reach: float


def _sines(u: Array, spaced: bool) -> tuple[Array, Array]:
    """Return sines and cosines; of evenly spaced numbers, from 0 on, by products of those of few.

    >>> u = 0.1 * np.arange(1000)
    >>> bool(np.abs(_sines(u, True)[0] - np.sin(u)).max() < 1e-13)
    True
    """
    if not spaced:
        return np.sin(u), np.cos(u)
    count = u.shape[-1]
    own, side = count // 8, ceil(sqrt(count))
    near = u[..., own] < NEAR
    few, many = (np.exp(1j * part) for part in (u[..., :side], u[..., side : side + 1] * np.arange(side)))
    both = (many[..., :, None] * few[..., None, :]).reshape(*u.shape[:-1], -1)[..., :count]
    sine, cosine = both.imag, both.real
    for some in ((..., slice(own)), near):
        sine[some], cosine[some] = np.sin(u[some]), np.cos(u[some])
    return sine, cosine


def _polynomial(power: int) -> Callable[..., Array]:
    """Return the characteristic function of (1 - x^2)^power on [-1, 1]: (2p+1)!! j_p(u) / u^p.

    The spherical Bessel function comes by its upward recurrence, which loses digits near zero;
    there the power series takes over.
    """
    double_factorial = float(np.prod(np.arange(1, 2 * power + 2, 2)))

    def transform(u: Array, spaced: bool = False) -> Array:
        sine, cosine = _sines(u, spaced)
        inverse = 1 / np.maximum(u, 0.5)
        before = sine * inverse
        now = (before - cosine) * inverse
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


def _scaled(transform: Callable[..., Array], half_width: float) -> Callable[..., Array]:
    return lambda u, spaced=False: transform(half_width * u, spaced)


def _cosine(u: Array, spaced: bool = False) -> Array:
    """Evaluate the characteristic function of (pi/4) cos(pi x / 2) on [-1, 1]."""
    ratio = (2 * u / pi) ** 2
    smooth = np.abs(ratio - 1) > 1e-6
    return np.where(smooth, np.cos(u) / np.where(smooth, 1 - ratio, 1.0), pi / 4)


def _gaussian(u: Array, spaced: bool = False) -> Array:
    return np.exp(-0.5 * u * u)


_COSINE_WIDTH = 1 / sqrt(1 - 8 / pi**2)

KERNELS = {
    kernel.name: kernel
    for kernel in (
        Kernel("triweight", _scaled(_polynomial(3), 3.0), 350 / 429 / 3, 3.0),
        Kernel("gaussian", _gaussian, 1 / (2 * sqrt(pi)), 1e9),
        Kernel("epanechnikov", _scaled(_polynomial(1), sqrt(5)), 3 / 5 / sqrt(5), sqrt(5)),
        Kernel("cosine", _scaled(_cosine, _COSINE_WIDTH), pi**2 / 16 / _COSINE_WIDTH, _COSINE_WIDTH),
    )
}


def gain(kernel: str, bandwidth: Array, points: int, length: float) -> Array:
    """Return the factor of each cosine coefficient when `points` sums on a grid are smoothed.

    The factor also undoes the blur of linear binning, whose share of a node falls to zero over
    one step of the grid.

    >>> gain("gaussian", np.array(0.1), 4, 1.0)[0]
    np.float64(1.0)
    """
    return _each(_gain, kernel, bandwidth, points, length)


def overlap(kernel: str, bandwidth: Array, points: int, length: float) -> Array:
    """Integrate the squared reflected kernel at each midpoint of a grid.

    Away from the walls this is roughness / bandwidth; at a wall, where the kernel lies on its own
    mirror image, twice that. A density f then rests on an effective sample of n f / overlap.

    >>> own = overlap("gaussian", np.array(0.01), 1000, 1.0) * 0.01
    >>> (own / KERNELS["gaussian"].roughness)[[0, 500]].round(2)
    array([2., 1.])
    """
    return _each(_overlap, kernel, bandwidth, points, length)


def _each(function: Callable[..., Array], kernel: str, bandwidth: Array, points: int, length: float) -> Array:
    """Evaluate once for all bandwidths when they are equal, otherwise for each."""
    if np.all(bandwidth == bandwidth.flat[0]):
        return function(kernel, float(bandwidth.flat[0]), points, length)
    return function.__wrapped__(kernel, bandwidth[..., None], points, length)  # type: ignore[attr-defined]


@lru_cache(maxsize=64)
def _overlap(kernel: str, bandwidth: Any, points: int, length: float) -> Array:
    from scipy.fft import dct

    # Twice the frequency appears in cos^2 = (1 + cos 2x) / 2; the series is cut where it is negligible.
    square = KERNELS[kernel].transform(pi * np.arange(1, points) * bandwidth / length) ** 2
    series = np.zeros((*square.shape[:-1], points))
    series[..., 2::2] = square[..., : (points - 1) // 2]
    value = (1 + square.sum(axis=-1, keepdims=True) + dct(series, type=3) / 2) / length
    value.flags.writeable = False
    return value


@lru_cache(maxsize=64)
def _gain(kernel: str, bandwidth: Any, points: int, length: float) -> Array:
    k = np.arange(points)
    blur = np.sinc(k / (2 * points)) ** 2
    factor = KERNELS[kernel].transform(pi * k * bandwidth / length, spaced=True) / blur
    factor.flags.writeable = False
    return factor
