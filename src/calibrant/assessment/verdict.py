"""The answer of an assessment: can the scores be trusted, where not, and what to do.

The rule is described in docs/report.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from calibrant.assessment import text
from calibrant.assessment.probability_transfer import pairs
from calibrant.inputs import Serializable, check_choice
from calibrant.inputs.codec import Bounds, Number
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import (
    count,
    counted,
    few_of,
    number,
    points,
    points_with_ends,
    short,
    with_ends,
)
from calibrant.settings import REPORT
from calibrant.tasks import get_notion

if TYPE_CHECKING:
    from calibrant.assessment.assessment import Assessment, Balance, SubgroupResult
    from calibrant.inference.result import Estimate
    from calibrant.tasks import Notion

TRUST, CARE, DISTRUST, UNKNOWN = STATES = ("trust", "trust with care", "do not trust", "cannot tell yet")
FINDINGS = ("error", "groups", "cost", "predictions")
# How the answer to "can the scores be trusted?" begins.
ANSWERS = {TRUST: "Yes", CARE: "Mostly", DISTRUST: "No", UNKNOWN: "Not known yet"}
# Costs are told per this many rows.
ROWS = 1000
#: A calibration error up to which scores are trusted.
Tolerance = Annotated[float, Bounds(0, 1, above=True)]


@dataclass(frozen=True)
class Verdict(Printed, Serializable):
    """Can the scores be trusted, where not, and what to do.

    Attributes
    ----------
    state : {"trust", "trust with care", "do not trust", "cannot tell yet"}
    finding : {"error", "groups", "cost", "predictions"}
        What decided: the calibration error, groups, the cost of decisions, or scores that are predictions.
    headline : str
        The answer in one short sentence.
    trust, where, action : str
        Can the scores be trusted, at which scores or for which classes or groups not, and what to do.
    reason : str
        The rule that was applied, with its numbers.
    tolerance : float
        The calibration error up to which scores are trusted.
    rows_needed : int or None
        Rows, in all, at which the interval would be narrow enough to decide, where it is not.
    command : str or None
        A shell command or a line of Python that does what is advised.
    """

    state: str
    finding: str
    headline: str
    trust: str
    where: str
    action: str
    reason: str
    tolerance: Tolerance
    rows_needed: Number | None = None
    command: str | None = None

    def _printed(self) -> Iterator[Block]:
        yield "verdict", f"{self.state}: {self.headline}"
        yield "trust", self.trust
        yield "where", self.where
        yield "action", self.action
        if self.command is not None:
            yield "command", self.command
        yield "reason", self.reason

    def _check_fields(self) -> None:
        """Refuse states and findings that do not exist."""
        check_choice("state", self.state, STATES)
        check_choice("finding", self.finding, FINDINGS)


def default_tolerance(notion: Notion, balance: Balance | None) -> float:
    """Return the tolerance: for rare outcomes of one class half of their base rate, otherwise 0.02."""
    if balance is None or not notion.is_binary or notion.reading.about_confidence:
        return REPORT.tolerance
    rarer = min(balance.observed, balance.n - balance.observed)
    return min(REPORT.tolerance, REPORT.tolerance_per_rate * max(rarer, 1.0) / balance.n)


def error_state(estimate: Estimate, tolerance: float) -> str:
    """Return what the interval of a calibration error says about a tolerance."""
    low, high = _ends(estimate)
    if high <= tolerance:
        return TRUST
    if low > tolerance:
        return DISTRUST
    return CARE if high <= 2 * tolerance else UNKNOWN


def rows_needed(rows: float, estimate: Estimate, tolerance: float) -> int | None:
    """Return the rows at which the interval is as narrow as the tolerance; None where no rows suffice.

    Such an interval decides wherever it lies. Its width decreases with the root of the number of rows.
    """
    low, high = _ends(estimate)
    needed = rows * ((high - low) / tolerance) ** 2
    if not math.isfinite(needed):
        return None
    scale = 10 ** max(math.floor(math.log10(needed)) - 1, 0)
    return math.ceil(needed / scale) * scale


def _ends(estimate: Estimate) -> tuple[float, float]:
    """Return the interval; with too many classes to see all of the error it has no upper end."""
    if estimate.lower_bound:
        return estimate.at_least or 0.0, math.inf
    return estimate.low, estimate.high


def verdict_of(assessment: Assessment) -> Verdict:
    """Return the verdict of an assessment; the largest finding that is sure decides."""
    state = error_state(assessment.estimate, assessment.tolerance)
    for finding in (_predictions, _groups, _cost):
        if (found := finding(assessment, state)) is not None:
            return found
    return _error(assessment, state)


def _error(assessment: Assessment, state: str) -> Verdict:
    """Return the verdict by the interval of the calibration error."""
    e, tolerance = assessment.estimate, assessment.tolerance
    needed = rows_needed(assessment.rows, e, tolerance) if state == UNKNOWN else None
    value, _, high = _points(assessment)
    rejected = text.is_rejected(e, assessment.level)
    headline = {
        TRUST: f"The scores are probabilities to within {high}.",
        CARE: f"The scores are off by {value} on average, and by no more than {high}.",
        DISTRUST: f"{text.deviation(assessment)} by {value}."
        if not (ratio := _ratio(assessment))
        else f"Scores of {text.called(assessment.pos_label)} are {ratio}.",
        UNKNOWN: "Not calibrated, but how far off is not known." if rejected else "Too few rows to tell.",
    }[state]
    if e.lower_bound:
        least = f"at least {points(e.at_least or 0.0)} points in sum"
        headline = (
            f"Class probabilities off by {least}." if state == DISTRUST else "Too many classes to tell."
        )
    action, command = _recalibration(assessment)
    if state == TRUST:
        action, command = "Leave the scores as they are.", None
    elif state == UNKNOWN:
        more = (
            f"collect about {count(needed)} rows in all ({count(assessment.rows)} so far)" if needed else ""
        )
        more += ", from more clusters" * (needed is not None and e.clusters is not None)
        more = more or "measure the class-wise error (notion='classwise'), which has an upper bound"
        first = f"{action.removesuffix('.')}; then " if command else ""
        action = f"{first}{more}."
        action = action[0].upper() + action[1:]
    elif state == CARE and command is None:
        action = f"Leave the scores as they are, if an error of {high} does no harm."
    return Verdict(
        state, "error", headline, _trust(assessment, state), _where(assessment, state), action,
        _reason(e, tolerance, state), tolerance, needed, command,
    )  # fmt: skip


def _predictions(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on scores that are all 0 or 1, unless they are right often enough."""
    if not assessment.hard_labels or state == TRUST:
        return None
    example = text.example(assessment)
    meaning = "" if example is None else f"; {example[0]}"
    return Verdict(
        state, "predictions", "These look like the output of predict(), not like probabilities.",
        f"{ANSWERS[state]}: every score is 0 or 1{meaning}.", "Everywhere: no score lies between 0 and 1.",
        "Pass the output of predict_proba() instead, and assess it.",
        f"every score is 0 or 1, and {_reason(assessment.estimate, assessment.tolerance, state)}",
        assessment.tolerance, None, "y_prob = model.predict_proba(X)",
    )  # fmt: skip


