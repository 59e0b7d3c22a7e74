"""The answer of an assessment: can the scores be trusted, where not, and what to do.

The rule is described in docs/report.md.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from calibrant.assessment import text
from calibrant.assessment.probability_transfer import pairs
from calibrant.inputs import Serializable, check_choice
from calibrant.inputs.codec import Level, Number
from calibrant.inputs.printed import Block, Printed
from calibrant.inputs.wording import (
    count,
    counted,
    few_of,
    number,
    percent,
    points,
    points_with_ends,
    short,
    with_ends,
)
from calibrant.settings import REPORT
from calibrant.tasks import get_notion

if TYPE_CHECKING:
    from calibrant.assessment.assessment import Assessment, Balance, SubgroupResult
    from calibrant.inference.interval_estimate import MeanGap
    from calibrant.inference.result import Estimate
    from calibrant.tasks import Notion

TRUST, CARE, DISTRUST, UNKNOWN = STATES = ("trust", "trust with care", "do not trust", "cannot tell yet")
FINDINGS = ("error", "groups", "cost", "predictions")
# How the answer to "can the scores be trusted?" begins.
ANSWERS = {TRUST: "Yes", CARE: "Mostly", DISTRUST: "No", UNKNOWN: "Not known yet"}
DO_NOTHING = "Leave the scores as they are."
# Costs are told per this many rows, and so many groups are named in each direction.
ROWS, LISTED = 1000, 3


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
        Shell commands or lines of Python that do what is advised.
    groups : tuple of str
        The groups that decided: with the largest error, or with that in each direction.
    """

    state: str
    finding: str
    headline: str
    trust: str
    where: str
    action: str
    reason: str
    tolerance: Level
    rows_needed: Number | None = None
    command: str | None = None
    groups: tuple[str, ...] = ()

    def _printed(self) -> Iterator[Block]:
        yield "verdict", f"{self.state}: {self.headline}"
        yield "trust", self.trust
        yield "where", self.where
        yield "action", self.action
        for k, line in enumerate((self.command or "").splitlines()):
            yield "" if k else "command", line
        yield "reason", self.reason

    def _check_fields(self) -> None:
        """Refuse states and findings that do not exist."""
        check_choice("state", self.state, STATES)
        check_choice("finding", self.finding, FINDINGS)


def default_tolerance(notion: Notion, balance: Balance | None, classes: int) -> float:
    """Return the tolerance: for rare outcomes half of their base rate, otherwise 0.02.

    The base rate of the class-wise error, a mean over the classes, is one over their number.
    """
    if notion.classwise:
        return min(REPORT.tolerance, REPORT.tolerance_per_rate / classes)
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
        if (result := finding(assessment, state)) is not None:
            break
    else:
        result = _error(assessment, state)
    named = rf"({percent(assessment.level)} interval \1)"  # the first interval says of what level it is
    return replace(result, trust=re.sub(r"\(([\d.]+[^()]* to [\d.]+[^()]*)\)", named, result.trust, count=1))


