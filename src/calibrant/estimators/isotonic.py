"""Distance of the scores from their isotonic regression (pool adjacent violators)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant.estimators.base import Estimator, Fit, Norm, average, positions
from calibrant.score_data import Array, ScoreData


@dataclass(frozen=True, eq=False)
class CurveFit(Fit):
    """A calibration curve at the scores of the sample.

    Attributes
    ----------
    score, frequency, weight : arrays
        Sorted scores, fitted frequencies and weights of the tie groups.
    """

    score: Array
    frequency: Array
    weight: Array

    def _error(self, norm: Norm) -> Array:
        """Return the mean (l1), root mean square (l2) or largest (max) distance of curve and score."""
        return average(self.frequency - self.score, self.weight, norm)


def isotonic(frequency: Array, weight: Array) -> Array:
    """Return the non-decreasing sequence nearest to the frequencies in weighted least squares.

    >>> isotonic(np.array([0.0, 1.0, 0.5]), np.ones(3))
    array([0.  , 0.75, 0.75])
    """
    from scipy.optimize import isotonic_regression

    return np.clip(isotonic_regression(frequency, weights=weight).x, 0.0, 1.0)


@dataclass(frozen=True)
class Isotonic(Estimator):
    """Mean distance of the scores from their isotonic recalibration (CORP, Dimitriadis et al. 2021).

    It has no parameter and no bins, but the curve is fitted to the rows that it is evaluated on. For a
    calibrated model it is biased upwards, by an amount of order n^(-1/3).

    See Also
    --------
    Beta : Distance from the beta calibration curve.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> sample = Sample(np.array([0.2, 0.4, 0.6, 0.9]), np.array([False, True, False, True]))
    >>> fit = Isotonic().fit(sample)
    >>> fit.frequency
    array([0. , 0.5, 0.5, 1. ])
    >>> fit.error().round(6)
    np.float64(0.125)
    """

    name = "isotonic"
    short = "iso"
    summary = "isotonic curve (CORP)"

    def fit(self, data: ScoreData) -> CurveFit:
        """Pool tied scores, then adjacent violators."""
        tie_groups = data.tie_groups()
        score = positions(tie_groups)
        frequency = score.copy()
        for entry in np.ndindex(data.batch):
            occupied = tie_groups.w[entry] > 0
            w, wy = tie_groups.w[entry][occupied], tie_groups.wy[entry][occupied]
            frequency[entry][occupied] = isotonic(wy / w, w)
        return CurveFit(self, score, frequency, tie_groups.w)
