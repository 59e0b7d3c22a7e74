"""What rows of scores of all classes stand for: a softmax whose blocks are weighed by their evidence."""

from calibrant.posterior.softmax.blocks import FEW, Blocks
from calibrant.posterior.softmax.error import NORMS, CanonicalError
from calibrant.posterior.softmax.fit import SoftmaxPosterior

__all__ = ["FEW", "NORMS", "Blocks", "CanonicalError", "SoftmaxPosterior"]
