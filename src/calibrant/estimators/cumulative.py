"""Cumulative calibration errors, without bins, kernel or parameter."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np

from calibrant.estimators.base import Entry, Estimator, Fit, Norm, refuse_parameter
from calibrant.inputs import check_choice
from calibrant.score_data import Array, ScoreData

# Short name and summary of each statistic.
STATISTICS = {
    "ks": ("ks", "cumulative, largest; own measure"),
    "kuiper": ("ku", "cumulative, range; own measure"),
}


@dataclass(frozen=True, eq=False)
class CumulativeFit(Fit):
    """Cumulative sums of the residuals.

    Attributes
    ----------
    walk : array
        Sum of outcome minus score up to the end of each tie group, over the mass of all rows.
    """

    estimator: Cumulative
    walk: Array

    def _error(self, norm: Norm) -> Array:
        """Return the largest absolute cumulative sum (ks), or the range of the sums (kuiper)."""
        high, low = np.maximum(self.walk.max(axis=-1), 0.0), np.minimum(self.walk.min(axis=-1), 0.0)
        return np.maximum(high, -low) if self.estimator.statistic == "ks" else high - low


@dataclass(frozen=True)
class Cumulative(Estimator):
    """Cumulative calibration errors (Arrieta-Ibarra et al. 2022): their ECCE-MAD and ECCE-R.

    This is not the ECE: gaps of opposite sign cancel, so it is smaller than the ECE and does not converge to
    it, unless all gaps have the same sign. Residuals are summed in score order, and the sums are evaluated at
    the ends of tie groups. The range ("kuiper") is an upper bound of the gain from any increasing
    recalibration on these rows, for any binary decision whose costs of a false positive and of a false
    negative sum to one.

    Parameters
    ----------
    statistic : {"ks", "kuiper"}
        Largest distance of the sums from zero, or their range.

    See Also
    --------
    Bayes : The default estimator.
    estimator_names : Names of all estimators.
    ece : Calibration error by any estimator.

    Examples
    --------
    >>> from calibrant.score_data import Sample
    >>> sample = Sample(np.array([0.2, 0.4, 0.6]), np.array([False, True, False]))
    >>> Cumulative("ks").fit(sample).error().round(6), Cumulative("kuiper").fit(sample).error().round(6)
    (np.float64(0.133333), np.float64(0.2))
    """

    statistic: Literal["ks", "kuiper"] = "ks"

    norms: ClassVar[tuple[Norm, ...]] = ("l1",)
    measures_ece = False

    def __post_init__(self) -> None:
        check_choice("statistic", self.statistic, tuple(STATISTICS))

    @classmethod
    def entries(cls) -> tuple[Entry, ...]:
        """Return an entry for each statistic."""
        return tuple(
            Entry(name, short, cls.parameter, summary, partial(cls.parse, statistic=name))
            for name, (short, summary) in STATISTICS.items()
        )

    @classmethod
    def parse(cls, parameter: str | None, statistic: Any = "ks") -> Self:
        """Make the estimator of a statistic, which has no parameter."""
        refuse_parameter(statistic, parameter)
        return cls(statistic)

    def __str__(self) -> str:
        return self.statistic

    def fit(self, data: ScoreData) -> CumulativeFit:
        """Sum the residuals in score order."""
        bins = data.tie_groups().bins
        return CumulativeFit(self, np.cumsum(bins.residual, axis=-1) / bins.w.sum(axis=-1, keepdims=True))
