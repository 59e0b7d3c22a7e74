"""What the data say about the frequency at each score, in log-odds: an average over ways in which scores go wrong."""

from calibrant.posterior.odds.average import Mixture, average
from calibrant.posterior.odds.cells import OddsCells

__all__ = ["Mixture", "OddsCells", "average"]
