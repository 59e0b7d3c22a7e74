"""Histogram of the scores by outcome, and fields and printing shared with curves and diagrams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.curves.shown import DrawnOnAxes
from calibrant.inputs import InputError, Serializable
from calibrant.inputs.codec import NOT_NEGATIVE, UNIT, Ascending, Probability, Shape, Size, check_lengths
from calibrant.inputs.printed import Block, Table
from calibrant.inputs.wording import about, brief_size, count, number, sample_size, with_ends
from calibrant.score_data import Array, ScoreData
from calibrant.tasks.notions import Notion, get_notion

# Bins of the histogram below a curve or a diagram, and the number of bins that are printed.
CELLS, PRINTED = 50, 10
# Finer edges below the first of these bins and, mirrored, above the last: even on a log-odds scale.
TAIL = 10.0 ** np.arange(-6, -1.75, 0.25)

Edges: TypeAlias = Annotated[Array, Shape((None,)), UNIT, Ascending()]
Rows: TypeAlias = Annotated[Array, NOT_NEGATIVE]
ByOutcome: TypeAlias = tuple[Edges, Rows, Rows]
Support: TypeAlias = tuple[Probability, Probability]


@dataclass(frozen=True, eq=False)
class ScoreHistogram(DrawnOnAxes, Serializable):
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

    See Also
    --------
    score_histogram : Returns this result.

    Examples
    --------
    >>> import calibrant
    >>> histogram = calibrant.score_histogram([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], bins=2)
    >>> histogram.positive
    array([0., 2.])
    """

    edges: Edges
    positive: Rows
    negative: Rows
    notion: str
    label: Any
    n: Size
    support: Support = (0.0, 1.0)
    _drawn_by = "score_histograms"

    def _check_fields(self) -> None:
        """Raise an error for counts of the wrong length."""
        check_lengths(self, len(self.edges) - 1, "positive", "negative")
        check_subject(self)

    def __repr__(self) -> str:
        return f"ScoreHistogram({subject(self)}, {self.positive.size} cells)"

    def _printed(self) -> Iterator[Block]:
        share = f"{100 * self.positive.sum() / self.n:.1f} %"
        yield "positive outcomes", f"{share} of {sample_size(self.n)}"
        yield "notion", about(self.notion, self.label)
        first = np.unique(np.arange(PRINTED) * self.positive.size // PRINTED)
        sums = [np.add.reduceat(rows, first) for rows in (self.positive, self.negative)]
        columns = zip(self.edges[first], self.edges[[*first[1:], -1]], *sums, strict=True)
        yield Table(
            ["from", "to", "positive", "negative"],
            [[f"{a:.2f}", f"{b:.2f}", *(count(round(float(n), 1)) for n in rows)] for a, b, *rows in columns],
        )


def subject(result: Any) -> str:
    """Return notion or class, and sample size, as they stand in a `repr`."""
    named_label = result.notion if result.label is None else f"class {result.label!r}"
    return f"{named_label}, {brief_size(result.n)}"


def common_lines(result: Any) -> Iterator[Block]:
    """Return the lines that curves and diagrams have in common."""
    yield "calibration error", number(result.error)
    yield "notion", about(result.notion, result.label)
    yield "data", sample_size(result.n, result.clusters)


def frequency_cells(frequency: float, low: float, high: float, n: float) -> list[str]:
    """Return the cells of a frequency, its interval and the rows behind it.

    >>> frequency_cells(0.5, 0.25, 0.75, 12.0)
    ['0.500', '0.250 to 0.750', '12']
    """
    value, left, right = with_ends(frequency, low, high, least=3)
    return [value, "" if math.isnan(low) else f"{left} to {right}", "" if math.isnan(n) else count(round(n))]


def check_subject(result: Any) -> None:
    """Raise an error for an unknown notion or an empty support."""
    get_notion(result.notion)
    low, high = result.support
    if not low < high:
        raise InputError("support", "ascend", [low, high])


def check_picture(result: Any) -> None:
    """Raise an error for an unknown notion, an empty support, or histogram counts of the wrong length."""
    check_subject(result)
    edges, *sides = result.by_outcome
    for k, rows in enumerate(sides, 1):
        Shape((len(edges) - 1,)).check(f"by_outcome[{k}]", rows)


def _counts(score_data: ScoreData, edges: Array) -> tuple[Array, Array, Array]:
    """Return the edges, and the rows with and without the outcome in each bin."""
    sums = score_data.bins(edges[1:-1])
    rows = score_data.n / sums.w.sum()
    # Rounding may give a negative sum if all rows have the outcome.
    return edges, sums.wy * rows, np.maximum(sums.w - sums.wy, 0.0) * rows


def counts(score_data: ScoreData) -> tuple[Array, Array, Array]:
    """Return edges and counts by outcome of the score histogram that is drawn below a plot."""
    even = np.arange(CELLS + 1) / CELLS
    return _counts(score_data, np.unique(np.concatenate([even, TAIL, 1 - TAIL])))


def evenly(by_outcome: ByOutcome, positions: Array | None = None) -> tuple[Array, Array, Array]:
    """Merge bins to equal width, or to the stored edges that are nearest to other positions.

    >>> evenly((np.array([0, 0.01, 0.02, 1]), np.array([1.0, 2, 3]), np.zeros(3)), np.array([0, 0.02, 1]))
    (array([0.  , 0.02, 1.  ]), array([3., 3.]), array([0., 0.]))
    """
    edges, *sides = by_outcome
    wanted = np.arange(CELLS + 1) / CELLS if positions is None else positions
    kept = np.unique([0, *np.abs(edges[:, None] - wanted).argmin(axis=0), edges.size - 1])
    positive, negative = (np.add.reduceat(side, kept[:-1]) for side in sides)
    return edges[kept], positive, negative


class Pictured:
    """What curves and diagrams share: the histogram of their scores."""

    by_outcome: ByOutcome

    @property
    def histogram(self) -> tuple[Array, Array]:
        """Edges of bins of equal width, and the rows in each."""
        edges, positive, negative = evenly(self.by_outcome)
        return edges, positive + negative


def histogram_of(
    score_data: ScoreData, *, bins: int = CELLS, notion: Notion, label: Any = None
) -> ScoreHistogram:
    """Count the scores of one problem by outcome.

    >>> from calibrant.score_data import Sample
    >>> from calibrant.tasks.notions import get_notion
    >>> sample = Sample(np.array([0.2, 0.7, 0.9]), np.array([False, False, True]))
    >>> counted = histogram_of(sample, bins=2, notion=get_notion("binary"), label="dog")
    >>> counted.positive, counted.negative
    (array([0., 1.]), array([1., 1.]))
    >>> counted
    ScoreHistogram(class 'dog', n=3, 2 cells)
    >>> print(counted)
    positive outcomes  33.3 % of 3 rows
    notion             binary, class dog
    <BLANKLINE>
    from    to  positive  negative
    0.00  0.50         0         1
    0.50  1.00         1         1
    """
    edges = np.arange(inputs.positive_int("bins", bins) + 1) / bins
    sides = _counts(score_data, edges)
    return ScoreHistogram(*sides, notion.name, label, float(score_data.n), score_data.support)
