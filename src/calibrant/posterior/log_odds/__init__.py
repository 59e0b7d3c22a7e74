"""What the data say about the frequency at each score: an average over ways in which scores go wrong."""

from calibrant.posterior.log_odds.cells import OddsCells
from calibrant.posterior.log_odds.model_average import Mixture, model_average, smooth_average

__all__ = ["Mixture", "OddsCells", "model_average", "smooth_average"]
