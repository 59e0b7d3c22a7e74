"""calibrant measures how far a classifier's scores are from being probabilities.

>>> import calibrant
>>> round(calibrant.ece([0, 1, 1], [0.1, 0.7, 0.8], estimator="uniform:2"), 4)
0.2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant import experiment, plot, published
    from calibrant.api.calibration import (
        assess,
        ece,
        estimate,
        lce,
        mce,
        recommend,
        reliability_curve,
        reliability_diagram,
        score_histogram,
    )
    from calibrant.api.comparison import compare, compare_calibrators
    from calibrant.api.decisions import best_threshold, net_benefit, regret, regret_curve, risk_coverage
    from calibrant.api.tables import audit, estimate_by
    from calibrant.assessment import Assessment
    from calibrant.compiled.versions import show_versions
    from calibrant.curves import Point, ReliabilityCurve, ReliabilityDiagram, ScoreHistogram
    from calibrant.data.answer_logs import read_answers
    from calibrant.decisions import BestThreshold, Cost, NetBenefit, Regret, RegretCurve, RiskCoverage
    from calibrant.estimators import estimator_names
    from calibrant.estimators.bayes import Bayes
    from calibrant.estimators.beta import Beta
    from calibrant.estimators.beta_kernel import BetaKernel
    from calibrant.estimators.binned import Binned
    from calibrant.estimators.cumulative import Cumulative
    from calibrant.estimators.debiased import Debiased
    from calibrant.estimators.density import Density
    from calibrant.estimators.density_beta import DensityBeta
    from calibrant.estimators.isotonic import Isotonic
    from calibrant.estimators.smooth import Smooth
    from calibrant.estimators.sweep import Sweep
    from calibrant.estimators.variational import Variational
    from calibrant.inference.audit import SegmentAudit
    from calibrant.inference.comparison import Comparison
    from calibrant.inference.map_comparison import MapComparison
    from calibrant.inference.recommendation import Recommendation
    from calibrant.inference.result import Estimate
    from calibrant.inference.segments import Segment
    from calibrant.inference.table import EstimateTable
    from calibrant.inputs import InputError, InputTypeError, InputWarning
    from calibrant.maps import Calibrator, PriorShift, calibrator_names
    from calibrant.monitor import Monitor
    from calibrant.sketch import Sketch

    __version__: str

_PACKAGES = {
    "calibrant.api.calibration": (
        *("assess", "ece", "estimate", "lce", "mce", "recommend"),
        *("reliability_curve", "reliability_diagram", "score_histogram"),
    ),
    "calibrant.api.comparison": ("compare", "compare_calibrators"),
    "calibrant.api.decisions": ("best_threshold", "net_benefit", "regret", "regret_curve", "risk_coverage"),
    "calibrant.api.tables": ("audit", "estimate_by"),
    "calibrant.assessment": ("Assessment",),
    "calibrant.compiled.versions": ("show_versions",),
    "calibrant.curves": ("Point", "ReliabilityCurve", "ReliabilityDiagram", "ScoreHistogram"),
    "calibrant.data.answer_logs": ("read_answers",),
    "calibrant.decisions": ("BestThreshold", "Cost", "NetBenefit", "Regret", "RegretCurve", "RiskCoverage"),
    "calibrant.inference.audit": ("SegmentAudit",),
    "calibrant.inference.comparison": ("Comparison",),
    "calibrant.inference.map_comparison": ("MapComparison",),
    "calibrant.inference.recommendation": ("Recommendation",),
    "calibrant.inference.result": ("Estimate",),
    "calibrant.inference.segments": ("Segment",),
    "calibrant.inference.table": ("EstimateTable",),
    "calibrant.inputs": ("InputError", "InputTypeError", "InputWarning"),
    "calibrant.maps": ("Calibrator", "PriorShift", "calibrator_names"),
    "calibrant.monitor": ("Monitor",),
    "calibrant.sketch": ("Sketch",),
}
# The package of each name; all others are those of `calibrant.estimators`. A name is imported when it is
# first asked for, so that the command line starts at once.
_HOME = {name: package for package, names in _PACKAGES.items() for name in names}
_MODULES = ("experiment", "plot", "published")

__all__ = [
    "Assessment",
    "Bayes",
    "BestThreshold",
    "Beta",
    "BetaKernel",
    "Binned",
    "Calibrator",
    "Comparison",
    "Cost",
    "Cumulative",
    "Debiased",
    "Density",
    "DensityBeta",
    "Estimate",
    "EstimateTable",
    "InputError",
    "InputTypeError",
    "InputWarning",
    "Isotonic",
    "MapComparison",
    "Monitor",
    "NetBenefit",
    "Point",
    "PriorShift",
    "Recommendation",
    "Regret",
    "RegretCurve",
    "ReliabilityCurve",
    "ReliabilityDiagram",
    "RiskCoverage",
    "ScoreHistogram",
    "Segment",
    "SegmentAudit",
    "Sketch",
    "Smooth",
    "Sweep",
    "Variational",
    "assess",
    "audit",
    "best_threshold",
    "calibrator_names",
    "compare",
    "compare_calibrators",
    "ece",
    "estimate",
    "estimate_by",
    "estimator_names",
    "experiment",
    "lce",
    "mce",
    "net_benefit",
    "plot",
    "published",
    "read_answers",
    "recommend",
    "regret",
    "regret_curve",
    "reliability_curve",
    "reliability_diagram",
    "risk_coverage",
    "score_histogram",
    "show_versions",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"calibrant.{name}")
    if name == "__version__":
        return import_module("importlib.metadata").version("calibrant")
    if name not in __all__:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME.get(name, "calibrant.estimators")), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
