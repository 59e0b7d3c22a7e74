"""The beta calibration curve: three parameters by maximum likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.estimators.base import Estimator, positions
from calibrant.estimators.isotonic import CurveFit
from calibrant.score_data import Array, ScoreData

# Logarithms stop here, so a score of 0 or 1 stays finite.
LEAST = 1e-12
# Pull towards the identity, in units of the mean log loss: separable outcomes get a finite curve.
RIDGE = 1e-6
STEPS = 200
IDENTITY = np.array([1.0, 1.0, 0.0])
# The full curve, and the faces of the domain a, b >= 0.
FACES = ((1, 1, 1), (0, 1, 1), (1, 0, 1), (0, 0, 1))


@dataclass(frozen=True, eq=False)
class BetaFit(CurveFit):
    """The curve at the scores of the sample, and its coefficients a, b, c on the last axis.

    If all outcomes are equal, the likelihood has no maximum: the curve is that outcome, and the coefficients
    are NaN.
    """

    coefficients: Array


def features(score: Array) -> Array:
    """Stack ln p, -ln(1 - p) and 1 on a new last axis.

    >>> features(np.array([0.5])).round(4)
    array([[-0.6931,  0.6931,  1.    ]])
    """
    low, high = np.maximum(score, LEAST), np.maximum(1 - score, LEAST)
    return np.stack([np.log(low), -np.log(high), np.ones(score.shape)], axis=-1)


def maximise(x: Array, mass: Array, positive: Array, face: tuple[int, ...]) -> tuple[Array, Array]:
    """Find the coefficients on a face for each row of a batch, and the penalised mean log loss there."""
    from scipy.special import expit

    free = np.array(face, dtype=float)
    theta = np.broadcast_to(IDENTITY * free, (x.shape[0], 3)).copy()

    def loss(theta: Array) -> Array:
        z = np.einsum("rmk,rk->rm", x, theta)
        fit = (mass * np.logaddexp(0.0, z) - positive * z).sum(axis=-1)
        return fit + RIDGE / 2 * ((theta - IDENTITY) ** 2).sum(axis=-1)

    value = loss(theta)
    for _ in range(STEPS):
        q = expit(np.einsum("rmk,rk->rm", x, theta))
        slope = np.einsum("rmk,rm->rk", x, mass * q - positive) + RIDGE * (theta - IDENTITY)
        curvature = np.einsum("rmk,rm,rml->rkl", x, mass * q * (1 - q), x, optimize=True)
        curvature = curvature * free * free[:, None] + np.diag(np.where(free > 0, RIDGE, 1.0))
        step = np.linalg.solve(curvature, (slope * free)[..., None])[..., 0]
        # Newton's step may overshoot where the curve is flat; it is halved until the loss falls.
        size = np.ones(theta.shape[0])
        for _ in range(40):
            trial = loss(theta - size[:, None] * step)
            worse = trial > value + 1e-14
            if not worse.any():
                break
            size[worse] /= 2
        theta, value = theta - size[:, None] * step, trial
        if np.all(np.abs(step) <= 1e-11 * (1 + np.abs(theta))):
            break
    return theta, value


def fit_curve(x: Array, mass: Array, positive: Array) -> Array:
    """Return the coefficients with a, b >= 0; if the optimum violates this, the best boundary face."""
    theta, _ = maximise(x, mass, positive, FACES[0])
    out = np.flatnonzero((theta[:, :2] < 0).any(axis=-1))
    best = np.full(out.size, np.inf)
    for face in FACES[1:] if out.size else ():
        trial, value = maximise(x[out], mass[out], positive[out], face)
        better = (value < best) & (trial[:, :2] >= 0).all(axis=-1)
        theta[out[better]], best[better] = trial[better], value[better]
    return theta


@dataclass(frozen=True)
class Beta(Estimator):
    """Distance of the scores from the beta calibration curve (Kull et al. 2017).

    logit g = a ln p - b ln(1 - p) + c with a, b >= 0, fitted to the rows that it is evaluated on. Three
    parameters have little variance, but gaps of other shapes are missed.

    See Also
    --------
    Isotonic : Distance from the isotonic curve.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(5000)
    >>> fit = Beta().fit(Sample(score, rng.random(5000) < score))
    >>> np.abs(fit.coefficients - [1, 1, 0]).max() < 0.2
    np.True_
    """

    name = "beta"
    short = "bc"
    summary = "beta calibration curve"

    def fit(self, data: ScoreData) -> BetaFit:
        """Maximise the likelihood of the whole batch by Newton's method."""
        from scipy.special import expit

        tie_groups = data.tie_groups()
        shape, size = tie_groups.w.shape, tie_groups.w.shape[-1]
        score = positions(tie_groups)
        total = tie_groups.w.sum(axis=-1, keepdims=True)
        mass, positive = ((array / total).reshape(-1, size) for array in (tie_groups.w, tie_groups.wy))
        x = features(score).reshape(-1, size, 3)
        rate = positive.sum(axis=-1)
        both = (rate > 1e-12) & (rate < 1 - 1e-12)
        theta, curve = np.full((rate.size, 3), np.nan), np.repeat(np.rint(rate)[:, None], size, axis=1)
        if both.any():
            theta[both] = fit_curve(x[both], mass[both], positive[both])
            curve[both] = expit(np.einsum("rmk,rk->rm", x[both], theta[both]))
        return BetaFit(self, score, curve.reshape(shape), tie_groups.w, theta.reshape(*shape[:-1], 3))
