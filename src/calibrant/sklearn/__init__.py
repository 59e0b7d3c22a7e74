"""calibrant where scikit-learn looks for it: a scorer for model selection, a display, a calibrated model.

Import it by name, `import calibrant.sklearn`; it needs scikit-learn 1.6 or later. scikit-learn keeps the
names of its scorers to itself, so there is no `scoring="neg_ece"`: pass `scoring=neg_ece_scorer()`.
"""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError("calibrant.sklearn needs scikit-learn: pip install 'calibrant[sklearn]'") from error

from calibrant.sklearn.calibrated import CalibratedModel
from calibrant.sklearn.display import ReliabilityDisplay
from calibrant.sklearn.scorer import neg_ece_scorer

__all__ = ["CalibratedModel", "ReliabilityDisplay", "neg_ece_scorer"]


def __dir__() -> list[str]:
    return sorted(__all__)
