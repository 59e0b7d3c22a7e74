"""The reliability diagram: mean score and frequency in each bin."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from calibrant import inputs
from calibrant.curves.band import INTERVALS
from calibrant.curves.histogram import (
    ByOutcome,
    Edges,
    Pictured,
    Rows,
    Support,
    check_picture,
    common_lines,
    counts,
    frequency_cells,
    subject,
)
from calibrant.curves.shown import DrawnOnAxes
from calibrant.estimators import parse
from calibrant.estimators.binned import Binned, mapped
from calibrant.inputs.codec import UNIT, Allow, Level, Number, Probability, Size, check_lengths, check_order
from calibrant.inputs.printed import Block, Table
from calibrant.inputs.wording import percent, size_name
from calibrant.score_data import Array, ScoreData
from calibrant.tasks.notions import Notion


@dataclass(frozen=True, eq=False)
class ReliabilityDiagram(Pictured, DrawnOnAxes, inputs.Serializable):
    """Mean score and frequency in each bin.

    Attributes
    ----------
    edges : array
        Edges of the bins.
    score, frequency : arrays
        Mean score and share of positive outcomes; NaN in a bin without mass.
    count : array
        Rows in each bin; with importance weights the effective sample size, (sum w)^2 / sum w^2.
    low, high : arrays
        Confidence interval for the frequency at `level`.
    by_outcome : tuple of arrays
        Edges of score bins, and the rows with and without the outcome in each; finer near 0 and 1.
    error : float
        The expected calibration error of the same bins.
    n, level : float
        Effective number of rows, and level of the intervals.
    estimator, interval : str
        Bins, and kind of interval.
    notion, label : str, label or None
        Type of calibration, and its class.
    clusters : int or None
        Number of clusters, if cluster ids were given.
    support : tuple of float
        Range of the scores.

    See Also
    --------
    reliability_diagram : Returns this result.
    ReliabilityCurve : Frequencies without bins.

    Examples
    --------
    >>> import calibrant
    >>> diagram = calibrant.reliability_diagram([0, 0, 1, 1], [0.1, 0.3, 0.6, 0.9], binning="uniform:2")
    >>> diagram.frequency
    array([0., 1.])
    >>> diagram.count
    array([2., 2.])
    """

    edges: Edges
    score: Annotated[Array, UNIT, Allow.NAN]
    frequency: Annotated[Array, UNIT, Allow.NAN]
    count: Rows
    low: Annotated[Array, UNIT, Allow.NAN]
    high: Annotated[Array, UNIT, Allow.NAN]
    by_outcome: ByOutcome
    error: Probability
    n: Size
    level: Level
    estimator: str
    interval: str
    notion: str
    support: Support
    label: Any = None
    clusters: Number | None = None
    _drawn_by = "diagram"

    def _check_fields(self) -> None:
        """Raise an error for arrays of the wrong length, and for a lower end above the upper end."""
        check_lengths(self, len(self.edges) - 1, "score", "frequency", "count", "low", "high")
        check_order(self, "low", "high")
        check_picture(self)

    def __repr__(self) -> str:
        return f"ReliabilityDiagram({subject(self)}, ECE {self.error:.4f}, {self.estimator})"

    def _printed(self) -> Iterator[Block]:
        yield from common_lines(self)
        yield "bins", f"{self.estimator}, {self.interval} intervals"
        head = [
            "from",
            "to",
            "mean score",
            "observed frequency",
            f"{percent(self.level)} interval",
            size_name(self.n),
        ]
        values = (self.frequency, self.low, self.high, self.count)
        bins = zip(self.edges[:-1], self.edges[1:], self.score, *values, strict=True)
        yield Table(
            head,
            [
                [f"{a:.3f}", f"{b:.3f}", f"{score:.3f}", *frequency_cells(*each)]
                for a, b, score, *each in bins
                if each[-1] > 0
            ],
        )


def bins_of(binning: str | Binned, mapping: Literal["one", "convex", "published"] | None = None) -> Binned:
    """Return the binned estimator named by `binning`, with another mapping if one is given.

    >>> bins_of("adaptive:10", "convex")
    Binned(binning='adaptive', n_bins=10, mapping='convex')
    """
    estimator: Any = binning
    if isinstance(binning, str):
        with suppress(inputs.InputError):
            estimator = parse(binning)
    if not isinstance(estimator, Binned):
        raise inputs.InputError("binning", 'name bins, such as "uniform:15" or "adaptive:10"', binning)
    return estimator if mapping is None else replace(estimator, mapping=mapping)


def diagram_of(
    score_data: ScoreData,
    *,
    binning: str | Binned = "uniform:15",
    mapping: Literal["one", "convex", "published"] | None = None,
    interval: str = "wilson",
    level: float = 0.95,
    notion: Notion,
    label: Any = None,
    effect: float = 1.0,
    clusters: int | None = None,
) -> ReliabilityDiagram:
    """Compute the reliability diagram of one problem; intervals are those of `effect` times fewer rows.

    >>> from calibrant.score_data import Sample
    >>> from calibrant.tasks.notions import get_notion
    >>> sample = Sample(np.array([0.1, 0.3, 0.8, 0.9]), np.array([False, True, True, True]))
    >>> diagram = diagram_of(sample, binning="uniform:2", notion=get_notion("binary"), label=1)
    >>> diagram
    ReliabilityDiagram(class 1, n=4, ECE 0.2250, uniform:2)
    >>> print(diagram)
    calibration error  0.225
    notion             binary, class 1
    data               4 rows
    bins               uniform:2, wilson intervals
    <BLANKLINE>
     from     to  mean score  observed frequency   95 % interval  rows
    0.000  0.500       0.200               0.500  0.095 to 0.905     2
    0.500  1.000       0.850               1.000  0.342 to 1.000     2
    """
    estimator = bins_of(binning, mapping)
    inputs.check_choice("interval", interval, tuple(INTERVALS))
    level = inputs.level(level)
    fit = estimator.fit(score_data)
    squares = mapped(score_data.squared(), fit.edges, estimator.mapping).w
    count = np.divide(fit.bins.w**2, squares, out=np.zeros(squares.shape), where=squares > 0)
    low, high = INTERVALS[interval](fit.bins.frequency, count / effect, level)
    return ReliabilityDiagram(
        edges=fit.edges,
        score=fit.bins.score,
        frequency=fit.bins.frequency,
        count=count,
        low=low,
        high=high,
        by_outcome=counts(score_data),
        error=float(fit.error()),
        n=float(score_data.n),
        level=level,
        estimator=str(estimator),
        interval=interval,
        notion=notion.name,
        support=score_data.support,
        label=label,
        clusters=clusters,
    )
