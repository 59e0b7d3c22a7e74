"""Every public function."""

from calibrant.api.calibration import (
    assess,
    compare,
    compare_calibrators,
    ece,
    estimate,
    lce,
    mce,
    recommend,
    reliability_curve,
    reliability_diagram,
    score_histogram,
)
from calibrant.api.decisions import best_threshold, regret, regret_curve
from calibrant.api.selective import risk_coverage

__all__ = [
    "assess",
    "best_threshold",
    "compare",
    "compare_calibrators",
    "ece",
    "estimate",
    "lce",
    "mce",
    "recommend",
    "regret",
    "regret_curve",
    "reliability_curve",
    "reliability_diagram",
    "risk_coverage",
    "score_histogram",
]
