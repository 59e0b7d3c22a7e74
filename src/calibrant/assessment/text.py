"""What an assessment says in words, and never more than its intervals allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from calibrant.assessment.probability_transfer import pairs
from calibrant.curves import ByClass, Point, ReliabilityCurve
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.inference.result import (
    Estimate,
    expected_if_calibrated,
    p_text,
    rejects,
    remarks,
)
from calibrant.inputs.house_style import NO_ERROR, TOO_FEW
from calibrant.inputs.wording import (
    count,
    counted,
    few_of,
    in_100,
    number,
    percent,
    plural,
    points,
    points_with_ends,
    short,
    size_name,
    with_ends,
    with_interval,
)
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks import get_notion

if TYPE_CHECKING:
    from calibrant.assessment.assessment import Assessment, Balance, SubgroupResult

# Scores that may be an example where rows have them.
ROUND = np.arange(1, 100) / 100
# Scores by which ranges are told, finer near 0 and 1.
TAIL = np.outer(10.0 ** np.arange(-4, -2), np.arange(1, 10)).ravel()
SCORES = np.unique(np.concatenate([[0.0], TAIL, ROUND, np.round(1 - TAIL, 6), [1.0]]))
# The sign of the gap, frequency minus score, on the other side.
SIGNS = {"too high": 1, "too low": -1}
# Names listed before the rest is counted.
LISTED = 3
# Width of a range of scores with few rows from which it is named, and share of the rows from which the end
# of the scores is a range of its own.
SPARSE, END_SHARE = 0.05, 0.02
# Share of rows that must be off for the example to be the score that is furthest off.
OFF_SHARE = 0.1
# Share of a gain from which on a simpler map is worth naming.
WORTH_NAMING = 0.45


def called(name: str | None, what: str = "class") -> str:
    """Return what to call a class or a group in a sentence.

    >>> called("odd"), called("1"), called(None)
    ('odd', 'class 1', 'the class')
    """
    if not name:
        return f"the {what}"
    return f"{what} {name}" if name.lstrip("-").replace(".", "", 1).isdigit() else short(name)


def row_name(row: SubgroupResult, what: str = "group") -> str:
    """Return what to call a row of a table of groups or classes, in at most 24 characters."""
    return short(called(row.name, what), 24)


def named_errors(rows: Sequence[SubgroupResult], what: str) -> list[str]:
    """Return names with their errors."""
    return [f"{row_name(row, what)} ({points(row.estimate.value)} points)" for row in rows]


def score_text(score: float) -> str:
    """Return a score with as many digits as tell it from its neighbours, and from 0 and 1.

    >>> [score_text(s) for s in (0.9, 1 / 3, 0.99998, 1.0)]
    ['0.9', '0.333', '0.99998', '1']
    """
    texts = (f"{score:.{digits}g}" for digits in range(1, 17))
    return next((t for t in texts if abs(float(t) - score) <= 0.005 * min(score, 1 - score)), f"{score:.17g}")


def is_rejected(estimate: Estimate, level: float) -> bool:
    """Tell whether calibration is rejected."""
    return rejects(estimate.p_value, level)


def side(estimate: Estimate, balance: Balance | None) -> int:
    """Return 1 where scores are too high nearly everywhere, -1 too low, 0 where neither can be said."""
    if balance is None or estimate.over is None:
        return 0
    share = estimate.over / estimate.value if estimate.value > 0 else 0.5
    if share >= REPORT.one_sided and balance.low > 0:
        return 1
    return -1 if share <= 1 - REPORT.one_sided and balance.high < 0 else 0


def deviation(assessment: Assessment) -> str:
    """Return in which direction the headline's scores are off, as far as that is sure; "by" follows."""
    notion, direction = get_notion(assessment.notion), side(assessment.estimate, assessment.balance)
    if notion.reading.about_confidence and direction:
        return "Overconfident" if direction > 0 else "Underconfident"
    if notion.is_binary and direction:
        return f"Scores of {called(assessment.pos_label)} are too {'high' if direction > 0 else 'low'}"
    return f"{'Class probabilities' if notion.canonical or notion.classwise else 'The scores'} are off"


