"""calibrant measures how far a classifier's scores are from being probabilities.

>>> import calibrant
>>> round(calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8], estimator="uniform:2"), 4)
0.2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from calibrant._version import __version__ as __version__

if TYPE_CHECKING:
    from calibrant import estimators, published
    from calibrant.api import ece, lce, mce, reliability_curve, reliability_diagram, score_histogram
    from calibrant.assessment import Assessment, assess
    from calibrant.curves.curve import Point, ReliabilityCurve, ReliabilityDiagram
    from calibrant.curves.histogram import ScoreHistogram
    from calibrant.estimators import Bayes, Binned, Density, estimator_names
    from calibrant.inference import Comparison, Estimate
    from calibrant.inference.ranking import Recommendation
    from calibrant.inference.recommendation import recommend
    from calibrant.judge import compare, estimate
    from calibrant.sketch import Sketch

# Where each name lives. It is imported when first asked for, so that the command line starts at once.
_HOME = {
    "Assessment": "calibrant.assessment",
    "Bayes": "calibrant.estimators",
    "Binned": "calibrant.estimators",
    "Comparison": "calibrant.inference",
    "Density": "calibrant.estimators",
    "Estimate": "calibrant.inference",
    "Point": "calibrant.curves.curve",
    "Recommendation": "calibrant.inference.ranking",
    "ReliabilityCurve": "calibrant.curves.curve",
    "ReliabilityDiagram": "calibrant.curves.curve",
    "ScoreHistogram": "calibrant.curves.histogram",
    "Sketch": "calibrant.sketch",
    "assess": "calibrant.assessment",
    "compare": "calibrant.judge",
    "ece": "calibrant.api",
    "estimate": "calibrant.judge",
    "estimator_names": "calibrant.estimators",
    "lce": "calibrant.api",
    "mce": "calibrant.api",
    "recommend": "calibrant.inference.recommendation",
    "reliability_curve": "calibrant.api",
    "reliability_diagram": "calibrant.api",
    "score_histogram": "calibrant.api",
}
_MODULES = ("estimators", "experiment", "plot", "published")

__all__ = [
    "Assessment",
    "Bayes",
    "Binned",
    "Comparison",
    "Density",
    "Estimate",
    "Point",
    "Recommendation",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "ScoreHistogram",
    "Sketch",
    "assess",
    "compare",
    "ece",
    "estimate",
    "estimator_names",
    "estimators",
    "lce",
    "mce",
    "published",
    "recommend",
    "reliability_curve",
    "reliability_diagram",
    "score_histogram",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"calibrant.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
