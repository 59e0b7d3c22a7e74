"""Posterior of canonical calibration: a multinomial logistic model with blocks of coefficients.

See docs/methods/canonical-calibration.md.
"""

from calibrant.posterior.softmax.blocks import FEW, Blocks
from calibrant.posterior.softmax.error import NORMS, CanonicalError
from calibrant.posterior.softmax.fit import SoftmaxPosterior

__all__ = ["FEW", "NORMS", "Blocks", "CanonicalError", "SoftmaxPosterior"]
