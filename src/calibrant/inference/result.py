"""The result of `calibrant.estimate`: value, confidence interval, null distribution and test.

The methods are described in docs/methods/confidence-intervals.md and docs/methods/calibration-test.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from calibrant.inputs import ROUNDING, InputError, Serializable, check_choice
from calibrant.inputs.codec import (
    Amount,
    Bounds,
    Count,
    Level,
    Number,
    Probability,
    Size,
    check_order,
)
from calibrant.inputs.printed import Block, Printed, Table
from calibrant.inputs.wording import (
    PRINTED_AS_0,
    about,
    brief_size,
    few_of,
    number,
    p_value,
    percent,
    sample_size,
    with_ends,
    with_interval,
)
from calibrant.tasks import get_notion

# Smallest p-value of the default number of simulated data sets, 1 / (1 + 999).
LEAST_P = 0.001
# Number of classes that are printed.
LISTED_CLASSES = 12


@dataclass(frozen=True)
class Null(Printed, Serializable):
    """Null distribution of the estimate: its values if the model is calibrated, at the same sample size.

    Attributes
    ----------
    mean : float
        Mean of the null distribution, printed as "expected if calibrated".
    quantiles : mapping
        Quantiles of the null distribution by level.
    """

    mean: Amount
    quantiles: Mapping[float, Amount] = field(default_factory=lambda: MappingProxyType({}))

    def _check_fields(self) -> None:
        """Raise an error for a quantile level outside of (0, 1)."""
        for level in self.quantiles:
            if not 0 < level < 1:
                raise InputError("quantiles", "go by levels strictly between 0 and 1", level)

    def check_within(self, bounds: Bounds) -> None:
        """Raise an error for numbers that the estimate itself cannot have."""
        bounds.check("null.mean", self.mean)
        for level, quantile in self.quantiles.items():
            bounds.check(f"null.quantiles[{level}]", quantile)

    def _printed(self) -> Iterator[Block]:
        yield "expected if calibrated", number(self.mean)
        for level, quantile in self.quantiles.items():
            yield f"{percent(level)} quantile", number(quantile)


@dataclass(frozen=True)
class Estimate(Printed, Serializable):
    """A calibration error with its confidence interval, null distribution and test of calibration.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Confidence interval for the true error.
    level : float
        Confidence level.
    null : Null
        Null distribution of the estimate; `null.mean` is the estimate expected if calibrated.
    p_value : float
        p-value of H0: the model is calibrated.
    over, under : float or None
        Parts of the value from scores above and below the frequency; None for the canonical notion. Of a
        named estimator they are the value, divided in the proportions of the default posterior, not in those
        of the bins.
    n : float
        Effective sample size of the weights, (sum w)^2 / sum w^2; the number of rows without weights. It is
        not divided by the design effect of clusters.
    notion, estimator, norm : str
        What was measured, and how; `estimator` says what "auto" stood for.
    label : object
        The selected class, if one was.
    by_class : mapping, optional
        For the notions about all classes, the estimate of each class.
    conservative : bool
        Whether interval and p-value are valid under any dependence between the classes. This is so if the
        rows are not available, as with a sketch.
    seed : int or None
        Seed of the simulations: the same call with `rng=seed` gives the same estimate.
    clusters : int or None
        Number of clusters, if `cluster=` was given; interval and test allow for the dependence within them.
        The rows of a single cluster are treated as independent.
    at_least : float or None
        For the canonical notion, a lower confidence bound of the true error at `level` that is valid for
        any shape of the gap.
    lower_bound : bool
        Whether there are too many classes to estimate the probability transfer between them, so that value
        and interval are for the part of the error that can be estimated.
    cautions : tuple of str
        Warnings about the data, one sentence each.
    n_resamples : int or None
        Number of data sets simulated under H0 for the test; None with fewer than ten clusters, where all
        sign flips are enumerated.
    p_floor : float
        Smallest possible p-value of the test: 1 / (1 + n_resamples) for a single test by simulation, and
        2 ** (1 - clusters) with fewer than ten clusters.

    See Also
    --------
    estimate : Returns this result.
    EstimateTable : Estimates of groups.

    Examples
    --------
    >>> import calibrant
    >>> estimate = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> Estimate.from_json(estimate.to_json()) == estimate
    True
    """

    _worded: ClassVar[tuple[str, ...]] = ("remarks",)
    value: Amount
    low: Amount
    high: Amount
    level: Level
    null: Null
    p_value: Probability
    over: Probability | None
    under: Probability | None
    n: Size
    notion: str
    estimator: str
    norm: str = "l1"
    label: Any = None
    by_class: Mapping[Any, Estimate] | None = None
    conservative: bool = False
    seed: Count | None = None
    clusters: Number | None = None
    at_least: Amount | None = None
    lower_bound: bool = False
    cautions: tuple[str, ...] = ()
    n_resamples: Count | None = 999
    p_floor: Probability = LEAST_P

    def __float__(self) -> float:
        return self.value

    @property
    def at_floor(self) -> bool:
        """Whether the p-value is the smallest possible with this number of simulations: an upper bound."""
        return self.n_resamples is not None and self.p_value <= self.p_floor + 1e-12

    @property
    def mean_difference(self) -> float | None:
        """Posterior mean of score minus frequency over all rows; its absolute value is at most the value.

        None for the canonical notion, and for norms other than l1, for which `over` and `under` do not add
        up.
        """
        if self.over is None or self.under is None or self.norm != "l1":
            return None
        return self.over - self.under

    @property
    def remarks(self) -> tuple[str, ...]:
        """Explanations of apparent contradictions between test and interval, or value and interval."""
        return remarks([("", self, rejects(self.p_value, self.level))])

    @property
    def about(self) -> str:
        """The notion, followed by the class label if there is one."""
        return self.notion if self.label is None else f"class {self.label}"

    def __repr__(self) -> str:
        value, low, high = with_ends(self.value, self.low, self.high)
        return f"Estimate({value} [{low}, {high}], {self.about}, {brief_size(self.n)})"

    def _printed(self) -> Iterator[Block]:
        conservative = " (conservative)" if self.conservative else ""
        yield NAMES[self.norm], with_interval(self.value, self.low, self.high, self.level) + conservative
        if self.lower_bound:
            yield "", "of the part that can be estimated with so many classes"
        if self.at_least is not None:
            yield "lower bound", f"{number(self.at_least)} (for any shape of the gap)"
        if self.over is not None and self.under is not None:
            reading = get_notion(self.notion).reading
            parts = sorted([(self.over, reading.too_high), (self.under, reading.too_low)], reverse=True)
            sides = (f"{number(scope if scope > PRINTED_AS_0 else 0.0)} {side}" for scope, side in parts)
            yield "by direction", ", ".join(sides)
        expected = expected_if_calibrated(self, number)
        _, colon, mean = expected.partition(": ")
        yield "expected if calibrated", mean if colon else f"{number(self.null.mean)}, but {expected}"
        yield "test", f"{p_text(self)} (H0: the model is calibrated)"
        yield "notion", about(self.notion, self.label)
        yield "estimator", self.estimator
        yield "data", sample_size(self.n, self.clusters)
        yield from class_table(self)
        yield from self.remarks
        yield from self.cautions

    def _check_fields(self) -> None:
        """Raise an error for numbers that are impossible for this notion and norm, or inconsistent."""
        notion = get_notion(self.notion)
        check_choice("norm", self.norm, notion.norms)
        bounds = Bounds(0, notion.max_error(self.norm), slack=ROUNDING)
        for name in ("value", "low", "high", "at_least"):
            if (number := getattr(self, name)) is not None:
                bounds.check(name, number)
        self.null.check_within(bounds)
        check_order(self, "low", "value", "high")
        if self.over is None or self.under is None:
            if not notion.canonical or self.over is not self.under:
                raise InputError("over", "be a number as under is", self.over)
        elif abs(self.over + self.under - self.value) > ROUNDING:
            got = f"{self.over:g} and {self.under:g}"
            raise InputError("over", f"add up to {self.value:g} with under", got=got)
        if self.by_class is not None and not (notion.classwise or notion.canonical):
            raise InputError("by_class", f"be missing where the notion is {notion}")


SIZE_UNKNOWN = "the interval starts at 0 because the size of the error is uncertain"
NAMES = {"l1": "calibration error", "l2": "RMS calibration error", "mul": "label-weighted ECE"}


def class_table(estimate: Estimate) -> Iterator[Block]:
    """Return a table of the classes with the largest errors, and remarks about them; nothing without any."""
    classes = sorted((estimate.by_class or {}).values(), key=lambda each: -each.value)
    if not classes:
        return
    shown = [(str(each.label), each) for each in classes[:LISTED_CLASSES]]
    yield estimate_table("class", shown)
    if len(classes) > LISTED_CLASSES:
        yield f"{len(classes) - LISTED_CLASSES} classes with smaller errors are not shown."
    yield from remarks([(f"class {name}", each, rejects(each.p_value, each.level)) for name, each in shown])


def estimate_table(title: str, estimates: Sequence[tuple[str, Estimate]]) -> Table:
    """Return a table with a row for each named estimate."""
    level = percent(estimates[0][1].level)
    rows = []
    for name, each in estimates:
        value, low, high = with_ends(each.value, each.low, each.high)
        mean, p = number(each.null.mean), p_text(each).removeprefix("p ").removeprefix("= ")
        rows.append([name, value, f"{low} to {high}", mean, p])
    norm = NAMES[estimates[0][1].norm].replace("calibration error", "ECE")
    return Table([title, norm, f"{level} interval", "expected if calibrated", "p"], rows, names=1)


def p_text(estimate: Estimate, at_most: str = "<=") -> str:
    """Return the p-value of an estimate as text, as a bound if it is the smallest possible.

    >>> import calibrant
    >>> from dataclasses import replace
    >>> found = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> p_text(replace(found, p_value=0.0312)), p_text(replace(found, p_value=0.001))
    ('p = 0.031', 'p <= 0.001')
    """
    return p_value(estimate.p_value, estimate.p_floor if estimate.at_floor else 0.0, at_most)


def expected_if_calibrated(estimate: Estimate, number: Callable[[float], str], unit: str = "") -> str:
    """Return the mean of the null distribution as text that does not contradict the test.

    The test combines several statistics. It may reject calibration although the value is below its mean under
    H0; the text says so instead.

    Parameters
    ----------
    estimate : Estimate
        The estimate.
    number : callable
        Formats a number.
    unit : str
        Appended to the number.

    >>> import calibrant
    >>> estimate = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> expected_if_calibrated(estimate, "{:.1f}".format)
    'expected if calibrated: 0.1'
    """
    value, null = number(estimate.value), number(estimate.null.mean)
    if rejects(estimate.p_value, estimate.level) and float(value) <= float(null):
        return "the test rejects by statistics other than this value"
    return f"expected if calibrated: {null}{unit}"


def rejects(p_value: float, level: float) -> bool:
    """Return whether calibration is rejected at a level, or at the smallest p-value of the simulations."""
    return p_value <= max(1 - level, LEAST_P) + 1e-12


def size_unknown(estimate: Estimate, rejected: bool) -> bool:
    """Return whether the test rejects calibration although the interval starts at 0."""
    return rejected and estimate.low < PRINTED_AS_0


def remarks(estimates: Sequence[tuple[str, Estimate, bool]]) -> tuple[str, ...]:
    """Return one sentence for each kind of apparent contradiction between the numbers of the estimates.

    Parameters
    ----------
    estimates : sequence of tuples
        Name of each estimate, empty for a single one; the estimate; whether its test rejects.

    >>> import calibrant
    >>> from dataclasses import replace
    >>> found = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> remarks([("", replace(found, low=0.0), False)])
    ()
    >>> print(*remarks([("1", replace(found, low=0.0), True)]))
    Calibration of 1 is rejected, but the interval starts at 0 because the size of the error is uncertain.
    """

    def named_in(chosen: Sequence[str]) -> str:
        return f" of {few_of(chosen)}" if any(chosen) else ""

    sentences = []
    if zero := [name for name, each, rejected in estimates if size_unknown(each, rejected)]:
        sentences.append(f"Calibration{named_in(zero)} is rejected, but {SIZE_UNKNOWN}.")
    for end in ("lower", "upper"):
        if chosen := [(name, each) for name, each, _ in estimates if end_of(each) == end]:
            bayes = all(each.estimator.startswith("bayes") for _, each in chosen)
            bias = "a posterior mean" if bayes else "the estimator"
            place = f"the {end} end of its interval, which allows for the bias of {bias}"
            sentences.append(f"The estimate{named_in([name for name, _ in chosen])} lies at {place}.")
    return tuple(sentences)


def end_of(estimate: Estimate) -> str:
    """Return the end of the interval that the value lies at, unless it is the end of the possible range."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if low == high:
        return ""
    if value >= high:
        return "upper" if high < get_notion(estimate.notion).max_error(estimate.norm) else ""
    return "lower" if value <= low and value >= PRINTED_AS_0 else ""
