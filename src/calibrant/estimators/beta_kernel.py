"""Leave-one-out kernel regression with beta kernels, whose support is [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log2
from typing import ClassVar, Self

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, average, number_or_text, positions
from calibrant.inputs import InputError, check_choice, is_number
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.beta import log_constant, logs, shapes

NARROWEST = 1e-5
# Candidates for the bandwidth; the likelihood decides.
TRIED = np.geomspace(1e-3, 0.5, 13)
# Up to this many distinct scores all pairs are compared; more are spread onto about as many nodes.
NODES = 1024
# Logit at which nodes end, and the share of nodes that are spaced evenly in it.
MAX_LOG_ODDS, LOGIT_SHARE = 40.0, 0.4
# Less mass than this share of a row's own is no neighbourhood.
ALONE = 1e-9
BLOCK = 256
# Nodes that share a row.
POINTS = 6


@dataclass(frozen=True, eq=False)
class BetaKernelFit(Fit):
    """Gaps of all rows: frequency among the other rows minus score.

    Attributes
    ----------
    gap, weight : arrays
        Gaps of the positive rows of each tie group followed by those of the negative ones, and
        their mass.
    bandwidth : array
        Bandwidth of each problem as used.
    """

    gap: Array
    weight: Array
    bandwidth: Array

    def _error(self, norm: Norm) -> Array:
        """Return the mean (l1) or root mean square (l2) gap over the rows."""
        return average(self.gap, self.weight, norm)


def _place(score: Array) -> Array:
    """Map scores to a scale from 0 to 1 on which nodes are even: dense in the middle, logit at both ends."""
    with np.errstate(divide="ignore"):
        logit = np.clip(np.log(score) - np.log1p(-score), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    arc = np.arcsin(np.sqrt(score)) * 2 / np.pi
    return LOGIT_SHARE * (logit / MAX_LOG_ODDS + 1) / 2 + (1 - LOGIT_SHARE) * arc


def _n_nodes(bandwidth: float) -> int:
    """Return the number of nodes for a bandwidth, a power of two, so that similar bandwidths share nodes."""
    return max(128, 2 ** ceil(log2(NODES * (TRIED[0] / bandwidth) ** 0.5) - 1e-9))


@lru_cache(maxsize=8)
def _nodes(size: int) -> tuple[Array, Array]:
    """Return scores that are about evenly spaced on the scale, and their exact places on it."""
    fine = 1 / (1 + np.exp(-np.linspace(-MAX_LOG_ODDS, MAX_LOG_ODDS, 1 << 14)))
    fine = np.union1d(fine, np.sin(np.linspace(0, np.pi / 2, 1 << 14)) ** 2)
    # Next to 1 floats are too coarse for the scale: nodes that fall together there are one.
    nodes = np.unique(np.interp(np.linspace(0, 1, size), _place(fine), fine))
    place = _place(nodes)
    nodes.flags.writeable = place.flags.writeable = False
    return nodes, place


def _shares(score: Array, place: Array) -> tuple[Array, Array]:
    """Find the nodes around each score, and Lagrange's weights of them, on a new last axis."""
    at = np.clip(_place(score), place[0], place[-1])
    first = np.clip(np.searchsorted(place, at) - POINTS // 2, 0, place.size - POINTS)
    index = first[:, None] + np.arange(POINTS)
    known = place[index]
    share = np.ones(known.shape)
    for i in range(POINTS):
        for j in range(POINTS):
            if i != j:
                share[:, i] *= (at - known[:, j]) / (known[:, i] - known[:, j])
    return index, share


def _sums(at: Array, centre: Array, weights: Array, bandwidth: float) -> Array:
    """Sum several columns of weights under the kernel, a block of places at a time."""
    known, exponent, constant = _kernels(at, centre, bandwidth)
    blocks = (slice(a, a + BLOCK) for a in range(0, at.size, BLOCK))
    return np.concatenate([np.exp(known[block] @ exponent + constant) @ weights for block in blocks])


def _kernels(at: Array, centre: Array, bandwidth: float) -> tuple[Array, Array, Array]:
    """Return logarithms of scores, and of kernels around centres the exponents and log of the constant."""
    a, b = shapes(centre, np.asarray(bandwidth))
    return logs(at, 1 - at), np.stack([a - 1, b - 1]), log_constant(a, b)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The tie groups of one problem: scores, mass, positive mass and mean weight of a row."""

    score: Array
    w: Array
    wy: Array
    row: Array

    def self_kernel(self, bandwidth: float) -> Array:
        """Return the kernel of each score at itself."""
        known, exponent, constant = _kernels(self.score, self.score, bandwidth)
        return np.exp((known * exponent.T).sum(axis=-1) + constant)

    def around(self, bandwidth: float, pairs: int = NODES) -> tuple[Array, Array]:
        """Sum mass and positive mass under the kernel at each score, including its own rows.

        Up to `pairs` distinct scores (or the number of nodes, if larger) all pairs are summed exactly; above
        that, sums are interpolated from nodes.
        """
        size = _n_nodes(bandwidth)
        if self.score.size <= max(size, pairs):
            weights = np.stack([self.w, self.wy], axis=-1)
            mass, positive = _sums(self.score, self.score, weights, bandwidth).T
            return mass, positive
        nodes, place = _nodes(size)
        index, share = _shares(self.score, place)
        spread = [
            np.bincount(index.ravel(), (share * x[:, None]).ravel(), nodes.size) for x in (self.w, self.wy)
        ]
        sums = _sums(nodes, nodes, np.stack(spread, axis=-1), bandwidth)
        kernel_sums = np.einsum("mk,mkc->cm", share, sums[index]).clip(0.0)
        # At 0 and 1 the kernels of all other scores vanish, however near they are.
        self_sums = self.self_kernel(bandwidth) * np.stack([self.w, self.wy])
        mass, positive = np.where(self._inside, kernel_sums, self_sums)
        return mass, positive

    def likelihood(self, bandwidth: float) -> float:
        """Return the mean logarithm of the density of the other rows at each score, up to a constant.

        Scores of 0 and 1 are left out, because the kernels of all other scores vanish there.
        """
        self_kernel = self.row * self.self_kernel(bandwidth)
        others = np.maximum(self.around(bandwidth, pairs=0)[0] - self_kernel, ALONE * self_kernel)
        return float(np.where(self._inside, self.w, 0.0) @ np.log(others) / self.w.sum())

    @property
    def _inside(self) -> Array:
        return (self.score > 0) & (self.score < 1)

    def bandwidth(self) -> float:
        """Return the bandwidth of largest likelihood."""
        if not self._inside.any():
            return float(TRIED[0])
        return likeliest(np.array([self.likelihood(h) for h in TRIED]))

    def gaps(self, bandwidth: float) -> Array:
        """Return the frequency among the other rows minus the score, for positive and for negative rows."""
        mass, positive = self.around(bandwidth)
        self_kernel = self.row * self.self_kernel(bandwidth)
        others = mass - self_kernel
        company = others > ALONE * self_kernel
        others = np.where(company, others, 1.0)
        # A row without neighbours within the kernel width is predicted by its own outcome.
        rates = [np.where(company, (positive - y * self_kernel) / others, y) for y in (1.0, 0.0)]
        return np.clip(rates, 0.0, 1.0) - self.score


def likeliest(value: Array) -> float:
    """Return the candidate of `TRIED` with the largest log likelihood, moved to the vertex of a parabola.

    >>> likeliest(-np.arange(13.0)), round(likeliest(-((np.arange(13) - 4.0) ** 2)) / TRIED[4], 6)
    (0.001, np.float64(1.0))
    """
    best = int(np.argmax(value))
    if not 0 < best < TRIED.size - 1:
        return float(TRIED[best])
    left, top, right = value[best - 1 : best + 2]
    bend = left - 2 * top + right
    move = 0.5 * (left - right) / bend if bend < 0 else 0.0
    return float(TRIED[best] * (TRIED[1] / TRIED[0]) ** move)


def check_bandwidth(bandwidth: float | str) -> None:
    """Raise an error for a bandwidth that is neither "likelihood" nor a number of at least `NARROWEST`."""
    if isinstance(bandwidth, str):
        check_choice("bandwidth", bandwidth, ("likelihood",))
    elif not (is_number(bandwidth) and NARROWEST <= bandwidth < np.inf):
        raise InputError("bandwidth", f"be a number of at least {NARROWEST:g}", bandwidth)


@dataclass(frozen=True)
class BetaKernel(Estimator):
    """Leave-one-out kernel regression with beta kernels (Popordanoska et al. 2022, two classes).

    The frequency at a score f_i is a weighted mean over the other rows. The weight of row j is the density of
    Beta(f_j/h + 1, (1 - f_j)/h + 1) at f_i. Scores may be 0 or 1. The published L2 error is the mean square;
    this is its root. Time is O(m^2) up to about 1,000 distinct scores m, and O(N) above that, where sums are
    interpolated from nodes (gaps agree to about 1e-6).

    Parameters
    ----------
    bandwidth : float or "likelihood"
        h, about (standard deviation of the kernel)^2 / (f (1 - f)). "likelihood" chooses the value between
        .001 and .5 with the largest leave-one-out likelihood of the scores.

    See Also
    --------
    DensityBeta : Densities by beta kernels.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(500)
    >>> fit = BetaKernel(0.02).fit(Sample(score, rng.random(500) < score**2))
    >>> fit.error().round(1)  # true error 1/6
    np.float64(0.2)
    """

    bandwidth: float | str = "likelihood"

    name = "beta-kernel"
    short = "bk"
    parameter = "bandwidth"
    summary = "leave-one-out beta kernels"
    norms: ClassVar[tuple[Norm, ...]] = ("l1", "l2")

    def __post_init__(self) -> None:
        check_bandwidth(self.bandwidth)

    @classmethod
    def parse(cls, parameter: str | None) -> Self:
        """Read the bandwidth."""
        return cls(number_or_text(parameter or "likelihood"))

    def __str__(self) -> str:
        return f"beta-kernel:{self.bandwidth}"

    def fit(self, data: ScoreData) -> BetaKernelFit:
        """Choose the bandwidth of each problem and regress."""
        tie_groups, squares = data.tie_groups(), data.squared().tie_groups()
        score = positions(tie_groups)
        gap = np.zeros((*data.batch, 2, tie_groups.w.shape[-1]))
        bandwidth = np.empty(data.batch)
        for entry in np.ndindex(data.batch):
            occupied = tie_groups.w[entry] > 0
            w, wy, square = (sums[entry][occupied] for sums in (tie_groups.w, tie_groups.wy, squares.w))
            near = Neighbours(score[entry][occupied], w, wy, square / w)
            h = near.bandwidth() if isinstance(self.bandwidth, str) else float(self.bandwidth)
            bandwidth[entry] = h
            gap[entry][:, occupied] = near.gaps(h)
        weight = np.stack([tie_groups.wy, tie_groups.w - tie_groups.wy], axis=-2)
        flat = (*data.batch, -1)
        return BetaKernelFit(self, gap.reshape(flat), weight.reshape(flat), bandwidth)