def error_sentence(assessment: Assessment) -> str:
    """Return one sentence: the error with its interval, the error expected if calibrated, and the test.

    With so many classes that a part of the error alone can be seen, the interval is of that part.
    """
    e, typical = assessment.estimate, expected_if_calibrated(assessment.estimate, points, " points")
    middle, low, high = points_with_ends(e.value, e.low, e.high)
    value = f"{middle} points{' in sum' * get_notion(assessment.notion).canonical}"
    span = f"{percent(e.level)} interval {low} to {high} points"
    if e.lower_bound:
        value = f"at least {points(e.at_least or 0.0)} points in sum"
        span = f"among {len(assessment.classes)} classes {middle} points of it can be seen"
    return f"The calibration error is {value} ({span}); {typical}; {p_text(e, '≤')} (H0: calibrated)."


def transfer_sentence(assessment: Assessment) -> str:
    """Return a sentence on the pairs of classes with significant probability transfer."""
    where = assessment.probability_transfer
    if where is None or not is_rejected(assessment.estimate, assessment.level):
        return ""
    names = [short(called(name), 24) for name in assessment.classes]
    certain = [pair for pair in pairs(where, assessment.level) if pair.low > 0]
    if not certain:
        return "No probability transfer between two classes is significant."
    told = [
        f"{names[pair.taker]} receives {value} {'points of probability ' * (k == 0)}"
        f"that belong to {names[pair.giver]} ({low} to {high})"
        for k, pair in enumerate(certain[:LISTED])
        for value, low, high in (points_with_ends(pair.value, pair.low, pair.high),)
    ]
    rest = len(certain) - LISTED
    more = f"; {counted(rest, 'more pair')} {'differs' if rest == 1 else 'differ'}" if rest > 0 else ""
    return f"Per row on average, {few_of(told)}{more}."


def summary(assessment: Assessment) -> list[str]:
    """Return sentences on the error, probability transfer, the mean gap and rejected subgroups."""
    first = [error_sentence(assessment), *assessment.estimate.remarks]
    writers = (transfer_sentence, balance, rejected_subgroups)
    return [*first, *(line for line in (write(assessment) for write in writers) if line)]


def off_subgroups(assessment: Assessment) -> str:
    """Return which classes or groups are significantly miscalibrated, the worst first; empty if none."""
    for what, rows in (("group", assessment.by_group), ("class", assessment.by_class)):
        others, more, _ = (what == "class" and assessment.other_classes) or (0, 0, 0.0)
        bad, total = [row for row in rows if row.off(assessment.level)], len(rows) + others
        if bad and total > 1:
            names = few_of(named_errors(bad[:LISTED], what))
            n_off, sides = len(bad) + more, {gap_side(row) for row in bad[:LISTED]}
            few = f"{n_off} of the {total} {plural(what)} {'is' if n_off == 1 else 'are'}"
            subject = f"All {total} {plural(what)} are" if n_off == total else few
            side = f", {sides.pop()} on average" if len(sides) == 1 and "" not in sides else ""
            return f"{subject} off{'; the worst are' if n_off > LISTED else ':'} {names}{side}."
    return ""


def gap_side(row: SubgroupResult) -> str:
    """Return whether the scores of a class or a group are too high or too low on average, if that is sure."""
    if row.gap is None or row.gap.low <= 0 <= row.gap.high:
        return ""
    return "too low" if row.gap.low > 0 else "too high"


def row_remarks(rows: Sequence[SubgroupResult], what: str, level: float) -> tuple[str, ...]:
    """Return explanations of numbers in a table of classes or groups that look contradictory."""
    return remarks([(row_name(row, what), row.estimate, row.off(level)) for row in rows])


def shown_curve(assessment: Assessment) -> tuple[ReliabilityCurve, str, bool]:
    """Return the curve that is pictured, whose it is, and whether its calibration is rejected.

    Of the class-wise notion it is the curve of the class that is furthest off.
    """
    curve = assessment.curve
    if isinstance(curve, ByClass):
        worst = assessment.by_class[0]
        return curve[worst.estimate.label], called(worst.name), worst.off(assessment.level)
    return curve, "", is_rejected(assessment.estimates[assessment.curve_notion], assessment.level)


