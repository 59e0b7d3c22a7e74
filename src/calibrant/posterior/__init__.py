"""Posterior of the calibration gap: the model behind the default estimator.

See docs/methods/default-estimator.md. The subpackages hold the model of the calibration curve (`log_odds`)
and of canonical calibration (`softmax`).
"""

from calibrant.posterior.gap import Points, Posterior, posterior_of

__all__ = ["Points", "Posterior", "posterior_of"]
