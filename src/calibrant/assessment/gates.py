"""Limits on calibration: verdicts by confidence intervals, on all rows or on each group of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant import inputs
from calibrant.assessment.recalibration import excess_log_loss
from calibrant.curves import rename_classes
from calibrant.decisions import Regret, auc_of, deciding, oe_ratio_of, regret_of
from calibrant.inference.comparison import ErrorDifference, compare_tasks
from calibrant.inference.estimate import estimate
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.inference.multiplicity import each_level
from calibrant.inference.result import NAMES, Estimate, class_table
from calibrant.inputs import InputError, Predictions
from calibrant.inputs.clusters import matched_clusters
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import counted, few_of, number, percent, plural, sample_size, short, with_ends
from calibrant.parallel import parallel_map
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks import CalibrationTask, Notion, get_notion

if TYPE_CHECKING:
    from calibrant.sketch import Sketch

#: Exit codes by status, from the best to the worst.
CODES = {"pass": 0, "inconclusive": 3, "fail": 1}
#: What is measured for each limit, as it is called in `LimitVerdict.to_dict` and in tables.
LIMITS = {
    "max_ece": ("estimate", "ECE"),
    "max_regret": ("regret", "regret"),
    "max_oe": ("ratio", "O:E ratio"),
    "max_excess_log_loss": ("excess", "excess log loss"),
    "max_worse": ("difference", "ECE change"),
}
# Beyond this many rows nobody should be sent to find them, and rows of a printed table.
MOST_ROWS, LISTED = 1e9, 20

Rows: TypeAlias = "Predictions | Sketch"
Measured: TypeAlias = Estimate | Regret | ErrorDifference | IntervalEstimate


def status_of(low: float, high: float, most: float, least: float = -math.inf) -> str:
    """Return where an interval lies: "pass" within limits, "fail" outside of them, else "inconclusive".

    >>> status_of(0.01, 0.02, 0.02), status_of(0.03, 0.05, 0.02), status_of(0.01, 0.03, 0.02)
    ('pass', 'fail', 'inconclusive')
    """
    if low > most or high < least:
        return "fail"
    return "pass" if least <= low and high <= most else "inconclusive"


@dataclass(frozen=True)
class LimitVerdict:
    """A measurement with its interval, compared with a limit.

    `name` is one of `LIMITS`, and `subject` says what was measured; if that cannot be computed, `measured` is
    None and `remark` the reason. `inconclusive` is what an interval on both sides of the limit counts as, and
    `named` the estimate by another estimator, which does not decide. `cautions` are about this measurement,
    and `rarer` is the base rate of the rarer outcome for binary calibration errors.
    """

    name: str
    subject: str
    limit: float
    measured: Measured | None
    level: float
    n: float
    clusters: int | None = None
    group: str | None = None
    inconclusive: str | None = None
    named: Estimate | None = None
    remark: str = ""
    cautions: tuple[str, ...] = ()
    rarer: float | None = None

    @property
    def allowed(self) -> tuple[float, float]:
        """Smallest and largest value that are allowed; an O:E ratio is limited in both directions."""
        return (1 / self.limit if self.name == "max_oe" else -math.inf), self.limit

    @property
    def bound(self) -> str:
        """The values that are allowed, in words."""
        return f"{1 / self.limit:.4g} to {self.limit:g}" if self.name == "max_oe" else f"{self.limit:g}"

    @property
    def ends(self) -> tuple[float, float]:
        """The interval; with too many classes to see all of the error there is no upper end."""
        result = self.measured
        if result is None:
            return -math.inf, math.inf
        if getattr(result, "lower_bound", False):
            return (result.at_least or 0.0 if isinstance(result, Estimate) else result.low), math.inf
        return result.low, result.high

    @property
    def status(self) -> str:
        """Where the interval lies: "pass" within the limit, "fail" outside of it, else "inconclusive"."""
        return status_of(*self.ends, self.limit, self.allowed[0])

    @property
    def exit_code(self) -> int:
        """0, 1 or 3; what is inconclusive may count as one of the others."""
        status = self.status
        return CODES[self.inconclusive if status == "inconclusive" and self.inconclusive else status]

    @property
    def rows(self) -> float:
        """Guess the rows at which the interval would lie on one side, if the estimate stayed."""
        (low, high), value = self.ends, math.nan if self.measured is None else self.measured.value
        # An interval that starts at 0 is cut off there, so its lower part says little about its width.
        ratios = [
            (value - low if limit < value and low != 0 else high - value) / (abs(limit - value) or math.nan)
            for limit in self.allowed
            if low <= limit <= high and math.isfinite(limit)
        ]
        return math.inf if any(map(math.isnan, ratios)) else self.n * max(ratios, default=0.0) ** 2

    @property
    def size(self) -> str:
        """Number of rows, and of clusters."""
        return sample_size(self.n, self.clusters)

    @property
    def shown(self) -> tuple[str, str]:
        """The value and its interval."""
        result = self.measured
        if result is None or math.isinf(result.value):
            return "unknown" if result is None else "infinite", ""
        sign = "+" if self.name == "max_worse" else ""
        value, low, high = with_ends(result.value, result.low, result.high, sign)
        return value, f"{low} to {high}"

    @property
    def sentence(self) -> str:
        """The verdict without its first word."""
        (value, interval), result, status = self.shown, self.measured, self.status
        lower_bound, is_range = getattr(result, "lower_bound", False), self.name == "max_oe"
        value += " per row" * (self.name == "max_regret")
        value += f" ({percent(self.level)} interval {interval})" * bool(interval)
        if isinstance(result, Estimate):
            value += " of the part that can be estimated with so many classes" * lower_bound
            value += "" if result.at_least is None else f", at least {number(result.at_least)},"
        where = {
            "pass": "is within",
            "fail": "is outside of" if is_range else "is above",
            "inconclusive": "may be outside of" if is_range else "lies on both sides of",
        }[status]
        where = "may be above" if lower_bound and status == "inconclusive" else where
        text = f"{self.subject} {value} {where} {self.bound}; {self.size}{self.remark}"
        if result is None:
            text = f"{self.subject} is unknown: {self.remark}; {self.size}"
        if status == "inconclusive":
            text += f"; {self._advice(lower_bound)}" * (result is not None)
            text += f", counted as {self.inconclusive}" * (self.inconclusive is not None)
        if self.named is not None:
            text += f"; {self.named.estimator}: {number(self.named.value)} (the default interval decides)"
        return text

    def _advice(self, lower_bound: bool) -> str:
        if lower_bound and self.name == "max_regret":
            return "no rows show what so many classes lose"
        if lower_bound:
            return "no rows show that so many classes are within it, --notion classwise may"
        if math.isinf(self.ends[1]):
            return "rows of a single cluster cannot decide"
        if not self.rows <= MOST_ROWS:
            return "the estimate is so close to the limit that more rows would hardly decide"
        scale = 10 ** math.floor(math.log10(self.rows))
        rounded = math.ceil(self.rows / scale) * scale
        return f"roughly {counted(rounded, 'row')} would decide if the estimate stayed"

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text."""
        measured = {"value": None} if self.measured is None else self.measured.to_dict()
        return {
            "check": self.name,
            **({} if self.group is None else {"group": self.group}),
            "status": self.status,
            "exit_code": self.exit_code,
            "limit": self.limit,
            "value": measured["value"],
            LIMITS[self.name][0]: measured,
            **({} if self.named is None else {"named_estimate": self.named.to_dict()}),
        }


