"""Intervals, null distributions, tests and comparisons of the calibration error."""
