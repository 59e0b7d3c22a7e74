"""Where the scores lie, apart for the rows that have the outcome and those that have not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.evidence import Array, Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class ScoreHistogram:
    """How many rows have which score, by outcome.

    Attributes
    ----------
    edges : array
        Of cells of equal width, one more than there are cells.
    positive, negative : arrays
        Rows with and without the outcome: of the class or of another, for confidence right or wrong.
        Importance weights are scaled to the effective number of rows.
    notion, label : str, object
        What was asked, and the class asked about, if one was.
    n : float
        Effective number of rows.
    support : pair of floats
        Where scores can lie.
    """

    edges: Array
    positive: Array
    negative: Array
    notion: str
    label: Any
    n: float
    support: tuple[float, float] = (0.0, 1.0)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw one outcome upwards and the other downwards; see `calibrant.plot.score_histograms`."""
        from calibrant import plot

        return plot.score_histograms(self, ax)

    def __repr__(self) -> str:
        about = self.notion if self.label is None else f"{self.notion} {self.label!r}"
        share = self.positive.sum() / self.n
        return f"ScoreHistogram({about}, n={self.n:.6g}, {share:.1%} positive, {self.positive.size} cells)"


def histogram(
    evidence: Evidence, *, bins: int = 50, notion: str = "class", label: Any = None
) -> ScoreHistogram:
    """Count the scores of one problem by outcome.

    >>> from calibrant.evidence import Sample
    >>> found = histogram(Sample(np.array([0.2, 0.7, 0.9]), np.array([False, False, True])), bins=2)
    >>> found.positive, found.negative
    (array([0., 1.]), array([1., 1.]))
    """
    edges = np.arange(bins + 1) / bins
    sums = evidence.bins(edges[1:-1])
    rows = evidence.n / sums.w.sum()
    # A sum over cells may leave a rounding below zero where all rows have the outcome.
    negative = np.maximum(sums.w - sums.wy, 0.0)
    return ScoreHistogram(
        edges, sums.wy * rows, negative * rows, notion, label, float(evidence.n), evidence.support
    )
