"""An estimate with everything one needs to sign it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from calibrant.inputs.wording import counted, few_of, percent, sample_size
from calibrant.tasks import named

# The least p-value that the simulations can show.
LEAST_P = 0.001
# Lower ends below this are printed as 0, in points and as shares.
PRINTED_AS_0 = 0.000095


@dataclass(frozen=True)
class Null(Serializable):
    """What a perfectly calibrated model typically reads at this size: the mean, and quantiles by level."""

    mean: Amount
    quantiles: Mapping[float, Amount] = field(default_factory=lambda: MappingProxyType({}))

    def check_fields(self) -> None:
        """Refuse quantiles of what is no level."""
        for level in self.quantiles:
            if not 0 < level < 1:
                raise InputError("quantiles", "go by levels strictly between 0 and 1", level)

    def check_within(self, bounds: Bounds) -> None:
        """Refuse numbers that the result cannot have which this is the null of."""
        bounds.check("null.mean", self.mean)
        for level, quantile in self.quantiles.items():
            bounds.check(f"null.quantiles[{level}]", quantile)


@dataclass(frozen=True)
class Estimate(Serializable):
    """A calibration error, how sure one can be of it, and what it would be without any.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Interval for the true error.
    level : float
        Its level.
    null : Null
        What a perfectly calibrated model typically reads at this size.
    p_value : float
        Of the hypothesis that the model is calibrated.
    over, under : float or None
        Shares of the value: scores above the frequency, and below; None where whole rows are compared.
    n : float
        Effective number of rows.
    notion, estimator, norm : str
        What was measured, and how; `estimator` says what "auto" stood for.
    label : object
        The class asked about, if one was.
    by_class : mapping, optional
        For the notions about all classes, the estimate of each class.
    conservative : bool
        Whether interval and p-value allow for any dependence between the classes, for want of rows.
    seed : int or None
        Seed of the simulations: the same call with `rng=seed` gives the same estimate.
    clusters : int or None
        How many clusters the rows fall into, where that was said: all of it allows for them. The rows of a
        single cluster are treated as independent.
    at_least : float or None
        Where whole rows are compared: a bound that the true error exceeds with probability `level`,
        whatever the gap looks like.
    lower_bound : bool
        Whether there are too many classes to see how they take probability from each other, so that value
        and interval tell only the part of the error that can be seen.
    cautions : tuple of str
        What to know about the data before relying on the estimate, one sentence each.
    n_resamples : int or None
        Number of calibrated data sets simulated for the test; None where fewer than ten clusters allow the
        test to look at every way to turn their signs.
    p_floor : float
        Smallest p-value that the test can show: 1 / (1 + n_resamples) for a single test by simulation, and
        2 ** (1 - clusters) with fewer than ten clusters.

    Examples
    --------
    >>> import calibrant
    >>> estimate = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> Estimate.from_json(estimate.to_json()) == estimate
    True
    """

    worded: ClassVar[tuple[str, ...]] = ("remarks",)
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
        """Whether the p-value is a bound: the smallest that this number of simulations can show."""
        return self.n_resamples is not None and self.p_value <= self.p_floor + 1e-12

    @property
    def mean_difference(self) -> float | None:
        """Posterior mean of score minus frequency over all rows; its size is never above the value.

        None where whole rows are compared, and for norms other than l1, whose parts do not add up to it.
        """
        if self.over is None or self.under is None or self.norm != "l1":
            return None
        return self.over - self.under

    @property
    def remarks(self) -> tuple[str, ...]:
        """Explanations of what looks contradictory: the test and the interval, the value and the interval."""
        return remarks([("", self, rejects(self.p_value, self.level))])

    @property
    def about(self) -> str:
        """What was asked: the notion, and the class if it was about one."""
        return self.notion if self.label is None else f"class {self.label}"

    def __repr__(self) -> str:
        ends, size = f"[{self.low:.4f}, {self.high:.4f}]", sample_size(self.n, "=")
        return f"Estimate({self.value:.4f} {ends}, {self.about}, {size})"

    def __str__(self) -> str:
        name = NAMES[self.norm]
        kept = ", conservative" if self.conservative else ""
        within = "" if self.clusters is None else f" in {counted(self.clusters, 'cluster')}"
        return (
            f"{name} ({self.about}) {self.value:.4f} [{self.low:.4f}, {self.high:.4f}] "
            f"at {percent(self.level)}{kept}{self._parts}; "
            f"{usual(self, '{:.4f}'.format)}; {p_text(self)} (H0: calibrated); "
            f"{sample_size(self.n)}{within}, {self.estimator}"
            + "".join(f"\n{each}" for each in (*self.remarks, *self.cautions))
        )

    @property
    def _parts(self) -> str:
        """What the value consists of, or how much of it is certain, as the rest of a sentence."""
        if self.over is None or self.under is None:
            seen = " of what so many classes let one see" if self.lower_bound else ""
            return seen if self.at_least is None else f"{seen}; at least {self.at_least:.4f}"
        reading = named(self.notion).reading
        sides = sorted([(self.over, reading.too_high), (self.under, reading.too_low)], key=lambda s: -s[0])
        (most, way), (rest, other) = sides
        return f"; {most:.4f} of it {way} and {rest:.4f} {other}"

    def check_fields(self) -> None:
        """Refuse numbers that no estimate of this notion and norm can have, and parts of another value."""
        notion = named(self.notion)
        check_choice("norm", self.norm, notion.norms)
        bounds = Bounds(0, notion.most(self.norm), slack=ROUNDING)
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
NAMES = {"l1": "ECE", "l2": "root mean square calibration error", "mul": "label-weighted ECE"}


def p_text(estimate: Estimate, at_most: str = "<=") -> str:
    """Return the p-value of an estimate; the smallest that simulations can show is a bound.

    >>> import calibrant
    >>> from dataclasses import replace
    >>> found = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> p_text(replace(found, p_value=0.0312)), p_text(replace(found, p_value=0.001))
    ('p = 0.031', 'p <= 0.001')
    """
    sign = at_most if estimate.at_floor else "="
    return f"p {sign} {estimate.p_value:.2g}"


def usual(estimate: Estimate, written: Callable[[float], str], of: str = "", unit: str = "") -> str:
    """Return what a calibrated model typically reads, in words that cannot contradict the test.

    The test joins several statistics, and may reject where the value alone looks usual: then it is the value
    that tells little.

    >>> import calibrant
    >>> estimate = calibrant.estimate([0, 1, 1, 1], [0.2, 0.6, 0.7, 0.9], rng=0)
    >>> usual(estimate, "{:.1f}".format)
    'a calibrated model typically reads 0.1'
    """
    value, null = written(estimate.value), written(estimate.null.mean)
    if rejects(estimate.p_value, estimate.level) and float(value) <= float(null):
        return "the test sees more than this number"
    return f"a calibrated model{of} typically reads {null}{unit}"


def rejects(p_value: float, level: float) -> bool:
    """Tell whether calibration is rejected at a level; simulations cannot show a p-value below theirs."""
    return p_value <= max(1 - level, LEAST_P) + 1e-12


def size_unknown(estimate: Estimate, rejected: bool) -> bool:
    """Tell whether the test rejects calibration beside an interval that starts at 0."""
    return rejected and estimate.low < PRINTED_AS_0


def remarks(estimates: Sequence[tuple[str, Estimate, bool]]) -> tuple[str, ...]:
    """Return a sentence for each kind of apparent contradiction between the numbers of some estimates.

    Parameters
    ----------
    estimates : sequence of tuples
        What each is about, in words or empty for a single one; the estimate; whether its test rejects.

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

    found = []
    if zero := [name for name, each, rejected in estimates if size_unknown(each, rejected)]:
        found.append(f"Calibration{named_in(zero)} is rejected, but {SIZE_UNKNOWN}.")
    for end in ("lower", "upper"):
        if chosen := [(name, each) for name, each, _ in estimates if end_of(each) == end]:
            bayes = all(each.estimator.startswith("bayes") for _, each in chosen)
            bias = "a posterior mean" if bayes else "the estimator"
            place = f"the {end} end of its interval, which allows for the bias of {bias}"
            found.append(f"The estimate{named_in([name for name, _ in chosen])} lies at {place}.")
    return tuple(found)


def end_of(estimate: Estimate) -> str:
    """Return the end of the interval that the estimate lies at, unless no error can lie beyond it."""
    value, low, high = estimate.value, estimate.low, estimate.high
    if low == high:
        return ""
    if value >= high:
        return "upper" if high < named(estimate.notion).most(estimate.norm) else ""
    return "lower" if value <= low and value >= PRINTED_AS_0 else ""
