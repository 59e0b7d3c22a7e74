"""What the data say about the gap between score and frequency."""

from calibrant.posterior.gap import Posterior, posterior_of

__all__ = ["Posterior", "posterior_of"]
