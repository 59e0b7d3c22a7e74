"""Hold the tuned numbers of the methods: what each one means, how it was chosen, and what changing it does.

Numbers that follow from arithmetic (rounding tolerances, chunk sizes) stay beside the code that uses them.
Code reads a setting where it needs it, as an attribute of an instance below, so that a study can change it.
``benchmarks/sensitivity.py`` measures the effect of each setting, and ``docs/methods/settings.md`` shows it.
"""

from dataclasses import dataclass, field
from typing import Any, TypeVar

_Value = TypeVar("_Value")


def setting(default: _Value, meaning: str, study: str, effect: str = "") -> _Value:
    """Return a field of a settings class, with its documentation as metadata.

    Parameters
    ----------
    default : object
        Its value.
    meaning : str
        What it is, in one sentence.
    study : str
        What chose it: a benchmark of this repository, a reference, or "convention".
    effect : str
        What 0.75 and 1.25 times the value change, as ``benchmarks/sensitivity.py`` measured it.
    """
    documentation = {"meaning": meaning, "study": study, "effect": effect}
    made: Any = field(default=default, metadata=documentation)
    return made


# -- posteriors ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PriorSettings:
    """Prior of the calibration gap (package ``posterior``), which the default estimator uses."""


@dataclass(frozen=True)
class LogOddsSettings:
    """Prior of the calibration curve and of the default binary calibrator (``posterior.log_odds``)."""


@dataclass(frozen=True)
class SoftmaxSettings:
    """Prior of canonical calibration and of the default multiclass calibrator (``posterior.softmax``)."""


# -- inference -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IntervalSettings:
    """Confidence intervals and tests (package ``inference``)."""


# -- calibrators, curves, decisions --------------------------------------------------------------------------


@dataclass(frozen=True)
class MapSettings:
    """Calibrators (package ``maps``)."""


@dataclass(frozen=True)
class CurveSettings:
    """Bands of calibration curves (package ``curves``)."""


@dataclass(frozen=True)
class DecisionSettings:
    """Intervals of decision regret (package ``decisions``)."""


PRIOR = PriorSettings()
LOG_ODDS = LogOddsSettings()
SOFTMAX = SoftmaxSettings()
INTERVAL = IntervalSettings()
MAPS = MapSettings()
CURVES = CurveSettings()
DECISIONS = DecisionSettings()
