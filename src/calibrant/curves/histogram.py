"""Where the scores lie, apart for the rows that have the outcome and those that have not.

Also what histograms, curves and diagrams have in common: their fields, and how they print.
"""

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

# Cells of the histogram below a curve or a diagram, and those that a histogram prints.
CELLS, PRINTED = 50, 10

Edges: TypeAlias = Annotated[Array, Shape((None,)), UNIT, Ascending()]
Rows: TypeAlias = Annotated[Array, NOT_NEGATIVE]
Support: TypeAlias = tuple[Probability, Probability]


@dataclass(frozen=True, eq=False)
class ScoreHistogram(Serializable):
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

    edges: Edges
    positive: Rows
    negative: Rows
    notion: str
    label: Any
    n: Size
    support: Support = (0.0, 1.0)

    def check_fields(self) -> None:
        """Refuse counts that are not as many as cells."""
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
    """Name what was asked.

    >>> subject("binary", "dog"), subject("confidence", None), subject("classwise", "dog")
    ("class 'dog'", 'confidence', "class 'dog'")
    """
    return notion if label is None else f"class {label!r}"


def headline(result: Any) -> str:
    """Say what was asked, of how many rows, and the error."""
    return f"{subject(result.notion, result.label)}, {sample_size(result.n, '=')}, ECE {result.error:.4f}"


def table(columns: Mapping[str, str], rows: Iterable[Sequence[float]]) -> str:
    """Write numbers in columns, each in its format; missing ones as a dash.

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
    """Refuse a notion that there is not, and a support that is empty."""
    named(result.notion)
    low, high = result.support
    if not low < high:
        raise InputError("support", "ascend", [low, high])


def check_picture(result: Any) -> None:
    """Refuse what no picture is of, and a histogram whose counts are not as many as its cells."""
    check_subject(result)
    edges, rows = result.histogram
    Shape((len(edges) - 1,)).check("histogram[1]", rows)


def _cells(evidence: ScoreData, bins: int) -> tuple[Array, Bins, float]:
    """Sum one problem in cells of equal width: edges, sums, and rows for a unit of mass."""
    edges = np.arange(bins + 1) / bins
    sums = evidence.bins(edges[1:-1])
    return edges, sums, evidence.n / sums.w.sum()


def counts(evidence: ScoreData) -> tuple[Array, Array]:
    """Count the scores of one problem for the strip below a picture: edges, and rows between them."""
    edges, sums, rows = _cells(evidence, CELLS)
    return edges, sums.w * rows


def histogram_of(
    evidence: ScoreData, *, bins: int = CELLS, notion: Notion, label: Any = None
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
    edges, sums, rows = _cells(evidence, inputs.positive_int("bins", bins))
    # A sum over cells may leave a rounding below zero where all rows have the outcome.
    negative = np.maximum(sums.w - sums.wy, 0.0)
    return ScoreHistogram(
        edges, sums.wy * rows, negative * rows, notion.name, label, float(evidence.n), evidence.support
    )
