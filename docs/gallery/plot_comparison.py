"""
Comparison of models
====================

Calibration errors with intervals, and paired differences to a baseline.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
p = rng.beta(0.7, 0.7, 2000)
y_true = rng.random(2000) < p
scores = {"calibrated": p, "too high": p**0.7, "too extreme": p**1.5 / (p**1.5 + (1 - p) ** 1.5)}

calibrant.compare(y_true, scores, baseline="calibrated").plot()
