"""Bounded kernel density by naive sums over mirror images, and the errors integrated from it.

The density of the scores, f, and its part from the positive outcomes, pi1 f1, are sums of kernels at
every score and at its reflections in both ends of the support. The bandwidth is the kernel's standard
deviation.
"""

from fractions import Fraction
from math import ceil, floor, pi, sqrt

import numpy as np
from scipy.optimize import brentq

from . import binned

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)
IQR_OF_NORMAL = 1.3489795003921634
RANGE_1_99_OF_NORMAL = 4.6526957480816815


def triweight(u):
    return np.where(np.abs(u) < 3, 35 / 32 * (1 - (u / 3) ** 2) ** 3, 0) / 3


def gaussian(u):
    return np.exp(-(u**2) / 2) / sqrt(2 * pi)


def epanechnikov(u):
    reach = sqrt(5)
    return np.where(np.abs(u) < reach, 3 / 4 * (1 - (u / reach) ** 2), 0) / reach


def cosine(u):
    reach = REACH["cosine"]
    return np.where(np.abs(u) < reach, pi / 4 * np.cos(pi / 2 * u / reach), 0) / reach


KERNELS = {"triweight": triweight, "gaussian": gaussian, "epanechnikov": epanechnikov, "cosine": cosine}
# Half-width in standard deviations; the Gaussian is below 1e-17 of its peak from 9 on.
REACH = {"triweight": 3, "gaussian": 9, "epanechnikov": sqrt(5), "cosine": 1 / sqrt(1 - 8 / pi**2)}


def images(scores, bandwidth, kernel, support):
    """Reflections of the scores whose kernels reach into the support, and the index of the score of each."""
    low, high = support
    scores = np.clip(np.asarray(scores, dtype=float), low, high)
    reach, period = REACH[kernel] * bandwidth, 2 * (high - low)
    far = ceil(reach / period) + 1
    shifts = [k * period for k in range(-far, far + 1)]
    places = np.concatenate([image + shift for image in (scores, 2 * low - scores) for shift in shifts])
    origin = np.tile(np.arange(len(scores)), 2 * len(shifts))
    near = (places >= low - reach) & (places <= high + reach)
    return places[near], origin[near]


def density(scores, outcomes, *, bandwidth, kernel="triweight", support=(0, 1), weights=None, at):
    """f and pi1 f1 at the given points."""
    outcomes = np.asarray(outcomes, dtype=float)
    weights = np.ones(len(outcomes)) if weights is None else np.asarray(weights, dtype=float)
    weights = weights / weights.sum()
    places, origin = images(scores, bandwidth, kernel, support)
    whole, positive = [], []
    for point in np.atleast_1d(np.asarray(at, dtype=float)):
        heights = KERNELS[kernel]((point - places) / bandwidth) / bandwidth
        whole.append(heights @ weights[origin])
        positive.append(heights @ (weights * outcomes)[origin])
    return np.array(whole), np.array(positive)


def panels(scores, bandwidth, kernel, support):
    """Ends of the pieces on which the densities are smooth and a short Gauss rule is exact enough."""
    low, high = support
    ends = np.linspace(low, high, 2 + ceil((high - low) / (bandwidth / 4)))
    if kernel in ("epanechnikov", "cosine"):  # kinks where a kernel ends
        places, _ = images(scores, bandwidth, kernel, support)
        kinks = np.concatenate([places - REACH[kernel] * bandwidth, places + REACH[kernel] * bandwidth])
        ends = np.concatenate([ends, kinks[(kinks > low) & (kinks < high)]])
    return np.unique(ends)


