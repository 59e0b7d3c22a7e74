"""Posterior of P(y = 1 | s) on the log-odds scale: a Bayesian model average.

See docs/methods/calibration-curve.md.
"""

from calibrant.posterior.log_odds.cells import LogOddsCells
from calibrant.posterior.log_odds.model_average import LogOddsMixture, model_average, smooth_average

__all__ = ["LogOddsCells", "LogOddsMixture", "model_average", "smooth_average"]
