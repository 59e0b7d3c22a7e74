"""What a reader should know about the data before believing a number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from calibrant.assessment.assessment import Assessment
from calibrant.assessment.text import too_few_clusters
from calibrant.curves import ByClass
from calibrant.estimators.base import positions
from calibrant.inputs import PREDICTED, Predictions, decided
from calibrant.inputs.predictions import are_usual
from calibrant.inputs.wording import count, counted, short
from calibrant.posterior.log_odds.cells import NEAREST, expit, log_odds
from calibrant.score_data import Array, Cells
from calibrant.settings import REPORT
from calibrant.tasks import Notion, get_notion

if TYPE_CHECKING:
    from calibrant.sketch import Sketch

# Rows looked at for ties, which bounds the cost.
LOOKED = 1_000_000
# Scores are discrete from this mean number of rows of a distinct score.
DISCRETE_ROWS = 5
# Scores are saturated this close to 0 or 1, which is worth a caution above this share of them.
SATURATION_DISTANCE, SATURATED_SHARE = 1e-3, 0.5
# A shift explains the error if the band of the curve holds it at this share of the rows.
SHIFTED_SHARE = 0.95
# Weights are uneven below this effective sample size per row, and integer weights look like counts up to this
# number of distinct scores per row.
UNEVEN_WEIGHTS, AGGREGATED_SCORES = 0.5, 0.75


@dataclass(frozen=True)
class DataFacts:
    """What was seen of the data, in rows or in cells."""

    rows: int  # number of rows
    # distinct, n_inspected: distinct scores among the rows looked at for ties; as many as these where that is
    # not known.
    distinct: int
    n_inspected: int
    saturated: float  # share of scores next to 0 or 1
    impossible: str  # a sentence about outcomes that a score ruled out, if there are any
    absent: Sequence[str]  # classes known not to occur
    left_out: Sequence[str] = ()  # estimators that could not be asked
    decided: bool = False  # whether every score is 0 or 1
    # Rows whose single score was read as 1 - score of the other class, where the notion asks for the
    # larger; None where that is not known.
    mirrored: int | None = 0
    # Sum of importance weights that look like the counts of an aggregated table; 0 of any others.
    tabulated: float = 0.0


def cautions(assessment: Assessment, seen: DataFacts) -> Iterator[str]:
    """Yield sentences, one for each thing to know, the most important first."""
    if seen.decided:
        yield f"All scores are 0 or 1: {PREDICTED}."
    if seen.impossible:
        yield seen.impossible
    if seen.rows < REPORT.few_rows:
        yield f"{_only(seen.rows, 'row')}: intervals are wide, and only large errors can be detected."
    elif seen.distinct * DISCRETE_ROWS <= seen.n_inspected:
        distinct = counted(seen.distinct, "distinct score")
        yield (
            f"Scores are discrete: {distinct} in {counted(seen.rows, 'row')}."
            f"{'' if _each_by_itself(assessment) else ' Between them the curve is interpolated.'}"
        )
    yield from assessment.estimate.cautions
    if seen.saturated > SATURATED_SHARE and not seen.decided:
        yield (
            f"Scores are saturated: {100 * seen.saturated:.0f} % lie within "
            f"{SATURATION_DISTANCE:g} of 0 or 1. The log-odds axis shows them apart."
        )
    read = assessment.clinical
    if read is not None and read.clipped:
        rows, have = count(round(read.clipped, 1)), "row has" if read.clipped == 1 else "rows have"
        yield (
            f"{rows} {have} a score of 0 or 1, whose log-odds are infinite: calibration intercept and slope "
            f"use {read.least:.3g} and 1 - {read.least:.3g} instead."
        )
    if seen.mirrored != 0:
        many = "Scores" if seen.mirrored is None else counted(seen.mirrored, "score")
        verb = "counts" if seen.mirrored == 1 else "count"
        yield (
            f"{many} below 0.5 {verb} as 1 - score, the confidence in the other class. For pairs of "
            "correctness and confidence use notion='correctness'."
        )
    if assessment.n < UNEVEN_WEIGHTS * assessment.rows:
        rows, n = counted(assessment.rows, "row"), count(round(assessment.n))
        yield f"Weights are uneven: {rows}, effective sample size {n}."
    yield from _prior_shift(assessment)
    if seen.tabulated:
        yield (
            "The weights look like counts of an aggregated table: all are whole numbers, and no score occurs "
            "twice with the same label. As importance weights they have an effective sample size of "
            f"{count(round(assessment.n))}. If they are numbers of rows, {count(round(seen.tabulated))} in "
            "all, pass counts instead of sample_weight (on the command line --counts)."
        )
    clusters = assessment.estimate.clusters
    if clusters is not None and clusters < REPORT.few_clusters:
        yield f"{_only(clusters, 'cluster')}: how much they differ is itself uncertain."
    if seen.absent:
        few = "class" if len(seen.absent) == 1 else "the classes"
        yield f"No row is of {few} {_listed(seen.absent)}: counted all the same."
    yield from _of_groups(assessment)
    if any(estimate.conservative for estimate in assessment.estimates.values()):
        yield (
            "A sketch does not know which scores of the classes belong together: interval and p-value of the "
            "class-wise error allow for any dependence, and are conservative."
        )
    if seen.left_out:
        yield f"A sketch has fewer cells than these would have bins: {', '.join(seen.left_out)}."
    if any(score.value == np.inf for score in assessment.scores):
        yield (
            "The log loss is infinite: something happened that had probability 0."
            if seen.impossible
            else "The log loss is infinite as far as a sketch knows: a score that rounds to 1 was wrong, and "
            "what was left to the other classes is not kept."
        )


def _prior_shift(assessment: Assessment) -> Iterator[str]:
    """Yield the advice to adjust the class frequencies, if a shift of the log-odds explains the error.

    The slope is consistent with 1, and the band of the curve holds the shifted scores of nearly all rows.
    """
    read, curve = assessment.clinical, assessment.curve
    if read is None or read.intercept is None or read.slope is None or isinstance(curve, ByClass):
        return
    wording = get_notion(assessment.curve_notion).reading
    shift, slope = read.intercept, read.slope
    rejected = assessment.estimate.p_value <= 1 - assessment.level and not shift.low <= 0 <= shift.high
    if wording.about_confidence or not rejected or not slope.low <= 1 <= slope.high:
        return
    shifted = expit(log_odds(curve.score, NEAREST) + shift.value)
    held = (curve.low <= shifted) & (shifted <= curve.high)
    if np.average(held, weights=curve.density) >= SHIFTED_SHARE:
        yield (
            f"A shift of the log-odds by {shift.value:.2f} explains the error (slope {slope.value:.2f}, "
            f"{slope.low:.2f} to {slope.high:.2f}). If classes were resampled or weighted in the training, "
            "or have other frequencies now, calibrant.PriorShift adjusts the scores without labels."
        )


def _only(number: int, noun: str) -> str:
    """Return the beginning of a sentence about a number that is small."""
    return f"There {'is' if number == 1 else 'are'} only {counted(number, noun)}"


def _each_by_itself(assessment: Assessment) -> bool:
    """Tell whether the headline's curve answers at the scores that occur alone."""
    curve = assessment.curve
    curves = list(curve.computed.values()) if isinstance(curve, ByClass) else [curve]
    return all(each.discrete for each in curves)


