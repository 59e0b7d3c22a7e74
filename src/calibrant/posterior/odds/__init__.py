"""What the data say about the frequency at each score: an average over ways in which scores go wrong."""

from calibrant.posterior.odds.average import Mixture, average, smooth_average
from calibrant.posterior.odds.cells import OddsCells

__all__ = ["Mixture", "OddsCells", "average", "smooth_average"]
