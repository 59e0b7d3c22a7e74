"""
Several models
==============

One curve for each model, on the same rows.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
p = rng.beta(0.7, 0.7, 2000)
y_true = rng.random(2000) < p
scores = {"too extreme": p**2 / (p**2 + (1 - p) ** 2), "too high": p**0.6, "calibrated": p}

calibrant.plot.models({name: calibrant.reliability_curve(y_true, score) for name, score in scores.items()})