def _error(assessment: Assessment, state: str) -> Verdict:
    """Return the verdict by the interval of the calibration error."""
    e, tolerance, unit = assessment.estimate, assessment.tolerance, "points"
    if get_notion(assessment.notion).canonical:
        unit = "points in sum"
    value, low, high = points_with_ends(e.value, e.low, e.high)
    least, ratio = f"at least {points(e.at_least or 0.0)} {unit}", _ratio(assessment)
    sums, balance, answer = [], assessment.balance, ANSWERS[state]
    if ratio and balance is not None:
        counts = (count(round(number, 1)) for number in (balance.expected, balance.n, balance.observed))
        many = "the scores add up to {} expected cases in {} rows, and there were {}".format(*counts)
        sums = [f"{many}: on average they are {ratio}"]
    rejected = text.is_rejected(e, assessment.level)
    action, command = _recalibration(assessment)
    needed, facts = None, []
    if state == TRUST:
        headline, action, command = f"The scores are probabilities to within {high} {unit}.", DO_NOTHING, None
        facts = [f"on average the scores are within {high} {unit} of the observed frequencies", *sums]
    elif state == CARE:
        headline = f"The scores are off by at most {high} {unit} on average."
        facts = [f"the error may exceed {100 * tolerance:.3g} {unit}, but not {high}", *sums]
        if command is None:
            action = f"{DO_NOTHING[:-1]}, if an error of {high} {unit} does no harm."
    elif state == DISTRUST:
        wrong = text.deviation(assessment)
        mean = " on average" * (not get_notion(assessment.notion).canonical)
        if get_notion(assessment.notion).classwise:
            mean += f", of a mean probability of {points(1 / len(assessment.classes))}"
        headline = f"{wrong} by {least if e.lower_bound else f'{value} {unit}'}{mean}."
        facts = sums
    elif e.lower_bound:
        headline, facts = "Too many classes to tell.", [f"the error is {least}, and has no upper bound"]
        action, command = "Measure the class-wise error (notion='classwise'), which has an upper bound.", None
    else:
        answer, many = "Not yet" if rejected else answer, counted(assessment.rows, "row")
        beyond, known = "whether the scores are off", "calibration is not rejected"
        if rejected:
            beyond, known = "how far off the scores are", "the scores are probably off"
        headline = f"{many} are too few to tell {beyond}."
        span = f"up to {high}" if e.low < 0.0005 else f"from {low} to {high}"
        facts = [f"{known}, but the average error could be anything {span} {unit}"]
        needed = rows_needed(assessment.rows, e, tolerance)
        assert needed is not None  # the interval has an upper end
        sofar = f"{count(assessment.rows)} so far{', from more clusters' * (e.clusters is not None)}"
        more = f"ollect about {count(needed)} rows in all ({sofar}): the average error is then"
        if needed > 4 * assessment.rows:
            half = f"{count(4 * assessment.rows)} would halve today's uncertainty"
            more = f"ollect more rows ({sofar}): {half}; with about {count(needed)} the average error is"
        more += f" known to within {100 * tolerance:.2g} {unit}, the tolerance."
        action = f"{action} Then c{more}" if command else f"C{more}"
        action += " Until then do not read the scores as probabilities."
    if ratio and state in (CARE, DISTRUST):
        times, words = ratio.partition(" (")[0].split(" ", 1)
        headline = f"Scores of {text.called(assessment.pos_label)} are {float(times):.2g} {words} on average."
    example = text.example(assessment)
    if example is not None and (state not in (DISTRUST, UNKNOWN) or example[1]):
        facts.append(example[0])
    said = "; ".join(facts) or f"the scores are off by {least if e.lower_bound else _interval(e)} on average"
    return Verdict(
        state, "error", headline, f"{answer}: {said}.", _where(assessment, state), action,
        _reason(e, tolerance, state), tolerance, needed, command,
    )  # fmt: skip


