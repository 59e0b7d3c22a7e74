"""Posterior of P(y = 1 | s) on the log-odds scale: a Bayesian model average.

See docs/methods/calibration-curve.md.
"""

from calibrant.posterior.log_odds.cells import LogOddsCells
from calibrant.posterior.log_odds.model_average import (
    FittedComponents,
    LogOddsMixture,
    model_average,
    smooth_average,
)

__all__ = ["FittedComponents", "LogOddsCells", "LogOddsMixture", "model_average", "smooth_average"]