def ece_density(
    scores, outcomes, *, bandwidth, kernel="triweight", support=(0, 1), weights=None, norm="l1", defined=1e-3
):
    """Integral of |pi1 f1 - s f|; root of the integral of its square over f; maximum of |pi1 f1 / f - s|.

    The maximum is taken over a grid of 10000 steps or more, where n h f is at least `defined`. A bandwidth
    of 0 stands for scores without spread, whose error is |mean residual|.
    """
    outcomes = np.asarray(outcomes, dtype=float)
    sample = binned.rows(scores, outcomes, weights)
    if bandwidth == 0:
        return float(abs(sum(w * (y - Fraction(s)) for s, y, w in sample) / sum(w for _, _, w in sample)))

    def parts(at):
        return density(
            scores, outcomes, bandwidth=bandwidth, kernel=kernel, support=support, weights=weights, at=at
        )

    def excess(at):
        whole, positive = parts(at)
        return positive - np.atleast_1d(at) * whole

    if norm == "max":
        at = np.linspace(*support, 1 + max(10000, ceil(100 * (support[1] - support[0]) / bandwidth)))
        whole, positive = parts(at)
        seen = binned.effective_size(sample) * bandwidth * whole >= defined
        return float(np.max(np.abs(positive[seen] / whole[seen] - at[seen])))

    ends = panels(scores, bandwidth, kernel, support)
    if norm == "l1":
        ends = split_at_sign_changes(excess, ends)
    middle, half = (ends[1:] + ends[:-1]) / 2, (ends[1:] - ends[:-1]) / 2
    at = (middle[:, None] + half[:, None] * NODES).ravel()
    share = (half[:, None] * WEIGHTS).ravel()
    if norm == "l1":
        return float(np.abs(excess(at)) @ share)
    whole, positive = parts(at)
    gap = np.divide(positive, whole, out=at.copy(), where=whole > 0) - at
    return sqrt(gap**2 * whole @ share)


def split_at_sign_changes(function, ends):
    """The ends, and the zeros of the function seen between them."""
    fine = np.unique(np.concatenate([ends, (ends[1:] + ends[:-1]) / 2]))
    values = function(fine)
    roots = list(fine[values == 0])
    for j in range(len(fine) - 1):
        if values[j] * values[j + 1] < 0:
            roots.append(brentq(lambda s: function(s)[0], fine[j], fine[j + 1], xtol=1e-12))
    return np.unique(np.concatenate([ends, roots]))


def silverman(scores, weights=None):
    """min(sd, IQR / 1.349) (0.75 n)^(-1/5); without an IQR the 1-99 % range; without that 0."""
    sample = binned.rows(scores, np.zeros(len(scores)), weights)
    quartiles = quantile(sample, Fraction(3, 4)) - quantile(sample, Fraction(1, 4))
    percentiles = quantile(sample, Fraction(99, 100)) - quantile(sample, Fraction(1, 100))
    if percentiles == 0:
        return 0.0
    if quartiles == 0:
        spread = float(percentiles) / RANGE_1_99_OF_NORMAL
    else:
        spread = min(standard_deviation(sample), float(quartiles) / IQR_OF_NORMAL)
    return spread * (0.75 * float(binned.effective_size(sample))) ** (-1 / 5)


def scott(scores, weights=None):
    """sd n^(-1/5); 0 without spread."""
    sample = binned.rows(scores, np.zeros(len(scores)), weights)
    if sample[0][0] == sample[-1][0]:
        return 0.0
    return standard_deviation(sample) * float(binned.effective_size(sample)) ** (-1 / 5)


def standard_deviation(sample):
    """Root of the variance about the mean, by n - 1."""
    size, total = binned.effective_size(sample), sum(w for _, _, w in sample)
    mean = sum(w * Fraction(s) for s, _, w in sample) / total
    variance = sum(w * (Fraction(s) - mean) ** 2 for s, _, w in sample) / total
    return sqrt(variance * size / (size - 1))


def quantile(sample, q):
    """Linear interpolation between the order statistics around position q (n - 1), as a fraction."""
    position = q * (binned.effective_size(sample) - 1)
    rank, steps = floor(position), binned.ladder(sample)
    below = Fraction(binned.order_statistic(steps, rank))
    above = Fraction(binned.order_statistic(steps, rank + 1))
    return below + (position - rank) * (above - below)
