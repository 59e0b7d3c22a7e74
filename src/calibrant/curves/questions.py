"""Curves, diagrams and histograms of a question: one, or one for each class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np

from calibrant import inputs
from calibrant.curves.band import INTERVALS
from calibrant.curves.curve import BANDS, ByClass, Progress, ReliabilityCurve, ReliabilityDiagram
from calibrant.curves.fit import fit_curve, fit_diagram, fit_rank_curve
from calibrant.curves.histogram import ScoreHistogram, histogram
from calibrant.estimators import Binned, Density, parse
from calibrant.estimators.smoothing import RULES
from calibrant.evidence import Array, Evidence
from calibrant.questions import Question

Result = TypeVar("Result")
Method = Literal["density", "ranks"]
METHODS = ("density", "ranks")


def curve_of(
    question: Question,
    *,
    method: Method = "density",
    kernel: Any = "triweight",
    bandwidth: Any = "silverman",
    n_boot: int = 200,
    level: float = 0.95,
    band: str | None = "corrected",
    rng: Any = None,
    progress: Progress | None = None,
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Fit the reliability curve of a question; see `calibrant.reliability_curve`."""
    inputs.check_choice("method", method, METHODS)
    if isinstance(bandwidth, str):
        inputs.check_choice("bandwidth", bandwidth, RULES)
    estimator = Density(bandwidth, kernel)
    n_boot, level = inputs.positive_int("n_boot", n_boot, minimum=0), inputs.level(level)
    if band is not None:
        inputs.check_choice("band", band, BANDS)
    if method == "ranks":
        _check_left_alone(kernel=(kernel, "triweight"), bandwidth=(bandwidth, "silverman"))
        if band == "bootstrap":
            raise inputs.InputError("band", 'be "corrected" with method="ranks"', band)
    generator = inputs.generator(rng)

    def fit(evidence: Evidence, **about: Any) -> ReliabilityCurve:
        if method == "ranks":
            return fit_rank_curve(evidence, level=level, band=band, **about)
        options: dict[str, Any] = {"n_boot": n_boot, "level": level, "band": band}
        return fit_curve(evidence, estimator, rng=generator, progress=progress, **options, **about)

    return _each(question, fit)


def _check_left_alone(**options: tuple[Any, Any]) -> None:
    """Refuse options that a curve by rank does not have."""
    for name, (value, usual) in options.items():
        if value != usual:
            raise inputs.InputError(name, 'be left alone with method="ranks"', value)


def local_error(curve: ReliabilityCurve | ByClass[ReliabilityCurve], scores: Array) -> Array:
    """Return frequency minus score at given scores; of several classes along a first axis."""
    curves = list(curve.values()) if isinstance(curve, ByClass) else [curve]
    errors = np.stack([np.asarray(each.at(scores).probability - scores) for each in curves])
    return errors if isinstance(curve, ByClass) else errors[0]


def diagram_of(
    question: Question,
    *,
    binning: str | Binned = "uniform:15",
    mapping: str | None = None,
    interval: str = "wilson",
    level: float = 0.95,
) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """Fit the reliability diagram of a question; see `calibrant.reliability_diagram`."""
    estimator = binned(binning, mapping)
    inputs.check_choice("interval", interval, tuple(INTERVALS))
    level = inputs.level(level)

    def fit(evidence: Evidence, **about: Any) -> ReliabilityDiagram:
        return fit_diagram(evidence, estimator, level=level, interval=interval, **about)

    return _each(question, fit)


def histogram_of(question: Question, *, bins: int = 50) -> ScoreHistogram | ByClass[ScoreHistogram]:
    """Count the scores of a question by outcome; see `calibrant.score_histogram`."""
    bins = inputs.positive_int("bins", bins)

    def fit(evidence: Evidence, **about: Any) -> ScoreHistogram:
        return histogram(evidence, bins=bins, **about)

    return _each(question, fit)


def binned(binning: str | Binned, mapping: str | None) -> Binned:
    """Return the binned estimator that `binning` names, with another mapping if one is given."""
    estimator = parse(binning) if isinstance(binning, str) else binning
    if not isinstance(estimator, Binned):
        raise inputs.InputError("binning", 'name bins, such as "uniform:15" or "adaptive:10"', binning)
    return estimator if mapping is None else replace(estimator, mapping=mapping)  # type: ignore[arg-type]


def _each(question: Question, fit: Callable[..., Result]) -> Result | ByClass[Result]:
    """Fit every problem by itself: one result, or one for each class."""
    name = question.notion.name
    if not question.notion.several:
        return fit(question.problems[0], notion=name, label=question.label)
    problems = zip(question.labels, question.each(), strict=True)
    return ByClass({label: fit(problem, notion=name, label=label) for label, problem in problems})
