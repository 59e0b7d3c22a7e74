"""Everything one asks of a model's scores, in one object."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

from calibrant.assessment import text
from calibrant.assessment.decomposition import Score
from calibrant.assessment.probability_transfer import pairs, predicted
from calibrant.assessment.recalibration import RecalibrationGain
from calibrant.assessment.verdict import Verdict, verdict_of
from calibrant.curves import ByClass, ReliabilityCurve, ReliabilityDiagram
from calibrant.curves.histogram import Edges, Rows
from calibrant.curves.shown import Page
from calibrant.decisions import Clinical, Decision
from calibrant.inference.interval_estimate import IntervalBounds, IntervalEstimate, MeanGap
from calibrant.inference.multiplicity import each_level
from calibrant.inference.result import Estimate, estimate_table
from calibrant.inputs import ROUNDING, InputError, Serializable
from calibrant.inputs.codec import (
    Amount,
    Bounds,
    Count,
    Level,
    Number,
    Probability,
    Shape,
    Size,
    check_lengths,
    check_order,
)
from calibrant.inputs.printed import Block, Table
from calibrant.inputs.wording import count, number, percent, plural, with_ends
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.tasks.notions import curve_notion, get_notion

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Classes, the worst first, whose curves and diagrams are computed at once and stored.
N_CURVES = 12
#: Classes, the worst first, that an assessment has intervals of.
N_CLASSES = 100

# Rows of a table that are printed.
MOST_ROWS = 12


@dataclass(frozen=True)
class Balance(Serializable):
    """Mean score against frequency.

    Attributes
    ----------
    n : float
        Number of rows; the effective number under weights.
    observed, expected : float
        How many of them have the outcome, and the sum of their scores.
    difference : float
        Posterior mean of score minus frequency. Like the calibration error it is shrunk towards 0, and its
        size is never above the error. The raw difference, (expected - observed) / n, may be.
    low, high : float
        Interval of the difference.
    """

    n: Size
    observed: Amount
    expected: Amount
    difference: float
    low: float
    high: float

    @property
    def frequency(self) -> float:
        """Share of the outcome."""
        return self.observed / self.n

    def _check_fields(self) -> None:
        """Refuse more outcomes than rows, and an interval that does not hold the difference."""
        bounds = Bounds(0, self.n * (1 + ROUNDING))
        bounds.check("observed", self.observed)
        bounds.check("expected", self.expected)
        check_order(self, "low", "difference", "high")


@dataclass(frozen=True, eq=False)
class Odds:
    """Scores for an axis of log odds, which keeps those near 0 and 1 apart.

    Attributes
    ----------
    edges, counts : arrays
        Histogram over cells of equal log odds; the edges are scores.
    diagram : ReliabilityDiagram
        Bins of equal mass.
    """

    edges: Edges
    counts: Rows
    diagram: ReliabilityDiagram

    def _check_fields(self) -> None:
        """Refuse counts that are not as many as cells."""
        check_lengths(self, len(self.edges) - 1, "counts")


@dataclass(frozen=True)
class SubgroupResult(Serializable):
    """One class or group among several.

    Attributes
    ----------
    name : str
    rows : float
        Rows of the group, or of the class.
    observed, expected : float
        How many of the rows compared have the outcome, and the sum of their scores.
    estimate : Estimate
        Its interval has a level such that all rows' intervals hold together.
    p_adjusted : float
        Its p-value, adjusted for the share of false alarms among all rows (Benjamini and Hochberg).
    gap : MeanGap or None
        The mean gap, at the level of the estimate; None where several scores a row are compared.
    curve : ReliabilityCurve or None
        The curve of one of the worst 12 groups; those of classes are in `Assessment.curves`.
    difference : MeanGap or None
        Difference from the common recalibration: the part of the mean gap of a group that one recalibration
        of all rows does not explain; the intervals of all groups hold together. None for groups of fewer than
        30 rows, for several scores a row, and where the rows are not known.
    ratio : IntervalEstimate or None
        O:E ratio of a group, at the level of the estimate. None for classes, and for several scores a row.
    """

    name: str
    rows: Amount
    observed: Amount
    expected: Amount
    estimate: Estimate
    p_adjusted: Probability
    gap: MeanGap | None = None
    curve: ReliabilityCurve | None = None
    difference: MeanGap | None = None
    ratio: Annotated[IntervalEstimate, IntervalBounds(0)] | None = None

    def off(self, level: float) -> bool:
        """Tell whether calibration is rejected, allowing for how many were looked at."""
        return self.p_adjusted < 1 - level

    def _check_fields(self) -> None:
        """Refuse more outcomes than rows."""
        bounds = Bounds(0, self.estimate.n * (1 + ROUNDING))
        bounds.check("observed", self.observed)
        bounds.check("expected", self.expected)


class OtherClasses(NamedTuple):
    """Classes that are not among those with the largest errors, and have no intervals.

    Attributes
    ----------
    n_classes, rejected : int
        Number of these classes, and for how many of them calibration is rejected (p-values adjusted).
    max_error : float
        The largest of their errors.
    """

    n_classes: Count
    rejected: Count
    max_error: Probability

    @property
    def sentence(self) -> str:
        """What is said about these classes."""
        return (
            f"Intervals are computed for the {N_CLASSES} classes with the largest errors only. The errors of "
            f"the other {self.n_classes} are at most {number(self.max_error)}; calibration is rejected for "
            f"{self.rejected or 'none'} of these."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Assessment(Page, Serializable):
    """How far a model's scores are from probabilities: numbers, pictures, words.

    Attributes
    ----------
    notion : str
        The notion of the headline; `estimate` is its.
    estimates, curves, diagrams : mappings
        By notion; the canonical notion has no curve and no diagram. Those of classes beyond the worst 12
        are computed from the scores, which stay in memory, at the first access; they are not stored.
    log_odds : Odds
        The scores of `curve` (class-wise, those of the worst class) for an axis of log odds.
    by_estimator : mapping
        The error of the notion `curve_notion` by `auto` and by the paper's five estimators.
    by_class, by_group : tuples of Row
        The worst first; intervals and p-values allow for looking at many. With more than 100 classes,
        those with the 100 largest errors.
    other_classes : OtherClasses or None
        What is known of the classes that are not in `by_class`. Their estimates in
        `estimates["classwise"].by_class` are computed at the first access, and are not stored.
    balance : Balance or None
        Mean score against frequency; for the confidence notion mean confidence against accuracy, and for
        the class-wise one too, if it is known.
    accuracy : Balance or None
        Mean confidence against the share of right predictions; None where a sketch does not know it.
    scores : tuple of Score
        Brier score and log loss with their parts.
    cautions : tuple of str
        What a reader should know about the data.
    rows, n : int, float
        Rows, and their effective number under weights.
    classes : tuple of str
        Names to show, in the order of the columns.
    pos_label : str or None
        Name of the class that the notion `binary` is about.
    tolerance : float
        The calibration error up to which the verdict trusts the scores.
    level, seed, created, digest, name, command, version
        Level of all intervals, seed of the simulations, date, SHA-256 of the data, name of the data,
        the command that wrote it, version of calibrant.
    recalibration : RecalibrationGain or None
        What recalibrating would do to the error of `curve_notion`; None without rows, as of a sketch.
    probability_transfer : ProbabilityTransfer or None
        For the canonical notion of 3 to 12 classes, which of them take probability from which, and at
        which predictions; in the order of `classes`.
    clinical : Clinical or None
        Clinical measures: O:E ratio, calibration intercept and slope, E50 and E90; if one class, or pairs,
        are among what was assessed.
    decision : Decision or None
        What acting on the scores costs, where costs were given.
    auc : float or None
        Area under the ROC curve of the positive class, with ties counted half; None without rows and for
        other notions.
    hard_labels : bool
        Whether every score is 0 or 1, as `predict()` gives them.
    grouped_by : str or None
        Name of the column of the groups.

    See Also
    --------
    assess : Returns this result.
    Estimate : A calibration error alone.

    Examples
    --------
    >>> import calibrant
    >>> assessment = calibrant.assess([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> assessment.verdict.state
    'do not trust'
    >>> assessment.auc
    1.0
    """

    _page_by = "page"
    _computed: ClassVar[tuple[str, ...]] = ("value",)
    _worded: ClassVar[tuple[str, ...]] = ("verdict", "advice", "remarks")
    notion: str
    estimates: Mapping[str, Estimate]
    curves: Mapping[str, ReliabilityCurve | ByClass[ReliabilityCurve]]
    diagrams: Mapping[str, ReliabilityDiagram | ByClass[ReliabilityDiagram]]
    log_odds: Odds
    by_estimator: Mapping[str, Estimate]
    by_class: tuple[SubgroupResult, ...]
    by_group: tuple[SubgroupResult, ...]
    balance: Balance | None
    accuracy: Balance | None
    scores: tuple[Score, ...]
    cautions: tuple[str, ...]
    rows: Number
    n: Size
    classes: tuple[str, ...]
    pos_label: str | None
    tolerance: Level
    level: Level
    seed: Count
    created: str
    digest: str
    version: str
    name: str | None = None
    command: str | None = None
    recalibration: RecalibrationGain | None = None
    probability_transfer: ProbabilityTransfer | None = None
    clinical: Clinical | None = None
    decision: Decision | None = None
    auc: Probability | None = None
    hard_labels: bool = False
    grouped_by: str | None = None
    other_classes: OtherClasses | None = None

    @property
    def estimate(self) -> Estimate:
        """The headline's estimate."""
        return self.estimates[self.notion]

    @property
    def value(self) -> float:
        """The headline's calibration error."""
        return self.estimate.value

    @property
    def curve_notion(self) -> str:
        """The notion that `curve`, `diagram` and what goes with them are of: the headline's, if it has any.

        For the canonical notion it is confidence, and of two classes `binary`.
        """
        return curve_notion(get_notion(self.notion), n_classes=len(self.classes)).name

    @property
    def curve(self) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
        """The reliability curve of `curve_notion`; of the class-wise notion, one for each class."""
        return self.curves[self.curve_notion]

    @property
    def diagram(self) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
        """The reliability diagram of `curve_notion`; of the class-wise notion, one for each class."""
        return self.diagrams[self.curve_notion]

    @property
    def verdict(self) -> Verdict:
        """Whether the scores can be trusted, where not, and what to do."""
        return verdict_of(self)

    @property
    def summary(self) -> str:
        """A few plain sentences: the error with its interval, the mean score, classes and groups."""
        return " ".join(text.summary(self))

    @property
    def advice(self) -> str:
        """One sentence on what recalibrating would do; empty where that is not known."""
        return text.advice(self)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Explanations where the numbers of the headline, of classes or of groups look contradictory."""
        tables = ((self.by_class, "class"), (self.by_group, "group"))
        remarks = [line for rows, what in tables for line in text.row_remarks(rows, what, self.level)]
        return (*self.estimate.remarks, *remarks)

    @property
    def methods(self) -> str:
        """What to write about all this in a paper."""
        return text.methods(self)

    def _printed(self) -> Iterator[Block]:
        yield from self.verdict._printed()
        yield self.summary
        if performance := text.performance(self):
            yield performance
        if self.advice:
            yield self.advice
        yield estimate_table("notion", list(self.estimates.items()))
        yield "p: H0 is that the model is calibrated."
        for name, each in self.estimates.items():  # the summary has the remarks of the headline
            remarks = () if name == self.notion else each.remarks
            yield from (f"{name}: {line}" for line in (*remarks, *each.cautions))
        if self.scores:
            head = ["score", "of", "value", "calibration", "resolution", "uncertainty"]
            parts = ("value", "calibration", "resolution", "uncertainty")
            cells = [[s.name, s.about, *(number(getattr(s, part)) for part in parts)] for s in self.scores]
            yield Table(head, cells, names=2)
        if self.clinical is not None:
            yield from self.clinical._printed()
            yield f"The ICI is the calibration error. {text.cases(self)}"
        yield from text.decision(self)
        if self.probability_transfer is not None:
            yield from _transfer_tables(self)
        for title, rows in (("class", self.by_class), ("group", self.by_group)):
            if rows:
                yield from _table(title, rows, self.other_classes if rows is self.by_class else None)
                yield from text.row_remarks(rows, title, self.level)
        yield from (f"Caution: {line}" for line in self.cautions)

    def __repr__(self) -> str:
        alone = self.pos_label is None or get_notion(self.notion).canonical
        main_notion = self.notion if alone else f"class {self.pos_label}"
        e, rows = self.estimate, f"{self.rows} {'row' if self.rows == 1 else plural('row')}"
        value, low, high = with_ends(e.value, e.low, e.high)
        return f"Assessment({main_notion}, ECE {value} [{low}, {high}], {rows})"

    def plot(self, ax: Axes | None = None, **options: Any) -> Any:
        """Draw the headline's curve with its band and the bins; class-wise, one panel for each class.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; otherwise one new figure.
        **options
            Keyword arguments of the function of `calibrant.plot` that draws it.

        Returns
        -------
        Axes
            The main panel.
        """
        from calibrant import plot

        curve, diagram = self.curve, self.diagram
        if isinstance(curve, ByClass) or isinstance(diagram, ByClass):
            return plot.small_multiples(curve, ax, **options)  # type: ignore[arg-type]
        return plot.overlay(curve, diagram, ax, **options)

    def html(self) -> str:
        """Return the report as one self-contained page."""
        return self.to_html()

    def _repr_html_(self) -> str:
        from calibrant import report

        return report.fragment(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text; curves at a few hundred scores, and of the worst classes only."""
        labels = [row.estimate.label for row in self.by_class]
        worst, estimates = labels[:N_CURVES], dict(self.estimates)
        if self.other_classes is not None and (by_class := estimates["classwise"].by_class) is not None:
            kept = {label: by_class[label] for label in by_class if label in labels}
            estimates["classwise"] = replace(estimates["classwise"], by_class=kept)
        curves = {name: _stored(curve, worst) for name, curve in self.curves.items()}
        diagrams = {name: _stored(each, worst) for name, each in self.diagrams.items()}
        gain = self.recalibration and replace(
            self.recalibration, curve=_stored(self.recalibration.curve, worst)
        )
        by_group = tuple(replace(row, curve=_stored(row.curve, worst)) for row in self.by_group)
        # What is said is about the curves as they are.
        verdict = {key: value for key, value in self.verdict.to_dict().items() if key != "schema"}
        words = {"verdict": verdict, "advice": self.advice, "remarks": list(self.remarks)}
        parts: dict[str, Any] = {"estimates": estimates, "curves": curves, "diagrams": diagrams}
        stored = replace(self, **parts, by_group=by_group, recalibration=gain)
        return Serializable.to_dict(stored) | words

    def _check_fields(self) -> None:
        """Refuse parts that contradict each other."""
        notion, names = get_notion(self.notion), tuple(self.estimates)
        if self.notion not in names:
            raise InputError("estimates", f"hold {self.notion!r}", names)
        for name, estimate in self.estimates.items():
            if estimate.notion != name:
                raise InputError(f"estimates[{name!r}].notion", f"be {name!r}", estimate.notion)
        curved = {name for name in names if not get_notion(name).canonical}
        for key, pictures in (("curves", self.curves), ("diagrams", self.diagrams)):
            if self.curve_notion not in pictures or {*pictures} != curved:
                raise InputError(
                    key, f"hold {self.curve_notion!r} and what the estimates hold", tuple(pictures)
                )
        if self.pos_label is not None and self.pos_label not in self.classes:
            raise InputError("pos_label", f"be one of {list(self.classes)}", self.pos_label)
        if self.probability_transfer is not None and not notion.canonical:
            raise InputError("probability_transfer", f"be missing where the notion is {notion}")
        if self.probability_transfer is not None:
            Shape((len(self.classes),)).check("probability_transfer.share", self.probability_transfer.share)
        if self.clinical is not None and not any(get_notion(name).is_binary for name in names):
            raise InputError("clinical", "be missing where no notion is about one class")


def _stored(picture: Any, labels: Collection[Any]) -> Any:
    """Return what is stored of a curve or a diagram; class-wise, of those of the given classes."""
    if isinstance(picture, ByClass):
        return ByClass({label: _stored(picture[label], labels) for label in picture if label in labels})
    return picture._thinned() if isinstance(picture, ReliabilityCurve) else picture


def _transfer_tables(assessment: Assessment) -> Iterator[Block]:
    """Return tables of pairs of classes and of predicted classes."""
    where, level, names = assessment.probability_transfer, assessment.level, assessment.classes
    assert where is not None
    every, classes = pairs(where, level), len(names)
    each, alone = (percent(each_level(level, count)) for count in (classes * (classes - 1) // 2, classes))
    rows = []
    for pair in every[:MOST_ROWS]:
        value, low, high = with_ends(pair.value, pair.low, pair.high)
        rows.append([names[pair.taker], names[pair.giver], value, f"{low} to {high}"])
    yield Table(["class", "receives from", "probability", f"{each} interval"], rows, names=2)
    if len(every) > MOST_ROWS:
        yield f"{len(every) - MOST_ROWS} more pairs are not shown."
    rows = []
    for row in predicted(where, level):
        value, low, high = with_ends(row.gap, row.low, row.high)
        rows.append([names[row.column], number(row.share), value, f"{low} to {high}"])
    yield Table(["predicted", "share of rows", "gap", f"{alone} interval"], rows, names=1)


def _table(title: str, rows: tuple[SubgroupResult, ...], others: OtherClasses | None) -> Iterator[Block]:
    """Return a table of the worst classes or groups."""
    cells = []
    for row in rows[:MOST_ROWS]:
        e, difference = row.estimate, row.estimate.mean_difference
        value, low, high = with_ends(e.value, e.low, e.high)
        mean = [] if difference is None else [number(-difference)]
        cells.append(
            [
                row.name,
                count(round(row.rows, 1)),
                *mean,
                value,
                f"{low} to {high}",
                text.adjusted_p(row).replace("≤", "<="),
            ]
        )
    mean = [] if rows[0].estimate.mean_difference is None else ["gap"]
    head = [title, "rows", *mean, "ECE", f"{percent(rows[0].estimate.level)} interval", "adjusted p"]
    yield Table(head, cells, names=1)
    if len(rows) > MOST_ROWS:
        yield f"{len(rows) - MOST_ROWS} more {plural(title)} are not shown."
    if others:
        yield others.sentence
