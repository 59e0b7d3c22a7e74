"""Calibration maps: from scores to probabilities."""

from calibrant.maps.calibrator import Calibrator, NotFittedError, calibrator_names

__all__ = ["Calibrator", "NotFittedError", "calibrator_names"]