def _of_groups(assessment: Assessment) -> Iterator[str]:
    """Yield sentences about groups of few rows, of one cluster, and of too few clusters to be rejected."""
    groups = assessment.by_group
    small = [row.name for row in groups if row.rows < REPORT.few_group_rows]
    if small:
        which = "group" if len(small) == 1 else "groups"
        yield f"Fewer than {REPORT.few_group_rows} rows: {which} {_listed(small)}."
    single = [row.name for row in groups if row.estimate.clusters == 1]
    if single:
        which = "Group" if len(single) == 1 else "Each of the groups"
        yield (
            f"{which} {_listed(single)} is a single cluster; its rows are treated as independent, "
            "so the interval does not include variation between clusters."
        )
    few = too_few_clusters(assessment.by_group, assessment.level)
    if few:
        names = [f"{row.name} ({counted(row.estimate.clusters or 0, 'cluster')})" for row in few]
        yield (
            f"Too few clusters to reject calibration at level {assessment.level:g} whatever the data: "
            f"{'group' if len(few) == 1 else 'groups'} {_listed(names)}. "
            "With k clusters the smallest attainable p-value is 2^(1 - k), before it is adjusted."
        )


def facts_from_rows(data: Predictions, names: Sequence[str], headline: Notion) -> DataFacts:
    """Return what rows show."""
    if data.score.ndim == 1:
        score, right = data.score, data.code.astype(bool)
        ruled_out = (right & (score == 0)) | (~right & (score == 1))
    else:
        score = data.score.max(axis=1)
        ruled_out = np.take_along_axis(data.score, data.code[:, None], axis=1)[:, 0] == 0
    times = data.weight if data.weight is not None and data.counts else np.ones(len(score), np.int64)
    near = SATURATION_DISTANCE
    impossible = int(times[ruled_out].sum())
    present = np.bincount(data.code.astype(np.intp), minlength=len(names)) > 0
    return DataFacts(
        rows=data.n_rows, distinct=np.unique(score[:LOOKED]).size, n_inspected=int(times[:LOOKED].sum()),
        saturated=float(np.average((score > 1 - near) | (score < near), weights=times)),
        impossible=_ruled_out(impossible, data.score[ruled_out] if data.score.ndim == 1 else None),
        absent=[name for name, seen in zip(names, present, strict=True) if not seen],
        decided=decided(data),
        mirrored=int(times[data.score < 0.5].sum()) if _may_be_pairs(headline, data) else 0,
        tabulated=_tabulated(data),
    )  # fmt: skip


