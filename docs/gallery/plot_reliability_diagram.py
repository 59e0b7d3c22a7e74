"""
Reliability diagram
===================

Frequencies in ten bins of equal width, with intervals. The area of a marker grows with the number of rows.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
y_prob = rng.beta(0.7, 0.7, 2000)
y_true = rng.random(2000) < y_prob**1.6

calibrant.reliability_diagram(y_true, y_prob, binning="uniform:10").plot()
