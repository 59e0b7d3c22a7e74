"""
Repeated scores
===============

Scores with few values, such as the stated confidence of a language model, are points with one interval each.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
confidence = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0], 1500, p=[0.05, 0.05, 0.1, 0.2, 0.3, 0.2, 0.1])
correct = rng.random(1500) < 0.75 * confidence

calibrant.reliability_curve(correct, confidence, notion="correctness").plot()