def outcome(assessment: Assessment) -> str:
    """Return what rows with the outcome of the curve are: right, or of its class."""
    reading, (_, name, _) = get_notion(assessment.curve_notion).reading, shown_curve(assessment)
    return reading.positive if reading.about_confidence else name or called(assessment.pos_label)


def example(assessment: Assessment, *, unsure: bool = False) -> tuple[str, int] | None:
    """Return what the example score means, and 1 where it is significantly too high, -1 too low, else 0.

    The sentence begins with the interval if it is `unsure`.
    """
    curve, name, rejected = shown_curve(assessment)
    score = example_score(curve, rejected)
    if score is None:
        return None
    at: Point = curve.at(score)
    off = int(at.high < score) - int(at.low > score)
    if off and not rejected:  # the largest of many gaps, selected by noise
        return None
    share, low, high = in_100(*(float(each) for each in (at.value, at.low, at.high)))
    rows = f"of {get_notion(assessment.curve_notion).reading.scored} {score_text(score)}"
    rows += f" for {name}" if name else ""
    if unsure:
        best = share.removesuffix(" in 100")
        return f"{rows}, {low} to {high} may be {outcome(assessment)} (best guess {best})", off
    ends = f"{low} to {high.removesuffix(' in 100')}"
    return f"{rows}, an estimated {share} were {outcome(assessment)} ({ends})", off


def example_score(curve: ReliabilityCurve, rejected: bool) -> float | None:
    """Return the score to explain a curve by; None where no score has enough rows nearby.

    It is the one that is furthest off by the end of its band, where calibration is rejected and at least a
    tenth of the rows are off. Otherwise the extreme of many scores is selected by noise: there it is the one
    with most rows nearby.
    """
    scores = observed_scores(curve)
    at: Point = curve.at(scores)
    n_eff = np.where(np.isfinite(at.low), at.n_eff, 0.0)
    if not np.any(n_eff >= REPORT.assessed_rows):
        return None
    known = n_eff >= min(REPORT.example_rows, n_eff.max())
    rows = np.where(known, at.n_eff, 0.0)
    off = np.maximum(at.low - scores, scores - at.high)
    _, positive, negative = curve.by_outcome
    rare = REPORT.tolerance / REPORT.tolerance_per_rate
    if curve.label is not None and positive.sum() < rare * (positive.sum() + negative.sum()):
        off = off / np.maximum(np.minimum(scores, at.high), 1e-9)  # by ratio where the outcome is rare
    off = np.where(known, off, -np.inf)
    many = rejected and rows[off > 0].sum() >= OFF_SHARE * rows.sum()
    return float(scores[int(off.argmax() if many else rows.argmax())])