def _groups(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on groups that are off in opposite directions, or off while all rows are not."""
    tolerance, rows = assessment.tolerance, assessment.by_group
    high = [row for row in rows if row.gap is not None and row.gap.high < -tolerance]
    low = [row for row in rows if row.gap is not None and row.gap.low > tolerance]
    off = [row for row in rows if _ends(row.estimate)[0] > tolerance]
    whole = f"over all rows the error is {_interval(assessment.estimate)}"
    if high and low:
        state, headline = DISTRUST, f"Too high for {_names(high)}, too low for {_names(low)}."
        told = [f"{_name(row)}: too high by {_gap(row, -1)}" for row in high[:3]]
        told += [f"{_name(row)}: too low by {_gap(row, 1)}" for row in low[:3]]
        more, trust = len(high) + len(low) - len(told), f"No: {whole}, and groups are off in both directions."
        reason = "the mean gaps of groups in both directions exceed the tolerance"
    elif off and len(rows) > 1 and state != DISTRUST:
        state, headline = (CARE if state == TRUST else DISTRUST), f"Not calibrated for {_names(off)}."
        told = [f"{_name(row)}: off by {_interval(row.estimate)}" for row in off[:3]]
        more, trust = len(off) - len(told), f"Not for every group: {whole}."
        reason = "the error of a group exceeds the tolerance"
    else:
        return None
    by = assessment.grouped_by or "group"
    key = by if by.isidentifier() else "group"
    return Verdict(
        state, "groups", headline, trust,
        f"{'; '.join(told)}{f'; and {more} more' * (more > 0)}.",
        f"Calibrate by {short(by)}: fit one calibrator for each group.",
        f"{reason}, {tolerance:.3g}, by intervals that hold together for all groups", tolerance, None,
        f"calibrators = {{g: calibrant.Calibrator().fit(y_prob[{key} == g], y_true[{key} == g]) "
        f"for g in set({key})}}",
    )  # fmt: skip


def _cost(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on a decision regret that is sure, and material beside the cost."""
    if assessment.decision is None:
        return None
    lost, best = assessment.decision.regret, assessment.decision.best
    if lost.low <= 0 or lost.value < REPORT.material_regret * abs(lost.cost):
        return None
    value, low, high = with_ends(ROWS * lost.value, ROWS * lost.low, ROWS * lost.high)
    spent = f"of {number(ROWS * lost.cost)} per thousand rows"
    action, command = _recalibration(assessment)
    if best is not None and best.gain_low > 0:
        action = f"{action.removesuffix('.')}; or, on the scores as they are, {best.policy}."
    return Verdict(
        DISTRUST, "cost", f"Acting on these scores costs {value} more per thousand rows than necessary.",
        f"No: acting on them as if they were probabilities loses {value} ({low} to {high}) {spent}.",
        _where(assessment, DISTRUST), action,
        f"the interval of the decision regret, {low} to {high} per thousand rows, excludes 0",
        assessment.tolerance, None, command,
    )  # fmt: skip


def _trust(assessment: Assessment, state: str) -> str:
    """Return the answer to whether the scores can be trusted, with an example."""
    e, example = assessment.estimate, text.example(assessment)
    _, low, high = _points(assessment)
    facts = []
    if e.lower_bound:
        facts.append(
            f"the error is at least {points(e.at_least or 0.0)} points in sum, and has no upper bound"
        )
    elif state == TRUST:
        facts.append(f"on average the scores are within {high} of the observed frequencies")
    elif state == CARE:
        facts.append(f"the error may exceed {points(assessment.tolerance)} points, but not {high}")
    elif state == UNKNOWN:
        rejected = text.is_rejected(e, assessment.level)
        facts.append(
            f"{'they are off, by' if rejected else 'the error may be'} anything from {low} to {high}"
        )
    elif ratio := _ratio(assessment):
        facts.append(f"summed over all rows the scores are {ratio}")
    if example is not None and (state != DISTRUST or example[1]):
        facts.append(example[0])
    if not facts:
        facts.append(f"the scores are off by {_interval(e)} on average")
    return f"{ANSWERS[state]}: {'; '.join(facts)}."


def _ratio(assessment: Assessment) -> str:
    """Return how many times the scores of a rare class are off, where they are off to one side."""
    notion = get_notion(assessment.notion)
    one_sided = notion.is_binary and text.side(assessment.estimate, assessment.balance) != 0
    return text.rare_ratio(assessment) if one_sided else ""


def _where(assessment: Assessment, state: str) -> str:
    """Return at which scores, or for which classes, the scores are off."""
    notion, transfer = get_notion(assessment.notion), assessment.probability_transfer
    certain = transfer is not None and any(pair.low > 0 for pair in pairs(transfer, assessment.level))
    if certain and (sentence := text.transfer_sentence(assessment)):
        return sentence
    if notion.classwise:
        bad = [row for row in assessment.by_class if row.off(assessment.level)]
        if not bad:
            return "No class is off beyond doubt."
        names = ", ".join(f"{_name(row, 'class')} ({points(row.estimate.value)} points)" for row in bad[:3])
        more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
        return f"Off for {len(bad)} of {counted(len(assessment.by_class), 'class')}: {names}{more}."
    ranges = text.score_ranges(assessment, assessment.tolerance if state == TRUST else 0.0)
    return f"{ranges[0].upper()}{ranges[1:]}."


def _recalibration(assessment: Assessment) -> tuple[str, str | None]:
    """Return what to do about scores that are off, and the command."""
    recalibration = assessment.recalibration
    if recalibration is None:
        return "Recalibrate the scores on rows with labels, and assess them again.", None
    if not text.recalibrating_helps(assessment):
        many = counted(recalibration.rows, "row")
        return f"Collect more rows to recalibrate on: with {many} no method is sure to help.", None
    method = "" if recalibration.method == "auto" else repr(recalibration.method)
    command = recalibration.command or f"calibrator = calibrant.Calibrator({method}).fit(y_prob, y_true)"
    after = (
        f"{points(recalibration.before)} to {points(recalibration.after)} points{text.by_shown(assessment)}"
    )
    lowers = recalibration.after < recalibration.before
    return (f"Recalibrate: {after}." if lowers else "Recalibrate, which lowers the log loss."), command


def _reason(estimate: Estimate, tolerance: float, state: str) -> str:
    """Return the rule applied, with its numbers."""
    low, high = (number(end) if math.isfinite(end) else "unknown" for end in _ends(estimate))
    return {
        TRUST: f"the interval's upper end, {high}, is at most the tolerance, {tolerance:.3g}",
        CARE: f"the interval's upper end, {high}, exceeds the tolerance, {tolerance:.3g}, and not twice that",
        DISTRUST: f"the interval's lower end, {low}, exceeds the tolerance, {tolerance:.3g}",
        UNKNOWN: f"the interval, {low} to {high}, is too wide to decide on the tolerance, {tolerance:.3g}",
    }[state]


def _points(assessment: Assessment) -> tuple[str, str, str]:
    """Return the headline's error and the ends of its interval in points."""
    e = assessment.estimate
    unit = " points in sum" if get_notion(assessment.notion).canonical else " points"
    value, low, high = (f"{100 * x:.2g}" if x < 0.1 else points(x) for x in (e.value, e.low, e.high))
    return f"{value}{unit}", low, f"{high}{unit}"


def _interval(estimate: Estimate) -> str:
    value, low, high = points_with_ends(estimate.value, estimate.low, estimate.high)
    return f"{value} points ({low} to {high})"


def _gap(row: SubgroupResult, sign: int) -> str:
    """Return the size of the mean gap of a group, in its direction: as of all rows, the posterior mean."""
    assert row.gap is not None
    mean = row.estimate.mean_difference
    value = sign * (row.gap.value if mean is None else -mean)
    ends = sorted((sign * row.gap.low, sign * row.gap.high, value))
    middle, low, high = points_with_ends(value, ends[0], ends[-1])
    return f"{middle} points ({low} to {high})"


def _name(row: SubgroupResult, what: str = "group") -> str:
    return short(text.called(row.name, what), 24)


def _names(rows: Sequence[SubgroupResult]) -> str:
    return few_of([_name(row) for row in rows])