def _predictions(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on scores that are all 0 or 1, unless they are right often enough."""
    if not assessment.hard_labels or state == TRUST:
        return None
    example, what = text.example(assessment), "are" if state == DISTRUST else "look like"
    return Verdict(
        state, "predictions", f"These {what} yes/no labels, not probabilities.",
        f"{ANSWERS[state]}: every score is 0 or 1{f'; {example[0]}' if example else ''}.",
        "Everywhere: no score lies between 0 and 1.",
        "You probably passed the output of predict(). Run the report again with that of predict_proba().",
        f"every score is 0 or 1, and {_reason(assessment.estimate, assessment.tolerance, state)}",
        assessment.tolerance, None, "y_prob = model.predict_proba(X)",
    )  # fmt: skip


def _groups(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on groups that are off in opposite directions, or off while all rows are not."""
    tolerance, rows, all_rows = assessment.tolerance, assessment.by_group, _interval(assessment.estimate)
    trust = f"Not for every group, though over all rows the error is {all_rows}."
    high = [row for row in rows if row.gap is not None and row.gap.high < -tolerance]
    low = [row for row in rows if row.gap is not None and row.gap.low > tolerance]
    off = [row for row in rows if _ends(row.estimate)[0] > tolerance]
    if high and low:
        answer, headline = DISTRUST, f"Too high for {_names(high)}, too low for {_names(low)}."
        named = [(row, row.gap) for row in (*high[:LISTED], *low[:LISTED]) if row.gap is not None]
        told = [f"{text.row_name(row)}: too {_signed(gap)}" for row, gap in named]
        more, reason = len(high) + len(low) - len(told), "the mean gaps of groups in both directions exceed"
        shown, qualifier = [high[0].name, low[0].name], " in part" * (state == DISTRUST)
        is_small = "is" if qualifier else "looks small,"
        trust = f"Not for every group: over all rows the error {is_small} {all_rows}, "
        trust += f"because the errors of these groups cancel{qualifier}."
    elif off and len(rows) > 1 and state != DISTRUST:
        answer, headline = CARE if state == TRUST else DISTRUST, f"Not calibrated for {_names(off)}."
        told = [f"{text.row_name(row)}: off by {_interval(row.estimate)}" for row in off[:LISTED]]
        more, reason = len(off) - len(told), "the error of a group exceeds"
        shown = [row.name for row in off[:2]]
    else:
        return None
    wrong = [row for row in rows if row in (*high, *low, *off) or row.off(assessment.level)]
    by, fine = assessment.grouped_by or "group", len(rows) - len(wrong)
    action = f"Calibrate by {short(by)}: fit a calibrator for each of the {len(rows)} groups on its own rows."
    if fine:
        others = f"the other {counted(fine, 'group') if fine > 1 else 'group'}"
        told.append(f"no clear error in {others}")
    few = fine and len(wrong) <= 2 * LISTED
    if few:
        action = f"Calibrate {_names(wrong)}, each on its own rows. "
        action += f"Leave {others} as {'they are' if fine > 1 else 'it is'}."
    key = by if by.isidentifier() else "group"
    which = [row.name for row in wrong] if few else f"set({key})"
    command: str | None = f"""{key} = {key}.astype(str)
calibrators = {{g: calibrant.Calibrator().fit(
    y_prob[{key} == g], y_true[{key} == g])
    for g in {which}}}
calibrators[{wrong[0].name!r}].predict_proba(new_scores)  # of {text.row_name(wrong[0])}"""
    if assessment.command is not None:  # the command line reads files, and has no filter of rows
        action += " Write the rows of each group to a file, and run calibrant calibrate fit for each file."
        command = None
    return Verdict(
        answer, "groups", headline, trust,
        f"{'; '.join(told)}{f'; and {more} more' * (more > 0)}.",
        action,
        f"{reason} the tolerance of {100 * tolerance:.3g} points, by intervals that hold for all groups",
        tolerance, None, command, tuple(shown),
    )  # fmt: skip


def _cost(assessment: Assessment, state: str) -> Verdict | None:
    """Return the verdict on a decision regret that is sure, and material beside the cost."""
    if assessment.decision is None:
        return None
    lost, best = assessment.decision.regret, assessment.decision.best
    if lost.low <= 0 or lost.value < REPORT.material_regret * abs(lost.cost):
        return None
    value, low, high = with_ends(ROWS * lost.value, ROWS * lost.low, ROWS * lost.high)
    action, command = _recalibration(assessment)
    recovered, helps = number(ROWS * lost.recovered), command is not None and lost.recovered > 0
    held_out = f"of these {value} units per 1,000 rows, on held-out rows"
    if helps:
        action = f"Recalibrate: saves {recovered} {held_out}."
    acting, where, wrong = "acting on them", _where(assessment, DISTRUST), text.deviation(assessment)
    headline = "Acting on the scores" if wrong.endswith("off") else f"{wrong}: acting on them"
    if lost.threshold is not None:
        (alarm, _), (_, miss) = lost.matrix
        acting = f"with costs of {alarm:.6g} per false alarm and {miss:.6g} per miss, "
        acting += f"acting when the score is at least {lost.threshold:.3g}"
    if best is not None and best.gain_low > 0:
        saved = number(ROWS * best.gain)
        action = (
            f"{best.policy.capitalize()}: saves {saved} {held_out}. The scores are still not probabilities."
        )
        if helps:
            acts = f"{best.policy} (saves {'the same' if saved == recovered else saved})"
            action = f"Recalibrate and keep acting from {best.implied_threshold:.3g}: saves {recovered} "
            action += f"{held_out}. If you cannot, {acts}; the scores are then still not probabilities."
        if 0 < best.value < math.inf:
            ends = [f"{end:.3g}" for end in sorted((best.implied_threshold, best.value))]
            late = best.value < best.implied_threshold
            if late == (text.side(assessment.estimate, assessment.balance) > 0):
                headline = "Acting on the scores"  # at the threshold the scores are off to the other side
            kind = "do not trigger the action but should" if late else "trigger the action but should not"
            where = f"Scores from {' to '.join(ends)} {kind}. {where}"
    return Verdict(
        DISTRUST, "cost", f"{headline} costs {value} units more per 1,000 rows than needed.",
        f"No: {acting} costs {number(ROWS * lost.cost)} units per 1,000 rows, of which calibrated scores "
        f"would save an estimated {value} ({low} to {high}).",
        where, action,
        f"the interval of the decision regret, {low} to {high} units per 1,000 rows, excludes 0",
        assessment.tolerance, None, command,
    )  # fmt: skip


def _ratio(assessment: Assessment) -> str:
    """Return how many times the scores of a rare class are off, where they are off to one side."""
    one_sided = text.side(assessment.estimate, assessment.balance) != 0
    return text.rare_ratio(assessment) if one_sided and get_notion(assessment.notion).is_binary else ""


def _where(assessment: Assessment, state: str) -> str:
    """Return at which scores, or for which classes, the scores are off."""
    transfer = assessment.probability_transfer
    certain = transfer is not None and any(pair.low > 0 for pair in pairs(transfer, assessment.level))
    if certain and (sentence := text.transfer_sentence(assessment)):
        return sentence
    if get_notion(assessment.notion).classwise:
        bad = [row for row in assessment.by_class if row.off(assessment.level)]
        if not bad:
            return "No class is significantly miscalibrated."
        names = few_of(text.named_errors(bad, "class"))
        return f"Off for {len(bad)} of {counted(len(assessment.by_class), 'class')}: {names}."
    ranges = text.score_ranges(assessment, assessment.tolerance if state == TRUST else 0.0)
    one_sided = "too high" in ranges or "too low" in ranges
    if state == DISTRUST and not one_sided:
        return "Not significant at any single score, but over all rows together."
    if state == UNKNOWN and not one_sided:
        near = text.example(assessment, unsure=True)
        shown = f" For example, {near[0]}." if near else ""
        return f"Cannot say: too few rows to tell at which scores.{shown}"
    subgroups = text.off_subgroups(assessment) if state != UNKNOWN else ""
    return f"{ranges[0].upper()}{ranges[1:]}. {subgroups}".rstrip()


def _recalibration(assessment: Assessment) -> tuple[str, str | None]:
    """Return what to do about scores that are off, and the command."""
    action, command = _common_recalibration(assessment)
    left = _left_off(assessment)
    if command is not None and left:
        told = few_of([f"{name} too {_signed(gap)}" for name, gap in left.items()])
        action += f" That leaves {told}: calibrate {'each' if len(left) > 1 else 'it'} on its own rows."
    return action, command


def _left_off(assessment: Assessment) -> dict[str, MeanGap]:
    """Return mean gaps of groups that one recalibration of all rows leaves too large, the largest first."""
    gaps = {text.row_name(row): row.difference for row in assessment.by_group if row.difference is not None}
    off = [name for name, gap in gaps.items() if max(gap.low, -gap.high) > assessment.tolerance]
    return {name: gaps[name] for name in sorted(off, key=lambda name: -abs(gaps[name].value))}


def _common_recalibration(assessment: Assessment) -> tuple[str, str | None]:
    """Return what one recalibration of all rows does, and the command."""
    recalibration = assessment.recalibration
    if recalibration is None:
        return "Recalibrate the scores on rows with labels, and assess them again.", None
    if not text.recalibrating_helps(assessment):
        many = counted(recalibration.rows, "row")
        return f"Collect more rows to fit a calibrator: with {many} no method is sure to help.", None
    method = "" if recalibration.method == "auto" else f'"{recalibration.method}"'
    clusters = ", cluster=cluster" * (assessment.estimate.clusters is not None)
    fit = f"calibrator = calibrant.Calibrator({method}).fit(y_prob, y_true{clusters})"
    command = f"{fit}\ncalibrator.predict_proba(new_scores)"
    if recalibration.command is not None:
        command = "\n".join(filter(None, (recalibration.command, recalibration.apply_command)))
    e, after = assessment.estimates[assessment.curve_notion], recalibration.after
    if after.value >= e.value:
        return "Recalibrate, fitting on these rows: lowers the log loss.", command
    before, _, _ = points_with_ends(e.value, e.low, e.high)
    left = text.remaining_points(after)
    cut = f"Recalibrate, fitting on these rows: cuts the error from {before} to {left}"
    if shown := text.by_shown(assessment):
        cut += shown
    else:
        tolerance = assessment.tolerance
        where = "within" if after.value <= tolerance else "above"
        where = where if after.high <= tolerance or after.low > tolerance else f"probably {where}"
        cut += f", {where} the tolerance of {100 * tolerance:.3g} points"
    times = _ratio(assessment).partition(" (")[0].split(" ", 1)
    if len(times) == 2 and (ratio := recalibration.ratio):
        cut += f", on average from {float(times[0]):.2g} {times[1]} to {ratio:.3g} times too low or high"
    return f"{cut} (expected on new rows).", command


def _reason(estimate: Estimate, tolerance: float, state: str) -> str:
    """Return the rule applied, with its numbers."""
    low, high = (f"{100 * x:.3g}" if math.isfinite(x) else "unknown" for x in _ends(estimate))
    limit = f"the tolerance of {100 * tolerance:.3g} points"
    return {
        TRUST: f"the interval's upper end, {high} points, is at most {limit}",
        CARE: f"the interval's upper end, {high} points, exceeds {limit}, but not twice that",
        DISTRUST: f"the interval's lower end, {low} points, exceeds {limit}",
        UNKNOWN: f"the interval, {low} to {high} points, is too wide to decide on {limit}",
    }[state]


def _interval(estimate: Estimate) -> str:
    return _in_points(estimate.value, estimate.low, estimate.high)


def _in_points(*numbers: float) -> str:
    value, low, high = numbers
    middle, left, right = points_with_ends(value, low, high)
    return f"{middle} points ({left} to {right})"


def _signed(gap: MeanGap) -> str:
    """Return the direction and the size of a mean gap."""
    if gap.value > 0:
        return f"low by {_in_points(gap.value, gap.low, gap.high)}"
    return f"high by {_in_points(-gap.value, -gap.high, -gap.low)}"


def _names(rows: Sequence[SubgroupResult]) -> str:
    return few_of([text.row_name(row) for row in rows])
