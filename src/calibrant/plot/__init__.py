"""Pictures of results: nothing is computed here, only laid out.

Every function draws on the Axes it is given, or on one new figure, and returns the main panel. Colours differ
in lightness and marks in shape, so that a picture survives a grey print. matplotlib is imported on use.
"""

from calibrant.plot.decisions import risk_coverage
from calibrant.plot.forest import comparison, estimators, groups
from calibrant.plot.grid import small_multiples, taken
from calibrant.plot.reliability import curve, diagram, local_error, models, overlay
from calibrant.plot.scores import score_histograms

__all__ = [
    "comparison",
    "curve",
    "diagram",
    "estimators",
    "groups",
    "local_error",
    "models",
    "overlay",
    "risk_coverage",
    "score_histograms",
    "small_multiples",
    "taken",
]


def __dir__() -> list[str]:
    return sorted(__all__)
