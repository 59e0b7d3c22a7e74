"""Calibration maps: from scores to probabilities."""
