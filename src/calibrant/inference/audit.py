"""The result of an audit of segments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.curves.shown import Page
from calibrant.inference.interval_estimate import MeanGap
from calibrant.inference.segments import Segment, audited_segments
from calibrant.inference.table import markdown_of
from calibrant.inputs import Predictions, SegmentTable, Serializable, generator
from calibrant.inputs.codec import Count, Level, Number, Probability
from calibrant.inputs.printed import Block, Table, data_frame
from calibrant.inputs.wording import about, count, counted, few_of, p_value, percent, points, points_with_ends
from calibrant.score_data import Sample
from calibrant.score_data.clusters import effective_clusters
from calibrant.tasks import CalibrationTask, Notion, get_notion

# Segments that are described in sentences, and those in the printed table.
DESCRIBED, SHOWN = 5, 15
# Effective number of clusters from which on benchmarks/audit.py measures error rates.
MEASURED_CLUSTERS = 12
NUMBERS = (
    *("rows", "observed", "expected", "gap", "gap_low", "gap_high", "p_value"),
    *("difference", "difference_low", "difference_high", "p_difference", "pooled"),
)


@dataclass(frozen=True)
class SegmentAudit(Page, Serializable):
    """Calibration gaps of overlapping segments, with control of the family-wise error rate.

    Attributes
    ----------
    segments : tuple of Segment
        The segments, those whose gap is certainly the largest first: by the end of the interval next to 0.
    columns : tuple of str
        Columns of which the segments are made.
    notion, label
        What is compared, and the positive class of a binary notion.
    level : float
        One minus the family-wise error rate of each of the two tests, and joint level of the intervals.
    rows : int
        Number of rows.
    observed, expected : float
        Mean outcome and mean score of all rows.
    depth, min_rows, few : int
        Number of columns that are crossed at most, smallest number of rows of a segment, and number of
        combinations that have fewer.
    n_resamples, seed : int
        Number of simulated data sets, and their seed.
    clusters : int or None
        Number of clusters.
    correlation : float or None
        Intra-cluster correlation of the residuals: its posterior mean.
    cautions : tuple of str
        Warnings about the data, one sentence each.

    See Also
    --------
    audit : Returns this result.
    Segment : One segment.

    Examples
    --------
    >>> import calibrant
    >>> score, country = [0.2, 0.4, 0.6, 0.8] * 100, ["no", "no", "se", "se"] * 100
    >>> audit = calibrant.audit([0, 0, 1, 1] * 100, score, {"country": country}, n_resamples=199)
    >>> [segment.name for segment in audit.segments]
    ['country = no', 'country = se']
    """

    segments: tuple[Segment, ...]
    columns: tuple[str, ...]
    notion: str
    label: Any
    level: Level
    rows: Number
    observed: Probability
    expected: Probability
    depth: Number
    min_rows: Number
    few: Count
    n_resamples: Number
    seed: Count
    clusters: Number | None = None
    correlation: Probability | None = None
    cautions: tuple[str, ...] = ()
    _drawn_by, _page_by = "segments", "segments_page"

    @property
    def miscalibrated(self) -> tuple[Segment, ...]:
        """Segments whose own gap is not 0, at the family-wise error rate."""
        return tuple(each for each in self.segments if each.p_value <= 1 - self.level)

    @property
    def different(self) -> tuple[Segment, ...]:
        """Segments that differ from the common recalibration, the largest first; they can be calibrated."""
        different = [each for each in self.segments if each.p_difference <= 1 - self.level]
        return tuple(sorted(different, key=lambda each: -each.difference.certain))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found: the miscalibrated segments, and those that differ, one sentence each."""
        off, total = self.miscalibrated, counted(len(self.segments), "segment")
        overall = f"the mean gap of all rows is {points(self.observed - self.expected, '+')} points"
        if off:
            gaps = sorted(each.gap.value for each in off)
            ends = " to ".join(dict.fromkeys(points(gap, "+") for gap in (gaps[0], gaps[-1])))
            verb, noun = ("is", "a gap") if len(off) == 1 else ("are", "gaps")
            first = f"{len(off)} of {total} {verb} miscalibrated, with {noun} of {ends} points; {overall}."
        else:
            first = f"Calibration is rejected for none of {total}; {overall}."
        last = []
        if self.different:
            last = [f"Different from one common recalibration of all rows: {few_of(self._named)}."]
        return first, *map(self._sentence, off[:DESCRIBED]), *last

    def _sentence(self, each: Segment) -> str:
        words, side = get_notion(self.notion).reading, "low" if each.gap.value > 0 else "high"
        p = p_value(each.p_value, 1 / (1 + self.n_resamples))
        return (
            f"{each.name}: {words.score}s are too {side} by {points(abs(each.gap.value))} points "
            f"({_ends(each.gap)}; adjusted {p}); {words.frequency} {points(each.observed)} %, "
            f"mean {words.score} {points(each.expected)} %, {counted(each.rows, 'row')}."
        )

    @property
    def _named(self) -> list[str]:
        """The segments that differ, each with the size of its difference."""
        least = 1 / (1 + self.n_resamples)
        return [
            f"{each.name} ({points(each.difference.value, '+')} points, adjusted "
            f"{p_value(each.p_difference, least)})"
            for each in self.different
        ]

    def verdict(self, limit: float) -> tuple[str, str]:
        """Return whether all gaps are within a limit ("pass"), one is not ("fail"), or neither is known.

        Parameters
        ----------
        limit : float
            Largest absolute gap that is allowed.
        """
        outside = [each for each in self.segments if max(each.gap.low, -each.gap.high) > limit]
        unclear = [each for each in self.segments if max(-each.gap.low, each.gap.high) > limit]
        allowed = f"{points(limit)} points"
        if outside:
            return "fail", f"the gaps of {few_of([each.name for each in outside])} exceed {allowed}"
        if unclear:
            size = counted(len(unclear), "segment")
            return "inconclusive", f"too few rows to tell whether the gaps of {size} exceed {allowed}"
        return "pass", f"the gaps of all {counted(len(self.segments), 'segment')} are at most {allowed}"

    def to_frame(self) -> Any:
        """Return a data frame with a row for each segment, of polars or, if not installed, of pandas."""
        rows = []
        for each in self.segments:
            values = dict(zip(each.columns, each.values, strict=True))
            tests = (*each.gap[:3], each.p_value, *each.difference[:3], each.p_difference, each.pooled)
            rows.append((*map(values.get, self.columns), each.rows, each.observed, each.expected, *tests))
        names = (*self.columns, *NUMBERS)
        return data_frame({name: [row[k] for row in rows] for k, name in enumerate(names)})

    def to_markdown(self) -> str:
        """Return a Markdown table of all segments."""
        head = ["segment", "rows", "gap", "interval", "p", "difference", "interval", "p", "pooled"]
        return markdown_of(head, map(self._row, self.segments), 1)

    def __repr__(self) -> str:
        summary = f"{len(self.miscalibrated)} of {len(self.segments)} miscalibrated"
        return f"SegmentAudit({summary}; {', '.join(self.columns)}, depth {self.depth})"

    def _row(self, each: Segment) -> list[str]:
        cells = [each.name, count(each.rows)]
        for gap, p in ((each.gap, each.p_value), (each.difference, each.p_difference)):
            p_text = p_value(p, 1 / (1 + self.n_resamples))[2:].removeprefix("= ")
            cells += [points(gap.value, "+"), _ends(gap), p_text]
        return [*cells, points(each.pooled, "+")]

    def _printed(self) -> Iterator[Block]:
        yield from self.sentences
        shown = [row[:6] for row in map(self._row, self.segments[:SHOWN])]
        yield Table(["segment", "rows", "gap", "interval", "p", "difference"], shown, names=1)
        if (more := len(self.segments) - SHOWN) > 0:
            yield f"{more:,} segments with smaller certain gaps are not shown; to_frame() has all."
        yield "gap", f"{get_notion(self.notion).reading.frequency} minus score, in points"
        yield "interval", f"of the gap, simultaneous for all segments, {percent(self.level)}"
        yield "p", "H0: the scores are calibrated in the segment; adjusted for all segments"
        yield "difference", "part of the gap that one common recalibration of all rows does not explain"
        yield "notion", about(self.notion, self.label)
        yield from self.cautions