def score_ranges(assessment: Assessment, margin: float = 0.0) -> str:
    """Return where scores are too high or too low by more than a margin, look right, or have too few rows."""
    curve, _, rejected = shown_curve(assessment)
    scores = curve.score if curve.discrete else SCORES[(curve.support[0] <= SCORES)]
    at: Point = curve.at(scores)
    known = (at.n_eff >= REPORT.assessed_rows) & np.isfinite(at.low)
    low, high = at.low - margin, at.high + margin
    words = np.where(high < scores, "too high", np.where(low > scores, "too low", NO_ERROR))
    words = np.where(known, words if rejected else NO_ERROR, TOO_FEW)
    sure = np.isin(words, list(SIGNS))
    edges, counts = curve.histogram
    below = np.interp(scores, edges, np.concatenate([[0.0], np.cumsum(counts)]) / max(counts.sum(), 1e-300))
    below = np.append(below, 1.0)
    if not curve.discrete:
        _merge(words, at.value - scores, scores, below)
    width, share = at.high - at.low, np.diff(below) + 1e-9
    for word, a, b in _runs(words):
        if word == NO_ERROR and np.average(width[a:b], weights=share[a:b]) > REPORT.wide_interval:
            words[a:b] = TOO_FEW
    ranges: dict[str, list[tuple[float, str, float]]] = {}
    far, rare = np.abs(at.value - scores), bool(rare_ratio(assessment))
    if rare:  # differences of small scores and frequencies are small
        far = np.maximum(scores, at.value) / np.maximum(np.minimum(scores, at.value), SCORES[1])
    for word, first, end in _runs(words):
        largest = float(np.max(far[first:end][sure[first:end]], initial=0.0))
        width = scores[min(end, len(scores) - 1)] - scores[first]
        inner = first > 0 and end < len(scores) and not curve.discrete
        if word == TOO_FEW and width < SPARSE and inner:
            continue
        if curve.discrete:
            name = f"at {few_of([score_text(float(score)) for score in scores[first:end]])}"
        elif end == len(scores):
            name = f"above {score_text(float(scores[first]))}" if first else "everywhere"
        elif first == 0:
            name = f"below {score_text(float(scores[end]))}"
        else:
            name = f"from {score_text(float(scores[first]))} to {score_text(float(scores[end]))}"
        ranges.setdefault(word, []).append((largest, name, float(below[end] - below[first])))
    parts = []
    none = "no gap significantly exceeds the tolerance" if margin and rejected else NO_ERROR
    for word in ("too high", "too low"):
        # The largest gaps are named, in the order of the scores.
        kept = sorted(ranges.get(word, []), reverse=True)[:LISTED]
        if names := [each[1] for each in ranges.get(word, []) if each in kept]:
            up = "up to " * (not curve.discrete or int(np.sum(words == word)) > 1)
            size = f"{up}{kept[0][0]:.2g} times" if rare else f"by {up}{points(kept[0][0])} points"
            if not curve.discrete and size_name(curve.n) == "rows":
                size = f"{min(100 * sum(each[2] for each in kept), 99):.0f} % of the rows, {size}"
            parts.append(f"{word} {' and '.join(names)} ({size})")
    for word, begin in ((NO_ERROR, none), (TOO_FEW, f"{TOO_FEW} to tell")):
        if names := [name for _, name, _ in ranges.get(word, [])]:
            everywhere = "at every score" if begin == word else "at any score"
            parts.append(f"{begin} {few_of(names).replace('everywhere', everywhere)}")
    return "; ".join(parts)


def _runs(words: Array) -> list[tuple[str, int, int]]:
    """Return each run of equal words with its ends."""
    starts = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]])).tolist()
    return [(str(words[a]), a, b) for a, b in zip(starts, [*starts[1:], len(words)], strict=True)]


def _merge(words: Array, gap: Array, scores: Array, below: Array) -> None:
    """Merge ranges of one side where the curve between them stays on it, and ends with next to no rows."""
    runs = _runs(words.copy())
    for k, (word, a, b) in enumerate(runs):
        around = [runs[j][0] for j in (k - 1, k + 1) if 0 <= j < len(runs)]
        if word in SIGNS:
            continue
        side = next((each for each in around if each in SIGNS), NO_ERROR)
        between = around == [side, side] and not np.any(SIGNS.get(side, 0) * gap[a:b] > 0)
        end = len(around) == 1 and scores[b - 1] - scores[a] < SPARSE and below[b] - below[a] < END_SHARE
        if (end or between) if word == NO_ERROR else (end and side == NO_ERROR):
            words[a:b] = side


def observed_scores(curve: ReliabilityCurve) -> Array:
    """Return the scores that rows have: all of them where they are few, otherwise round ones and levels.

    Beside a level only the level itself is sure to occur.
    """
    if curve.discrete:
        return curve.score
    edges, counts = curve.histogram
    free = counts > 0
    free[_cell(edges, curve.common_scores)] = False
    return np.union1d(ROUND[free[_cell(edges, ROUND)]], curve.common_scores)


def _cell(edges: Array, scores: Array) -> Array:
    """Return the cell of a histogram that holds each score."""
    return np.minimum(np.searchsorted(edges, scores, side="right") - 1, edges.size - 2)


