"""Calibration maps: from scores to probabilities.

The methods are described in docs/methods/calibrators.md.
"""

from calibrant.maps.calibrator import Calibrator, calibrator_names

__all__ = ["Calibrator", "calibrator_names"]
