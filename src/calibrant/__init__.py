"""calibrant measures how far a classifier's scores are from being probabilities.

>>> import calibrant
>>> round(calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8], estimator="uniform:2"), 4)
0.2
"""

from calibrant import published
from calibrant.api import ece, lce, mce, reliability_curve, reliability_diagram
from calibrant.estimators import Binned, Density, estimators
from calibrant.results import Point, ReliabilityCurve, ReliabilityDiagram
from calibrant.sketch import Sketch

__version__ = "0.1.0"

__all__ = [
    "Binned",
    "Density",
    "Point",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "Sketch",
    "ece",
    "estimators",
    "lce",
    "mce",
    "published",
    "reliability_curve",
    "reliability_diagram",
]