@dataclass(frozen=True)
class Gate(Printed):
    """The verdicts on all limits and groups, cautions, and the level at which all groups hold together."""

    verdicts: tuple[LimitVerdict, ...]
    notes: tuple[str, ...] = ()
    level: float = 0.95

    @property
    def worst_first(self) -> list[LimitVerdict]:
        """The verdicts; the first one decides."""
        return sorted(self.verdicts, key=lambda verdict: -[*CODES].index(verdict.status))

    @property
    def worst(self) -> LimitVerdict:
        """The verdict that decides."""
        return self.worst_first[0]

    @property
    def grouped(self) -> bool:
        """Whether the verdicts are about groups."""
        return self.verdicts[0].group is not None

    @property
    def sentence(self) -> str:
        """The result in one sentence, without its first word."""
        if len(self.verdicts) == 1:
            return self.worst.sentence
        statuses = [verdict.status for verdict in self.verdicts]
        words = {"fail": "failed", "inconclusive": "inconclusive", "pass": "passed"}
        parts = [f"{statuses.count(key)} {word}" for key, word in words.items() if key in statuses]
        subjects = list(dict.fromkeys(verdict.subject for verdict in self.verdicts))
        noun = "limit" if not self.grouped else "group" if len(subjects) == 1 else "verdict"
        text = f"{counted(len(statuses), noun)}, {', '.join(parts)}"
        if self.grouped:
            joint = f"the intervals of all groups hold together at {percent(self.level)}"
            text = f"{few_of(subjects, len(LIMITS))}: {text}; {joint}"
        counts_as = self.worst.inconclusive if self.worst.status == "inconclusive" else None
        return text if counts_as is None else f"{text}; counted as {counts_as}"

    @property
    def cautions(self) -> tuple[str, ...]:
        """What to know before the verdict is believed; groups that cannot be decided first."""
        few = {
            verdict.group: f"{short(verdict.group)} ({verdict.size})"
            for verdict in self.verdicts
            if verdict.group is not None
            and verdict.status == "inconclusive"
            and verdict.n < REPORT.few_group_rows
        }
        if not few:
            return self.notes
        others = tuple(verdict for verdict in self.verdicts if verdict.group not in few)
        noun = "group" if len(few) == 1 else plural("group")
        names = few_of([*few.values()], 10)
        text = f"Too few rows to decide (fewer than {REPORT.few_group_rows}): {noun} {names}."
        if others:
            text += f" Without {'it' if len(few) == 1 else 'them'}: {Gate(others).worst.status.upper()}."
        return text, *self.notes

    def table(self, most: int | None = None) -> Table:
        """Return a table of the verdicts, the worst first."""
        head = ["measure", "value", f"{percent(self.worst.level)} interval", "allowed", "rows", "verdict"]
        rows = [
            [LIMITS[each.name][1], *each.shown, each.bound, f"{round(each.n):,}", each.status]
            for each in self.worst_first[:most]
        ]
        if not self.grouped:
            return Table(head, rows, names=1)
        groups = [str(each.group) for each in self.worst_first]
        return Table(["group", *head], [[a, *row] for a, row in zip(groups, rows, strict=False)], names=2)

    def _printed(self) -> Iterator[Block]:
        """Yield what follows the first line."""
        if self.grouped:
            yield self.table(LISTED)
            if len(self.verdicts) > LISTED:
                yield f"{len(self.verdicts) - LISTED} more are {self.worst_first[LISTED].status} or better."
        elif len(self.verdicts) > 1:
            yield from (f"{verdict.status.upper()}: {verdict.sentence}" for verdict in self.verdicts)
        elif isinstance(self.worst.measured, Estimate):
            yield from class_table(self.worst.measured)
        yield from self.cautions

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text: the verdict that decides, all verdicts, and cautions."""
        every = [verdict.to_dict() for verdict in self.verdicts]
        return self.worst.to_dict() | {"verdicts": every, "cautions": list(self.cautions)}


@dataclass(frozen=True, eq=False)
class GateData:
    """Rows or a sketch; those of each group; names of the classes in results, and of the data in messages.

    Units tell which rows of a baseline are the same cases. They are cluster ids as they were given, or places
    in the file without clusters, of all rows (None) and of the rows of each group. `n_passed` is the number
    of rows of the file.
    """

    all_rows: Rows
    notion: Notion
    groups: Mapping[str, Rows] | None = None
    class_names: Mapping[Any, str] = field(default_factory=dict)
    name: str = "the baseline"
    units: Mapping[str | None, Array] = field(default_factory=dict)
    n_passed: int = 0

    def task(self, rows: Rows) -> CalibrationTask:
        """Return the calibration task of all rows, or of a group."""
        return CalibrationTask.of(rows, self.notion) if isinstance(rows, Predictions) else rows._task


def hold(
    data: GateData,
    limits: Mapping[str, float],
    *,
    inconclusive: str | None = None,
    level: float = 0.95,
    rng: Any = 0,
    norm: Any = "l1",
    **options: Any,
) -> Gate:
    """Compare rows, or each of their groups, with limits by confidence intervals.

    Intervals of groups hold together at `level` (Bonferroni), separately for each limit. One group that fails
    makes the gate fail.

    `limits` are, by name: "max_ece" of the calibration error; "max_regret" of the decision regret per row;
    "max_oe" of observed over expected outcomes and its inverse; "max_excess_log_loss" of what recalibration
    removes from the log loss; "max_worse" of the calibration error minus that of a baseline. `inconclusive`
    is "pass" or "fail" if an interval on both sides counts as that. `norm`, `level` and `rng` are those of
    `calibrant.estimate`, and `options` fields of `Measurements`.

    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(2000)
    >>> rows = GateData(inputs.predictions(rng.random(2000) < score**2, score), get_notion("binary"))
    >>> gate = hold(rows, {"max_ece": 0.02, "max_oe": 2})
    >>> gate.worst.status, [verdict.status for verdict in gate.verdicts]
    ('fail', ['fail', 'pass'])
    """
    parts: list[tuple[str | None, Rows]] = [(None, data.all_rows)]
    parts = parts if data.groups is None else [*data.groups.items()]
    each, seed = each_level(inputs.level(level), len(parts)), inputs.seeded(rng)
    measurements = Measurements(data, {"norm": norm, "level": each, "rng": seed}, **options)

    def verdicts(named_rows: tuple[str | None, Rows]) -> list[LimitVerdict]:
        group, rows = named_rows
        task = data.task(rows)
        about = {"level": each, "n": task.n, "clusters": task.clusters, "inconclusive": inconclusive}
        made = {name: getattr(measurements, name)(rows, task, group) for name in limits}
        return [LimitVerdict(name, limit=limits[name], group=group, **about | made[name]) for name in limits]

    every = tuple(verdict for each_part in parallel_map(verdicts, parts) for verdict in each_part)
    results = [verdict.measured for verdict in every if isinstance(verdict.measured, Estimate | Regret)]
    notes = [] if data.groups is not None else [caution for each in results for caution in each.cautions]
    task = data.task(data.all_rows)
    notes += [*task.cautions, *_discrimination(task, level)]
    if "max_oe" not in limits:
        notes += _within_reach_of_a_constant([verdict for verdict in every if verdict.name == "max_ece"])
    for verdict in every:
        group = "" if verdict.group is None else f"{short(verdict.group)}: "
        notes += [group + caution for caution in verdict.cautions]
    if isinstance(data.all_rows, Predictions) and inputs.decided(data.all_rows):
        notes.append(f"All scores are 0 or 1: {inputs.PREDICTED}.")
    return Gate(every, tuple(dict.fromkeys(notes)), level)


@dataclass(frozen=True, eq=False)
class Measurements:
    """What is measured for each limit: fields of its `LimitVerdict`, by a method with its name.

    `options` are norm, level and seed; `cost` and `labels` are those of `calibrant.regret`. Rows are paired
    with those of the `baseline` if they are the same cases. The value of another `estimator` does not decide.
    """

    data: GateData
    options: dict[str, Any]
    cost: Any = None
    labels: Any = None
    baseline: GateData | None = None
    estimator: Any = "auto"

    def _renamed(self, result: Any) -> Any:
        return rename_classes(result, self.data.class_names)

    def _subject(self, task: CalibrationTask, what: str | None = None) -> str:
        label = self.data.class_names.get(task.label, task.label)
        return f"{what or NAMES[self.options['norm']]} ({task.notion if label is None else f'class {label}'})"

    def max_ece(self, rows: Rows, task: CalibrationTask, group: str | None) -> dict[str, Any]:
        """Measure the calibration error."""
        made = {"subject": self._subject(task), "measured": self._renamed(estimate(task, **self.options))}
        if task.notion.is_binary and not task.notion.reading.about_confidence:
            rate = float(task.problems[0].bins(np.array([])).frequency[0])
            made["rarer"] = min(rate, 1 - rate)
        if self.estimator == "auto":
            return made
        if not isinstance(rows, Predictions):
            rows._check_bins(self.estimator)
        return made | {"named": self._renamed(estimate(task, estimator=self.estimator, **self.options))}

    def max_regret(self, rows: Rows, task: CalibrationTask, group: str | None) -> dict[str, Any]:
        """Measure the decision regret."""
        if isinstance(rows, Predictions):
            decision = deciding(rows, self.cost, labels=self.labels)
        else:
            decision = rows._decision_task(self.cost)
        result = regret_of(*decision, level=self.options["level"], seed=self.options["rng"])
        result = self._renamed(result)
        return {"subject": f"regret ({result.decision})", "measured": result, "n": result.n}

    def max_oe(self, rows: Rows, task: CalibrationTask, group: str | None) -> dict[str, Any]:
        """Measure observed over expected outcomes."""
        if task.notion.classwise or task.notion.canonical:
            rule = "go with one score of each row, as in the notions binary and confidence"
            raise InputError("max_oe", rule, got=f"the notion {task.notion}")
        ratio, subject = oe_ratio_of(task, level=self.options["level"]), self._subject(task, "O:E ratio")
        return {"subject": subject, "measured": ratio, "remark": "" if ratio else "every score is 0"}

    def max_excess_log_loss(self, rows: Rows, task: CalibrationTask, group: str | None) -> dict[str, Any]:
        """Measure what recalibration removes from the log loss."""
        if not isinstance(rows, Predictions):
            rule = "be left out for sums of rows: recalibration is cross-validated on rows"
            raise InputError("max_excess_log_loss", rule)
        excess = excess_log_loss(rows, level=self.options["level"], seed=self.options["rng"])
        remark = "" if excess else "there are too few rows, or only one class, for cross-validation"
        return {"subject": "excess log loss", "measured": excess, "remark": remark}

    def max_worse(self, rows: Rows, task: CalibrationTask, group: str | None) -> dict[str, Any]:
        """Measure the calibration error minus that of the baseline."""
        assert self.baseline is not None
        base, subject = self.baseline, f"{self._subject(task)} minus that of {self.baseline.name}"
        other = base.all_rows if group is None else (base.groups or {}).get(group)
        if other is None:
            return {"subject": subject, "measured": None, "remark": f"{base.name} has no rows of this group"}
        tasks = {"this": task, "baseline": base.task(other)}
        # The classes that an error is about; confidence is about none of them.
        (mine, classes), (theirs, others) = (
            (each.notion, {*each.labels} if each.notion.classwise or each.notion.canonical else {each.label})
            for each in tasks.values()
        )
        if mine != theirs or classes != others:
            rule, got = (
                f"notion {notion}" + f" of {inputs.show(*about)}" * (about != {None})
                for notion, about in ((mine, classes), (theirs, others))
            )
            raise InputError("baseline", f"have the same {rule}", got=got)
        unit, unit_of_row = self._common_units(rows, other, group)
        pairing: dict[str, Any] = {"paired": bool(unit), "unit_of_row": unit_of_row}
        comparison = compare_tasks(tasks, "baseline", **pairing, **self.options)
        its = comparison.estimates["baseline"]
        how = f"paired by {unit} with those" if unit else f"independent of {sample_size(its.n, its.clusters)}"
        remark = f", {how} of {base.name}"
        made = {"subject": subject, "measured": comparison.differences["this"], "remark": remark}
        return made | {"cautions": comparison.cautions}

    def _common_units(
        self, rows: Rows, other: Rows, group: str | None
    ) -> tuple[str, dict[str, Array] | None]:
        """Return what pairs two samples ("cluster", "row", or "" for nothing), and the unit of each row.

        Rows are the same cases if they stand at the same place of equally many, with equal weights and
        labels. Where answers are right or wrong, the labels are those of the model, and may differ. No units
        are returned if all rows are paired by their place.
        """
        assert self.baseline is not None
        if not (isinstance(rows, Predictions) and isinstance(other, Predictions)):
            return "", None
        mine, theirs = (each.units[group] for each in (self.data, self.baseline))
        if rows.cluster is None and self.data.n_passed != self.baseline.n_passed:
            # Of files with other groups beside this one, the places in the group are compared.
            if group is None or len(mine) != len(theirs):
                return "", None
            mine = theirs = np.arange(len(mine))
        units = matched_clusters({"this": mine, "baseline": theirs})
        shared, at, there = np.intersect1d(units["this"], units["baseline"], return_indices=True)
        if not shared.size:
            return "", None
        if rows.cluster is not None:
            return "cluster", units
        same = True
        if rows.weight is not None and other.weight is not None:  # read with the same options
            same = np.array_equal(rows.weight[at], other.weight[there])
        if not self.data.notion.correctness_pairs:
            labels = [np.array([str(label) for label in each.labels]) for each in (rows, other)]
            codes = rows.code[at].astype(np.intp), other.code[there].astype(np.intp)
            same = same and np.array_equal(labels[0][codes[0]], labels[1][codes[1]])
        if not same:
            return "", None
        return "row", None if shared.size == len(mine) == len(theirs) else units


def _within_reach_of_a_constant(verdicts: Sequence[LimitVerdict]) -> Iterator[str]:
    """Yield a sentence if the error of a constant score of 0 or 1 is within the limit of an error."""
    low = [each for each in verdicts if each.rarer and each.rarer <= each.limit]
    if not low:
        return
    rates = [number(each.rarer or 0.0) for each in low]
    where = f", {rates[0]}"
    if low[0].group is not None:
        groups = [f"{short(str(each.group))} ({rate})" for each, rate in zip(low, rates, strict=True)]
        where = f" in {few_of(groups, 10)}"
    yield (
        "A model that always predicts the more frequent outcome would pass: the limit "
        f"{low[0].limit:g} is not below the base rate of the rarer outcome{where}. Choose a lower limit, "
        "such as half of the base rate, or add --max-oe."
    )


def _discrimination(task: CalibrationTask, level: float) -> Iterator[str]:
    """Yield a sentence if no score of the task tells its outcomes apart."""
    tasks = (
        replace(task, notion=get_notion("binary"), make=partial(list, [each]), _cache={})
        for each in task.each()
    )
    if task.notion.canonical:
        tasks = (task.about_class(k) for k in range(len(task.labels)))
    each_class = each_level(level, task.notion.size(len(task.labels)))
    aucs = []
    for single in tasks:
        auc = auc_of(single, level=each_class)
        if auc is None or not auc.low <= 0.5 <= auc.high:
            return
        aucs.append(auc)
    if all(auc.low == auc.high for auc in aucs):
        yield "All scores are equal: they may be calibrated, but are useless to tell one row from another."
        return
    what = "for any class"
    if len(aucs) == 1:
        value, low, high = with_ends(aucs[0].value, aucs[0].low, aucs[0].high)
        what = f"(AUC {value}, {percent(level)} interval {low} to {high})"
    yield (
        f"Nothing shows that the scores tell the outcomes apart {what}: if they do not, they are useless "
        "however well calibrated."
    )
