"""Posterior of P(y = 1 | s) on the log-odds scale: a Bayesian model average.

See docs/methods/calibration-curve.md.
"""

from calibrant.posterior.log_odds.cells import OddsCells
from calibrant.posterior.log_odds.model_average import Mixture, model_average, smooth_average

__all__ = ["Mixture", "OddsCells", "model_average", "smooth_average"]
