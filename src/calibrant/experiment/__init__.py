"""The paper's experiment: estimators measured against ground truth.

>>> from calibrant import experiment
>>> len(experiment.PRESETS["paper"].tasks())
540
"""

from calibrant.experiment.distributions import Distribution, Mixture
from calibrant.experiment.models import FAMILIES
from calibrant.experiment.procedure import PRESETS, SIZES, Result, Settings, Task, compute
from calibrant.experiment.store import Store, run
from calibrant.experiment.summary import Summary
from calibrant.experiment.truth import Truth, exact_error

__all__ = [
    "FAMILIES",
    "PRESETS",
    "SIZES",
    "Distribution",
    "Mixture",
    "Result",
    "Settings",
    "Store",
    "Summary",
    "Task",
    "Truth",
    "compute",
    "exact_error",
    "run",
]


def __dir__() -> list[str]:
    return sorted(__all__)
