"""Calibration maps: from scores to probabilities.

The methods are described in docs/methods/calibrators.md.
"""

from calibrant.maps.calibrator import Calibrator, calibrator_names
from calibrant.maps.prior_shift import PriorShift
from calibrant.maps.score_map import NotFittedError

__all__ = ["Calibrator", "NotFittedError", "PriorShift", "calibrator_names"]