def _tabulated(data: Predictions) -> float:
    """Return the sum of importance weights that look like the counts of a table of scores and labels.

    Whole numbers, most of them above one; no score with the same label twice, and many with two labels.

    >>> from calibrant.inputs import predictions
    >>> _tabulated(predictions([0, 1, 0, 1], [0.1, 0.1, 0.8, 0.8], sample_weight=[90, 12, 30, 99]))
    231.0
    """
    weight, n = data.weight, len(data.code)
    if weight is None or data.counts or n > LOOKED:
        return 0.0
    if np.any(weight != np.rint(weight)) or 2 * np.count_nonzero(weight > 1) <= n:
        return 0.0
    keys = data.score
    if keys.ndim == 2:  # sums with random factors, which different rows do not share
        keys = keys @ np.random.default_rng(0).random(keys.shape[1])
    score = np.unique(keys, return_inverse=True)[1]
    pairs = np.unique(score * len(data.labels) + data.code)
    return float(weight.sum()) if pairs.size == n and score.max() + 1 <= AGGREGATED_SCORES * n else 0.0


def facts_from_sums(sums: Sketch, names: Sequence[str], left_out: Sequence[str] = ()) -> DataFacts:
    """Return what the cells and the totals of a sketch show."""
    cells, totals = sums._score_data, sums.totals
    problems: list[Cells] = sums._task.problems  # type: ignore[assignment]
    single = problems[-1] if sums.is_vector or not cells.batch else None
    distinct = totals.rows
    # Where no cell holds two different scores, each cell is a score.
    if single is not None and not single.variance_within.any():
        distinct = int(np.count_nonzero(single.sums.w))
    if cells.counts:
        impossible = _ruled_out(round(totals.impossible))
    else:
        share = 100 * totals.impossible / totals.weight
        impossible = f"{share:.2g} % of the weight lies on rows of a class whose score was exactly 0."
        impossible *= share > 0
    return DataFacts(
        rows=totals.rows, distinct=distinct, n_inspected=totals.rows,
        saturated=_saturated(problems if single is None else [single], totals.weight),
        impossible=impossible, absent=_absent(sums, problems, names), left_out=left_out,
        decided=_decided(problems), mirrored=None if _may_be_pairs(sums._task.notion, sums) else 0,
    )  # fmt: skip


def _decided(problems: Sequence[Cells]) -> bool:
    """Tell whether every score is 0 or 1; of the largest scores, whether each is 1."""
    occupied_scores = [np.unique(positions(each.sums)[each.sums.w > 0]) for each in problems]
    ends = np.unique(np.concatenate(occupied_scores))
    return bool(np.isin(ends, (0, 1)).all()) and (ends.size == 2 or problems[0].support[0] > 0)


def _may_be_pairs(notion: Notion, data: Predictions | Sketch) -> bool:
    """Return whether labels and single scores may be pairs of correctness and confidence."""
    vector = data.score.ndim == 1 if isinstance(data, Predictions) else data.is_vector
    return vector and notion.top > 0 and are_usual(data.labels)


def _saturated(problems: Sequence[Cells], weight: float) -> float:
    """Return the share of rows next to 0 or 1; among several classes, of rows with one of them next to 1."""
    cuts = np.array([SATURATION_DISTANCE, 1 - SATURATION_DISTANCE])
    ends = [problem.bins(cuts).w for problem in problems]
    near = sum(w[2] for w in ends) if len(ends) > 1 else ends[0][0] + ends[0][2]
    return float(near / weight)


def _absent(sums: Sketch, problems: Sequence[Cells], names: Sequence[str]) -> list[str]:
    """Return the classes known not to occur.

    A single problem is about its own class, and of the other one of two.
    """
    notion = sums._task.notion
    if notion.top or notion.reading.about_confidence:
        return []
    outcomes = [(float(problem.sums.w.sum()), float(problem.sums.wy.sum())) for problem in problems]
    if notion.classwise:
        return [name for name, (_, wy) in zip(names, outcomes, strict=True) if wy == 0]
    ((w, wy),), positive_column = outcomes, sums.positive or 0
    if len(names) == 2 and wy == w:
        return [names[1 - positive_column]]
    return [names[positive_column]] if wy == 0 else []


def _ruled_out(rows: int, score: Array | None = None) -> str:
    """Return a sentence about rows with the class whose score was 0, if there are any."""
    if not rows:
        return ""
    if score is None:
        return f"{counted(rows, 'row')} had a score of exactly 0 for the class that occurred."
    ends = " or ".join(f"{end:.0f}" for end in np.unique(score))
    return f"{counted(rows, 'row')} with a score of exactly {ends} {'was' if rows == 1 else 'were'} wrong."


def _listed(names: Sequence[str]) -> str:
    """Return the first five names, and how many more there are."""
    first = ", ".join(short(name) for name in names[:5])
    return first + (f" and {len(names) - 5} more" if len(names) > 5 else "")
