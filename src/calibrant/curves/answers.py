"""From evidence, in blocks of problems, to one number or one result for each problem.

Rows and sketches meet here: both come as blocks of evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal, Protocol

import numpy as np

from calibrant import inputs
from calibrant.curves.band import INTERVALS
from calibrant.curves.curve import (
    BANDS,
    ByClass,
    Progress,
    ReliabilityCurve,
    ReliabilityDiagram,
)
from calibrant.curves.fit import fit_curve, fit_diagram, fit_rank_curve
from calibrant.estimators import BayesFit, Binned, Density, Estimator, Fit, Norm, parse, resolve
from calibrant.estimators.base import check_norm
from calibrant.estimators.smoothing import RULES
from calibrant.evidence import Array, Evidence
from calibrant.questions.notions import Notion


def measure(notion: Notion, blocks: Iterable[Evidence], estimator: Any, norm: Norm) -> float:
    """The calibration error of evidence that comes in blocks of problems."""
    check_norm(norm)
    fits = fitted(blocks, resolve(estimator, shared=notion.several))
    return notion.combine(np.concatenate([np.ravel(fit.error(norm)) for fit in fits]), norm)


def fitted(blocks: Iterable[Evidence], estimator: Estimator) -> list[Fit]:
    """A fit for each block of problems; one for all where classes are judged together."""
    fits = [estimator.fit(block) for block in blocks]
    if len(fits) > 1 and isinstance(fits[0], BayesFit) and fits[0].shared:
        return [BayesFit.joined([fit for fit in fits if isinstance(fit, BayesFit)])]
    return fits


def binned(binning: str | Binned, mapping: str | None) -> Binned:
    """The binned estimator that `binning` names, with another mapping if one is given."""
    estimator = parse(binning) if isinstance(binning, str) else binning
    if not isinstance(estimator, Binned):
        raise ValueError(f'binning must name bins, such as "uniform:15" or "adaptive:10", got {binning!r}')
    return estimator if mapping is None else replace(estimator, mapping=mapping)  # type: ignore[arg-type]


class Asked(Protocol):
    """Which classes the problems speak of."""

    @property
    def labels(self) -> tuple[Any, ...]:
        """The class of each column."""
        ...

    @property
    def positive(self) -> int | None:
        """Column of the class asked about."""
        ...


def smoothing(bandwidth: Any, kernel: Any) -> Density | Literal["ranks"]:
    """How a curve is smoothed: by a kernel over the scores, or by rank."""
    if isinstance(bandwidth, str):
        inputs.check_choice("bandwidth", bandwidth, ("ranks", *RULES))
    if not isinstance(bandwidth, str) or bandwidth != "ranks":
        return Density(bandwidth, kernel)
    if kernel != "triweight":
        raise ValueError(f'bandwidth="ranks" has a kernel of its own, leave kernel alone; got {kernel!r}')
    return "ranks"


def curves(
    notion: Notion,
    blocks: Iterable[Evidence],
    asked: Asked,
    estimator: Density | Literal["ranks"],
    *,
    n_boot: int,
    level: float,
    band: str | None,
    rng: Any,
    progress: Progress | None,
) -> ReliabilityCurve | ByClass[ReliabilityCurve]:
    """Reliability curves of evidence that comes in blocks of problems."""
    n_boot, level = inputs.positive_int("n_boot", n_boot, minimum=0), inputs.level(level)
    if band is not None:
        inputs.check_choice("band", band, BANDS)
    if estimator == "ranks" and band == "bootstrap":
        raise ValueError('bandwidth="ranks" has a band of its own, "corrected"; got band="bootstrap"')
    generator = inputs.generator(rng)

    def fit(evidence: Evidence, **about: Any) -> ReliabilityCurve:
        if estimator == "ranks":
            return fit_rank_curve(evidence, level=level, band=band, **about)
        return fit_curve(
            evidence,
            estimator,
            n_boot=n_boot,
            level=level,
            band=band,
            rng=generator,
            progress=progress,
            **about,
        )

    return each(notion, blocks, asked, fit)


def local_error(place: Array, curve: ReliabilityCurve | ByClass[ReliabilityCurve]) -> Any:
    """Frequency minus score at given scores; a dict of them for several classes."""
    if isinstance(curve, ByClass):
        return {label: one.at(place).probability - place for label, one in curve.items()}
    return curve.at(place).probability - place


def diagrams(
    notion: Notion,
    blocks: Iterable[Evidence],
    asked: Asked,
    estimator: Binned,
    *,
    interval: str,
    level: float,
) -> ReliabilityDiagram | ByClass[ReliabilityDiagram]:
    """Reliability diagrams of evidence that comes in blocks of problems."""
    inputs.check_choice("interval", interval, tuple(INTERVALS))
    level = inputs.level(level)

    def fit(evidence: Evidence, **about: Any) -> ReliabilityDiagram:
        return fit_diagram(evidence, estimator, level=level, interval=interval, **about)

    return each(notion, blocks, asked, fit)


def each(notion: Notion, blocks: Iterable[Evidence], asked: Asked, fit: Callable[..., Any]) -> Any:
    """Fit every problem by itself: one result, or for the class-wise notion one for each class."""
    if notion.name != "classwise":
        column = asked.positive if notion.name == "class" else None
        label = None if column is None else asked.labels[column]
        return fit(next(iter(blocks)), notion=notion.name, label=label)
    single = (block[k] for block in blocks for k in range(block.batch[0]))
    return ByClass(
        {
            label: fit(one, notion="classwise", label=label)
            for label, one in zip(asked.labels, single, strict=True)
        }
    )