def _ends(gap: MeanGap) -> str:
    return " to ".join(points_with_ends(gap.value, gap.low, gap.high, "+")[1:])


def audit_segments(
    data: Predictions, notion: Notion, segments: tuple[tuple[str, ...], Sequence[SegmentTable], int], *,
    level: float, n_resamples: int, seed: int, depth: int, min_rows: int,
) -> SegmentAudit:  # fmt: skip
    """Audit segments, which are what `segments_of_rows` returns; see `calibrant.audit`."""
    columns, tables, few = segments
    task = CalibrationTask.of(data, notion)
    problem = task.problems[0]
    assert isinstance(problem, Sample)
    audited, correlation = audited_segments(
        problem, tables, data.cluster, level, n_resamples, generator(seed)
    )
    observed, expected = (
        float(np.average(x, weights=problem.weight)) for x in (problem.outcome, problem.score)
    )
    about_data = notion.name, task.label, level, data.n_rows, observed, expected
    settings = depth, min_rows, few, n_resamples, seed
    cautions = (*data.cautions, *_few_clusters(data))
    return SegmentAudit(audited, columns, *about_data, *settings, task.clusters, correlation, cautions)


def _few_clusters(data: Predictions) -> Iterator[str]:
    """Yield a caution if there are fewer clusters than error rates were measured with."""
    if data.cluster is None:
        return
    effective = effective_clusters(data.cluster, data.weight)
    # Rounded, because sums in another order of the rows have other last digits.
    if round(effective, 9) < MEASURED_CLUSTERS:
        yield (
            f"The clusters are worth {effective:.1f} of equal size. Error rates were measured with at least "
            f"{MEASURED_CLUSTERS}; with fewer, gaps of segments can hardly be told from those of clusters."
        )
