"""Calibration maps: from scores to probabilities.

The methods are described in docs/methods/calibrators.md.
"""

from calibrant.maps.calibrator import Calibrator, NotFittedError, calibrator_names

__all__ = ["Calibrator", "NotFittedError", "calibrator_names"]
