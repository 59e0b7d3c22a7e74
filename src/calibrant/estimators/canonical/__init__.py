"""Estimators of canonical calibration, which compare score vectors: one file each, found by name."""
