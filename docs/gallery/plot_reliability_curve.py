"""
Reliability curve
=================

The frequency at every score with its 95 % band. The colour shows whether scores are too
high, too low, or in line.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
y_prob = rng.beta(0.7, 0.7, 2000)
y_true = rng.random(2000) < y_prob**1.6

calibrant.reliability_curve(y_true, y_prob).plot()
