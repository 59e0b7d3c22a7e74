"""What the data say about the gap between score and frequency."""

from calibrant.posterior.gap import Points, Posterior, posterior_of

__all__ = ["Points", "Posterior", "posterior_of"]
