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

__all__ = [
    "assess",
    "compare",
    "compare_calibrators",
    "ece",
    "estimate",
    "lce",
    "mce",
    "recommend",
    "reliability_curve",
    "reliability_diagram",
    "score_histogram",
]
