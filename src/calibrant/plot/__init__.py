"""Pictures of results: nothing is computed here, only laid out.

Every function draws on the Axes it is given, or on one new figure, and returns the main panel. Palette and
words are those of `calibrant.inputs.house_style`. Models and strategies differ in dashes or markers. Sides
(too high, too low) have colours of one lightness, so that in a grey print only the position shows them.
matplotlib is imported on use.
"""

from calibrant.plot.decisions import regret, risk_coverage
from calibrant.plot.forest import compare, estimators, groups, segments
from calibrant.plot.grid import probability_transfer, small_multiples
from calibrant.plot.monitor import monitor
from calibrant.plot.reliability import curve, diagram, local_error, models, overlay
from calibrant.plot.scores import score_histograms

__all__ = [
    "compare",
    "curve",
    "diagram",
    "estimators",
    "groups",
    "local_error",
    "models",
    "monitor",
    "overlay",
    "probability_transfer",
    "regret",
    "risk_coverage",
    "score_histograms",
    "segments",
    "small_multiples",
]


def __dir__() -> list[str]:
    return sorted(__all__)
