"""SmoothECE: the error of smoothed residuals, with a bandwidth equal to the error itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from calibrant.estimators.base import Estimator, Norm, ValueFit
from calibrant.estimators.binned import spread
from calibrant.estimators.smoothing import NARROWEST, STEP, steps
from calibrant.score_data import Array, ScoreData
from calibrant.score_data.kernels import gain

ROUNDS = 80
# From this bandwidth on the coarser grid is fine enough.
COARSE_FROM = 4 * STEP


@dataclass(frozen=True, eq=False)
class GridResiduals:
    """Residuals of a batch on a grid over [0, 1], ready to be smoothed with any bandwidth."""

    spectrum: Array

    @classmethod
    def of(cls, data: ScoreData, step: float) -> GridResiduals:
        """Bin linearly onto midpoints and transform; the cosine transform reflects at both boundaries."""
        from scipy.fft import dct, next_fast_len

        points = next_fast_len(round(1 / step), real=True)
        bins = spread(data, (np.arange(points) + 0.5) / points)
        residual = bins.residual / bins.w.sum(axis=-1, keepdims=True)
        return cls(dct(residual).reshape(-1, points))

    def error(self, bandwidth: Array, rows: Array) -> Array:
        """Integrate the absolute smoothed residual of some problems."""
        from scipy.fft import idct

        factor = gain("gaussian", bandwidth, self.spectrum.shape[-1], 1.0)
        return np.abs(idct(self.spectrum[rows] * factor, overwrite_x=True)).sum(axis=-1)

    def fixed_point(self, rows: Array, low: float, high: Array) -> Array:
        """Return the errors at the bandwidths (at least `low`) that equal the error.

        The error falls as the bandwidth grows, so there is a single solution. It is bracketed and found by
        the Illinois method of false position.
        """
        a, b = np.full(rows.size, low), np.maximum(high, low)
        fa, fb = self.error(a, rows) - a, self.error(b, rows) - b
        floor, at, last = fa <= 0, a.copy(), np.zeros(rows.size)
        for _ in range(ROUNDS):
            span = fa - fb
            c = np.where(span > 0, (a * -fb + b * fa) / np.where(span > 0, span, 1.0), (a + b) / 2)
            c = np.where(floor, low, np.clip(c, a, b))
            fc = self.error(c, rows) - c
            at, right = c, fc <= 0
            if np.all(floor | (np.abs(fc) <= 1e-13) | (b - a <= 1e-13)):
                break
            # An end that stays twice counts half, or the other one would creep.
            side = np.where(right, 1.0, -1.0)
            fa = np.where(right, np.where(side == last, fa / 2, fa), fc)
            fb = np.where(right, fc, np.where(side == last, fb / 2, fb))
            a, b, last = np.where(right, a, c), np.where(right, c, b), side
        return fc + at


@dataclass(frozen=True)
class Smooth(Estimator):
    """SmoothECE (Blasiok and Nakkiran 2024): the integral of the absolute smoothed residual.

    This is not the ECE and does not converge to it. The kernel is a Gaussian reflected at 0 and 1, and its
    standard deviation equals the resulting error. Gaps of opposite sign within that distance cancel. The
    range of the scores is always [0, 1], also for confidences.

    See Also
    --------
    Bayes : The default estimator.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> fit = Smooth().fit(Sample(np.array([0.2, 0.4, 0.9]), np.array([False, False, False])))
    >>> fit.error().round(6)
    np.float64(0.5)
    """

    name = "smooth"
    short = "sm"
    summary = "SmoothECE: own measure, not the ECE"
    norms: ClassVar[tuple[Norm, ...]] = ("l1",)
    measures_ece = False

    def fit(self, data: ScoreData) -> ValueFit:
        """Compute the fixed point of every problem; only small errors need the fine grid."""
        rows = np.arange(int(np.prod(data.batch, dtype=np.intp)))
        coarse = GridResiduals.of(data, STEP)
        high = np.ones(rows.size)
        value = coarse.fixed_point(rows, COARSE_FROM, high)
        narrow = np.flatnonzero(value < COARSE_FROM)
        if narrow.size:
            fine = GridResiduals.of(data, float(steps(np.array(NARROWEST))))
            value[narrow] = fine.fixed_point(narrow, NARROWEST, np.full(narrow.size, COARSE_FROM))
        return ValueFit(self, value.reshape(data.batch))
