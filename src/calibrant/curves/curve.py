"""What a caller gets back: the reliability curve and the reliability diagram.

Each is made from the fit that gave the number beside it, and draws itself through
`calibrant.plot`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from calibrant import inputs
from calibrant.evidence import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Progress = Callable[[int, int], None]
BANDS = ("corrected", "bootstrap")
HISTOGRAM_CELLS = 50


@dataclass(frozen=True)
class Point:
    """A reliability curve at given scores; arrays have the shape of the scores asked for."""

    probability: Any
    low: Any
    high: Any
    n_eff: Any


@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """What a score really means: the frequency of the outcome at every score.

    Attributes
    ----------
    score : array
        The grid.
    probability : array
        Frequency of the outcome at each score: the bootstrap median, or without bootstraps the
        full-sample curve; NaN where there is no data.
    point : array
        The full-sample curve.
    low, high : array or None
        Band of the true frequency at `level`, pointwise, within [0, 1] and around `probability`; NaN
        where that is. See `band`.
    band : str or None
        "corrected": the band accounts for the bias of smoothing (see `calibrant.curves.band`), with or
        without bootstraps. It is widened to hold `probability`, which happens where the curve is
        smoothed too much. "bootstrap": quantiles of the resampled curves, the paper's band, which
        show the noise alone. None where there is no band.
    density : array
        Density of the scores.
    n_eff : array
        Effective number of rows that speak at each score.
    lce : array
        Local calibration error, `probability - score`.
    bandwidth, floored : float, bool
        Bandwidth used, and whether the rule asked for less than the narrowest one (.0003); of a curve
        by rank (kernel "ranks"), that of its `density`.
    error : float
        The expected calibration error of the same fit.
    """

    score: Array
    probability: Array
    point: Array
    low: Array | None
    high: Array | None
    density: Array
    n_eff: Array
    bandwidth: float
    floored: bool
    kernel: str
    support: tuple[float, float]
    histogram: tuple[Array, Array]
    error: float
    n: float
    n_boot: int
    level: float
    notion: str
    label: Any = None
    band: str | None = None

    @property
    def lce(self) -> Array:
        """Local calibration error: frequency minus score."""
        return self.probability - self.score

    def at(self, scores: Any) -> Point:
        """Read the curve off at given scores; NaN where there is no data.

        Parameters
        ----------
        scores : float or array
            Scores in [0, 1].
        """
        place = inputs.scores("scores", scores)

        def read(values: Array | None) -> Any:
            if values is None:
                return np.full(place.shape, np.nan)[()]
            found = np.interp(place, self.score, values)
            # Between the walls and the outermost nodes the curve goes on; beyond the walls not.
            low, high = self.support
            return np.where((place >= low) & (place <= high), found, np.nan)[()]

        return Point(read(self.probability), read(self.low), read(self.high), read(self.n_eff))

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the curve with its band and the histogram of scores; see `calibrant.plot.curve`."""
        from calibrant import plot

        return plot.curve(self, ax, **options)

    def __repr__(self) -> str:
        band = f", {self.level:.0%} {self.band} band" if self.band else ""
        band += f", {self.n_boot} resamples" if self.n_boot else ""
        how = "by rank" if self.kernel == "ranks" else f"{self.kernel} bandwidth {self.bandwidth:.3g}"
        return f"ReliabilityCurve({_what(self)}, {how}{band})"


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram:
    """Mean score against frequency in each bin.

    Attributes
    ----------
    edges : array
        One more than there are bins.
    score, frequency : arrays
        Mean score and share of positive outcomes; NaN in a bin without mass.
    count : array
        Rows in each bin; under importance weights the effective number, (sum w)^2 / sum w^2 of the
        bin. (A sketch knows only the sum of all squared weights and spreads it evenly.)
    low, high : arrays
        Interval of the frequency at `level`.
    error : float
        The expected calibration error of the same bins.
    """

    edges: Array
    score: Array
    frequency: Array
    count: Array
    low: Array
    high: Array
    histogram: tuple[Array, Array]
    error: float
    n: float
    level: float
    estimator: str
    interval: str
    notion: str
    support: tuple[float, float]
    label: Any = None

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the bins with their bars and the histogram of scores; see `calibrant.plot.diagram`."""
        from calibrant import plot

        return plot.diagram(self, ax, **options)

    def __repr__(self) -> str:
        return f"ReliabilityDiagram({_what(self)}, {self.estimator}, {self.level:.0%} {self.interval} bars)"


Result = TypeVar("Result")


class ByClass(Mapping[Any, Result], Generic[Result]):
    """One result for each class, in the order of the columns."""

    def __init__(self, results: dict[Any, Result]) -> None:
        self._results = results

    def __getitem__(self, label: Any) -> Result:
        return self._results[label]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def plot(self, axes: Any = None, **options: Any) -> Any:
        """Draw one small panel for each class; see `calibrant.plot.small_multiples`."""
        from calibrant import plot

        results: Mapping[Any, Any] = self
        return plot.small_multiples(results, axes, **options)

    def __repr__(self) -> str:
        return "\n".join(f"{label!r}: {result!r}" for label, result in self.items())


def _what(result: ReliabilityCurve | ReliabilityDiagram) -> str:
    about = result.notion if result.label is None else f"{result.notion} {result.label!r}"
    return f"{about}, n={result.n:.6g}, ECE {result.error:.4f}"
