"""Calibration maps: from scores to probabilities."""

from calibrant.maps.calibrator import Calibrator, calibrator_names

__all__ = ["Calibrator", "calibrator_names"]
