"""
Groups
======

The signed gap of each group, with the range that is expected if the model is calibrated.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
y_prob = rng.beta(1, 2, 6000)
country = rng.choice(["Chile", "India", "Kenya", "Norway", "Peru"], 6000)
shift = np.where(country == "Kenya", 0.08, np.where(country == "Peru", -0.08, 0.0))
y_true = rng.random(6000) < np.clip(y_prob + shift, 0, 1)

calibrant.plot.groups(calibrant.assess(y_true, y_prob, groups=country))