def balance(assessment: Assessment) -> str:
    """Return a sentence on mean confidence against accuracy, or on mean score against frequency."""
    notion = get_notion(assessment.curve_notion)
    by_class = notion.is_binary and not notion.reading.about_confidence
    b = assessment.balance if by_class or assessment.accuracy is None else assessment.accuracy
    if b is None:
        return ""
    sign = 1 if b.difference >= 0 else -1
    least, most = sorted((sign * b.low, sign * b.high))
    value, low, high = points_with_ends(abs(b.difference), least, most)
    told = f"too {'high' if sign > 0 else 'low'} by {value} points on average "
    told += f"({percent(assessment.level)} interval {low} to {high}; {counts(b)})"
    if b is assessment.accuracy:
        text = f"It is {100 * b.frequency:.1f} % accurate, and its confidence is {told}"
    else:
        text = f"The scores of {called(assessment.pos_label)} are {told}"
    if b.low <= 0 <= b.high:
        return f"{text}, a difference that chance can explain."
    ratio = rare_ratio(assessment) if by_class else ""
    text = f"{text}: {ratio}." if ratio else f"{text}."
    e, least = assessment.estimate, max(b.low, -b.high)
    if assessment.notion == assessment.curve_notion and e.low < least / 2:
        alone = f"By these totals alone the error is at least {points(least)} points"
        text = f"{text} {alone}; its interval, which does not rest on them alone, starts lower."
    return text


def rare_ratio(assessment: Assessment) -> str:
    """Return how many times too high or too low scores of a rare class are; empty if that is unsure."""
    b, clinical = assessment.balance, assessment.clinical
    if b is None or clinical is None or clinical.ratio is None or not 0 < b.frequency < REPORT.rare_frequency:
        return ""
    if get_notion(assessment.curve_notion).reading.about_confidence:
        return ""
    return "" if clinical.ratio.low <= 1 <= clinical.ratio.high else _times(clinical.ratio)


def performance(assessment: Assessment) -> str:
    """Return AUC and accuracy as a sentence, as far as they are known."""
    parts = [] if assessment.auc is None else [f"AUC {assessment.auc:.3f}"]
    if assessment.accuracy is not None:
        majority, share = common_class(assessment), f"{100 * assessment.accuracy.frequency:.1f} %"
        parts.append(f"{'accuracy' if parts else 'Accuracy'} {share}{majority and f' ({majority})'}")
    return f"{', '.join(parts)}." if parts else ""


def common_class(assessment: Assessment) -> str:
    """Return the accuracy of always predicting the most common of two classes; empty for other data."""
    b = assessment.balance
    if (
        b is None
        or len(assessment.classes) != 2
        or get_notion(assessment.curve_notion).reading.about_confidence
    ):
        return ""
    return f"always the most common class: {100 * max(b.frequency, 1 - b.frequency):.1f} %"


def counts(b: Balance) -> str:
    """Return how many rows have the outcome and how many the scores expect: counts, not rates.

    Rates would invite to compare their raw difference with the error, which is a posterior mean.
    """
    observed, n, expected = (count(round(number, 1)) for number in (b.observed, b.n, b.expected))
    return f"observed {observed} of {n}, expected {expected}"


def rejected_subgroups(assessment: Assessment) -> str:
    """Return for which groups or classes calibration is rejected, allowing for how many were looked at."""
    for what, rows in (("group", assessment.by_group), ("class", assessment.by_class)):
        if len(rows) < 2:
            continue
        bad = [row for row in rows if row.off(assessment.level)]
        others, others_bad, _ = (what == "class" and assessment.other_classes) or (0, 0, 0.0)
        n_bad, total = len(bad) + others_bad, len(rows) + others
        few = len([row for row in too_few_clusters(rows, assessment.level) if row not in bad])
        untested = f" {counted(few, what)} had too few clusters to be tested." if few else ""
        if not n_bad:
            return f"Calibration is rejected for none of the {total} {plural(what)}.{untested}"
        every = "both" if total == 2 else f"all {total}"
        rejected = every if n_bad == total else f"{n_bad} of {total}"
        if not bad:
            return f"Calibration is rejected for {rejected} {plural(what)}, all of them with small errors."
        largest = "the largest errors are " if len(bad) > LISTED else ""
        first = ", ".join(named_errors(bad[:LISTED], what))
        return f"Calibration is rejected for {rejected} {plural(what)}: {largest}{first}.{untested}"
    return ""


