"""
Decision regret
===============

Cost of acting on the scores instead of calibrated scores, by threshold.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
y_prob = rng.beta(0.7, 1.5, 3000)
y_true = rng.random(3000) < y_prob**1.6

calibrant.regret_curve(y_true, y_prob).plot()
