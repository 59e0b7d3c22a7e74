"""Histogram of the scores by outcome, and fields and printing shared with curves and diagrams."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.inputs import InputError, Serializable
from calibrant.inputs.codec import NOT_NEGATIVE, UNIT, Ascending, Probability, Shape, Size, check_lengths
from calibrant.inputs.wording import sample_size
from calibrant.score_data import Array, Bins, ScoreData
from calibrant.tasks.notions import Notion, named

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bins of the histogram below a curve or a diagram, and the number of bins that are printed.
CELLS, PRINTED = 50, 10

Edges: TypeAlias = Annotated[Array, Shape((None,)), UNIT, Ascending()]
Rows: TypeAlias = Annotated[Array, NOT_NEGATIVE]
Support: TypeAlias = tuple[Probability, Probability]


@dataclass(frozen=True, eq=False)
class ScoreHistogram(Serializable):
    """Number of rows in each score bin, by outcome.

    Attributes
    ----------
    edges : array
        Edges of bins of equal width.
    positive, negative : arrays
        Rows with and without the outcome: of the class or of other classes; for confidence, correct or wrong.
        Importance weights are scaled to the effective sample size.
    notion, label : str, object
        The notion, and the class label if there is one.
    n : float
        Effective sample size.
    support : pair of floats
        Range of possible scores.
    """

    edges: Edges
    positive: Rows
    negative: Rows
    notion: str
    label: Any
    n: Size
    support: Support = (0.0, 1.0)

    def _check_fields(self) -> None:
        """Raise an error for counts of the wrong length."""
        check_lengths(self, len(self.edges) - 1, "positive", "negative")
        check_subject(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw one outcome upwards and the other downwards; see `calibrant.plot.score_histograms`."""
        from calibrant import plot

        return plot.score_histograms(self, ax)

    def __repr__(self) -> str:
        about, size = subject(self.notion, self.label), sample_size(self.n, "=")
        return f"ScoreHistogram({about}, {size}, {self.positive.size} cells)"

    def __str__(self) -> str:
        share = self.positive.sum() / self.n
        about, size = subject(self.notion, self.label), sample_size(self.n, "=")
        title = f"Scores of {about}, {size}, {share:.1%} positive"
        first = np.unique(np.arange(PRINTED) * self.positive.size // PRINTED)
        counts = (np.add.reduceat(count, first) for count in (self.positive, self.negative))
        rows = zip(self.edges[first], self.edges[[*first[1:], -1]], *counts, strict=True)
        formats = {"from": ".2f", "to": ".2f", "positive": ".6g", "negative": ".6g"}
        return f"{title}\n{table(formats, rows)}"


def subject(notion: str, label: Any) -> str:
    """Return the notion and the class label as text.

    >>> subject("binary", "dog"), subject("confidence", None), subject("classwise", "dog")
    ("class 'dog'", 'confidence', "class 'dog'")
    """
    return notion if label is None else f"class {label!r}"


def headline(result: Any) -> str:
    """Return notion, sample size and error as text."""
    return f"{subject(result.notion, result.label)}, {sample_size(result.n, '=')}, ECE {result.error:.4f}"


def table(columns: Mapping[str, str], rows: Iterable[Sequence[float]]) -> str:
    """Format numbers in columns; missing values are printed as a dash.

    >>> print(table({"score": ".2f", "rows": ".0f"}, [(0.25, 12.0), (0.75, np.nan)]))
    score  rows
     0.25    12
     0.75     -
    """
    cells = [list(columns)]
    for row in rows:
        formats = zip(row, columns.values(), strict=True)
        cells.append(["-" if np.isnan(value) else format(value, spec) for value, spec in formats])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = (zip(row, widths, strict=True) for row in cells)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in line) for line in lines)


def check_subject(result: Any) -> None:
    """Raise an error for an unknown notion or an empty support."""
    named(result.notion)
    low, high = result.support
    if not low < high:
        raise InputError("support", "ascend", [low, high])


def check_picture(result: Any) -> None:
    """Raise an error for an unknown notion, an empty support, or histogram counts of the wrong length."""
    check_subject(result)
    edges, rows = result.histogram
    Shape((len(edges) - 1,)).check("histogram[1]", rows)


def _cells(score_data: ScoreData, bins: int) -> tuple[Array, Bins, float]:
    """Sum one problem in bins of equal width: return edges, sums, and rows per unit of weight."""
    edges = np.arange(bins + 1) / bins
    sums = score_data.bins(edges[1:-1])
    return edges, sums, score_data.n / sums.w.sum()


def counts(score_data: ScoreData) -> tuple[Array, Array]:
    """Return edges and counts of the score histogram that is drawn below a plot."""
    edges, sums, rows = _cells(score_data, CELLS)
    return edges, sums.w * rows


def histogram_of(
    score_data: ScoreData, *, bins: int = CELLS, notion: Notion, label: Any = None
) -> ScoreHistogram:
    """Count the scores of one problem by outcome.

    >>> from calibrant.score_data import Sample
    >>> from calibrant.tasks.notions import named
    >>> sample = Sample(np.array([0.2, 0.7, 0.9]), np.array([False, False, True]))
    >>> counted = histogram_of(sample, bins=2, notion=named("binary"), label="dog")
    >>> counted.positive, counted.negative
    (array([0., 1.]), array([1., 1.]))
    >>> counted
    ScoreHistogram(class 'dog', n=3, 2 cells)
    >>> print(counted)
    Scores of class 'dog', n=3, 33.3% positive
    from    to  positive  negative
    0.00  0.50         0         1
    0.50  1.00         1         1
    """
    edges, sums, rows = _cells(score_data, inputs.positive_int("bins", bins))
    # Rounding may give a negative sum if all rows have the outcome.
    negative = np.maximum(sums.w - sums.wy, 0.0)
    return ScoreHistogram(
        edges, sums.wy * rows, negative * rows, notion.name, label, float(score_data.n), score_data.support
    )