def too_few_clusters(rows: Sequence[SubgroupResult], level: float) -> list[SubgroupResult]:
    """Return the groups that no data could have rejected by themselves, having so few clusters.

    A test that looks at every way to turn the signs of k clusters has a p-value of at least 2^(1 - k).
    """
    exhaustive = (row for row in rows if row.estimate.n_resamples is None)
    return [row for row in exhaustive if len(rows) * row.estimate.p_floor >= 1 - level]


def decision(assessment: Assessment) -> list[str]:
    """Return what acting on the scores costs, and what to do about it; empty where no costs were given."""
    return [] if assessment.decision is None else assessment.decision.sentences


def cases(assessment: Assessment) -> str:
    """Return a sentence on how many of the cases the scores expect; empty where none is expected."""
    clinical = assessment.clinical
    if clinical is None or clinical.ratio is None:
        return ""
    event = next(kind.reading.event for name in assessment.estimates if (kind := get_notion(name)).is_binary)
    whose = f"that the {event}" if event else f"of {called(assessment.pos_label)}"
    ratio = clinical.ratio
    if ratio.value == 0:
        return f"The outcome does not occur, and the scores expect {count(round(clinical.expected, 1))}."
    chance = ", a difference that chance can explain" if ratio.low <= 1 <= ratio.high else ""
    return f"Summed over all rows, the scores {whose} are {_times(ratio)}{chance}."


def _times(ratio: IntervalEstimate) -> str:
    """Return how many times too high or too low scores are by an O:E ratio above 0, with its interval.

    >>> _times(IntervalEstimate(0.5, 0.4, 0.625)), _times(IntervalEstimate(1.5, 1.2, 1.9))
    ('2.00 times too high (1.60 to 2.50)', '1.50 times too low (1.20 to 1.90)')
    """
    if ratio.value >= 1:
        value, low, high = with_ends(ratio.value, ratio.low, ratio.high)
        return f"{value} times too low ({low} to {high})"
    value, low, high = with_ends(1 / ratio.value, 1 / ratio.high, np.inf if ratio.low == 0 else 1 / ratio.low)
    return f"{value} times too high ({low} {'or more' if ratio.low == 0 else f'to {high}'})"


def recommended(assessment: Assessment) -> bool:
    """Tell whether to recalibrate all scores: it is sure to help, and what the verdict is about."""
    finding, state = assessment.verdict.finding, assessment.verdict.state
    return recalibrating_helps(assessment) and finding in ("error", "cost") and state != "trust"


def recalibrating_helps(assessment: Assessment) -> bool:
    """Return whether calibration is rejected and a map is significantly better."""
    recalibration = assessment.recalibration
    return (
        recalibration is not None
        and recalibration.helps
        and is_rejected(assessment.estimate, assessment.level)
    )


def advice(assessment: Assessment) -> str:
    """Return one sentence on what recalibrating would do; empty where that is not known."""
    recalibration = assessment.recalibration
    if recalibration is None:
        return ""
    alone = recalibration.method != "auto"
    among = f"; with {counted(len(assessment.classes), 'class')} no other method was tried" if alone else ""
    if not recalibrating_helps(assessment):
        which = "No temperature" if alone else "No recalibration method"
        surely = "" if recalibration.gain.value <= 0 else " significantly"
        return f"{which} improves the held-out log loss{surely}{among}."
    removed, error = recalibration.before - recalibration.after.value, ""
    if removed > 0:
        error = f"remove {points(removed)} of {points(recalibration.before)} points{by_shown(assessment)}"
    # The verdict has the error before and after where it advises to recalibrate.
    parts = [error] if error and not recommended(assessment) else []
    if not np.isfinite(recalibration.gain.value):
        parts.append("make the log loss finite")
    elif recalibration.excess is not None and 0 < recalibration.excess < np.inf:
        share = (
            f"{100 * min(recalibration.gain.value / recalibration.excess, 1):.0f} % of the excess log loss"
        )
        parts.append(share if parts else f"remove {share}")
    what = " and ".join(parts) or error or "lower the log loss"
    if alone and recalibration.temperature is not None:
        return f"Dividing the logits by a temperature of {recalibration.temperature:.3g} would {what}{among}."
    finite = np.isfinite([recalibration.by_temperature, recalibration.gain.value]).all()
    simple = recalibration.by_temperature / recalibration.gain.value if finite else 0.0
    note = ""
    if recalibration.temperature is not None and simple >= WORTH_NAMING:
        percent = min(100 * simple, 100)
        note = f"; a temperature of {recalibration.temperature:.3g} does {percent:.0f} % of it"
    return f"Recalibrating would {what}{note}."


