"""Estimators of the calibration of whole vectors of scores: one file each, found by name in the registry."""
