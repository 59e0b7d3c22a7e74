"""
Risk-coverage curve
===================

Error rate of the most confident predictions by the share of rows that is kept.
"""

import numpy as np

import calibrant

rng = np.random.default_rng(0)
y_prob = rng.dirichlet([0.4] * 4, 1500)
y_true = (rng.random((1500, 1)) > y_prob.cumsum(axis=1)).sum(axis=1)

calibrant.risk_coverage(y_true, y_prob).plot()
