"""calibrant measures how far a classifier's scores are from being probabilities.

>>> import calibrant
>>> round(calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8], estimator="uniform:2"), 4)
0.2
"""

from calibrant import published
from calibrant.api import ece, lce, mce, reliability_curve, reliability_diagram
from calibrant.estimators import Bayes, Binned, Density, estimators
from calibrant.inference import Comparison, Estimate
from calibrant.judge import compare, estimate
from calibrant.ranking import Recommendation
from calibrant.recommendation import recommend
from calibrant.results import Point, ReliabilityCurve, ReliabilityDiagram
from calibrant.sketch import Sketch

__version__ = "0.1.0"

__all__ = [
    "Bayes",
    "Binned",
    "Comparison",
    "Density",
    "Estimate",
    "Point",
    "Recommendation",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "Sketch",
    "compare",
    "ece",
    "estimate",
    "estimators",
    "lce",
    "mce",
    "published",
    "recommend",
    "reliability_curve",
    "reliability_diagram",
]
