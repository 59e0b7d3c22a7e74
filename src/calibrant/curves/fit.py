"""The names that callers knew before curves and diagrams had a file each."""

from __future__ import annotations

from typing import Any

from calibrant.curves.curve import ReliabilityCurve, curve_of
from calibrant.curves.diagram import ReliabilityDiagram, diagram_of
from calibrant.estimators import Binned, Density
from calibrant.evidence import Evidence
from calibrant.questions.notions import named


def fit_curve(evidence: Evidence, estimator: Density, *, notion: str, **options: Any) -> ReliabilityCurve:
    """Make the curve of one problem by density."""
    return curve_of(
        evidence, kernel=estimator.kernel, bandwidth=estimator.bandwidth, notion=named(notion), **options
    )


def fit_rank_curve(evidence: Evidence, *, notion: str, **options: Any) -> ReliabilityCurve:
    """Make the curve of one problem by rank."""
    return curve_of(evidence, method="ranks", notion=named(notion), **options)


def fit_diagram(evidence: Evidence, estimator: Binned, *, notion: str, **options: Any) -> ReliabilityDiagram:
    """Make the diagram of one problem."""
    return diagram_of(evidence, binning=estimator, notion=named(notion), **options)