def gain_sentence(assessment: Assessment) -> str:
    """Return a sentence on the cross-validated gain with its interval; empty where there is none."""
    recalibration = assessment.recalibration
    if recalibration is None or not np.isfinite(recalibration.gain.value):
        return ""
    if recalibration.excess == np.inf:  # the gain leaves out the rows that make both infinite
        return "The log loss is infinite before and after recalibration: a class of probability 0 occurred."
    gain = recalibration.gain
    change = with_interval(-gain.value, -gain.high, -gain.low, assessment.level, "+")
    left = remaining_points(recalibration.after)
    return (
        f"Cross-validated in {counted(recalibration.folds, 'fold')} of "
        f"{counted(recalibration.rows, 'row')}, recalibration changes the log loss of a row by "
        f"{change}. After it, an error{by_shown(assessment)} of {left} is expected on new rows."
    )


def remaining_points(after: IntervalEstimate) -> str:
    """Return the error that recalibration is expected to leave, in points with its interval."""
    value, low, high = points_with_ends(after.value, after.low, after.high)
    return f"{value} points ({low} to {high})"


def by_shown(assessment: Assessment) -> str:
    """Return by which notion recalibrating is judged, where that is not the headline's."""
    shown = get_notion(assessment.curve_notion).reading.title
    return "" if assessment.curve_notion == assessment.notion else f" by the {shown} notion"


def adjusted_p(row: SubgroupResult) -> str:
    """Return the adjusted p-value of a row; a bound, where simulations can show none smaller."""
    return f"{'≤ ' * row.estimate.at_floor}{row.p_adjusted:.2g}"


def methods(assessment: Assessment) -> str:
    """Return what to write in a paper."""
    e, notion = assessment.estimate, get_notion(assessment.notion)
    title = notion.reading.title
    weighted = (
        ""
        if assessment.n == assessment.rows
        else f" (effective sample size {count(assessment.n)} under weights)"
    )
    how = (
        "the posterior mean under a Gaussian-process prior of the gap"
        if e.estimator.startswith("bayes")
        else f"the estimator {e.estimator}"
    )
    if e.clusters is None:
        tested = "simulated"
    else:
        weighted = f"{weighted} in {counted(e.clusters, 'cluster')}, which interval and test allow for,"
        tested = "simulated in the same clusters"
    p = p_text(e, "≤")
    value, low, high = with_ends(e.value, e.low, e.high)
    name = f"{title} notion, L1"
    interval = "from inverting its simulated sampling distribution"
    if notion.canonical:
        name += ": the mean of the sum over the classes of |frequency - score|"
    if e.at_least is not None:
        how = "the posterior mean over softmax maps of the scores, averaged with cross-fitted rows,"
        interval = "from posterior draws and the spread of rows held out"
        if e.lower_bound:
            interval += f", of the part of it that {len(assessment.classes)} classes let one see"
    if e.at_least:
        interval += (
            f"; it is at least {number(e.at_least)} (one-sided, {percent(e.level)}) by rows held out from "
            "all that was fitted"
        )
    many = max(len(assessment.by_class), len(assessment.by_group))
    adjusted = (
        " Intervals of classes and groups are Bonferroni-adjusted, their p-values by Benjamini and Hochberg."
        if many > 1
        else ""
    )
    return (
        f"Calibration was assessed on {counted(assessment.rows, 'prediction')}{weighted} with calibrant "
        f"{assessment.version}. The expected calibration error ({name}) was estimated "
        f"by {how} as {value}, with a {percent(e.level)} interval of {low} to {high} "
        f"{interval}; expected if calibrated: {number(e.null.mean)}; "
        f"{p} (H0: the model is calibrated), by a test that combines several statistics "
        f"({tested}, seed {assessment.seed})."
        f"{adjusted}"
    )
