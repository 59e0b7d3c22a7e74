"""Fits curves and diagrams: from the evidence of one problem to what a caller gets back."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.curves.band import INTERVALS, by_rank, corrected
from calibrant.curves.curve import HISTOGRAM_CELLS, Progress, ReliabilityCurve, ReliabilityDiagram
from calibrant.estimators import Binned, Density
from calibrant.estimators.bins import mapped
from calibrant.estimators.density import DensityFit
from calibrant.estimators.smoothing import NARROWEST
from calibrant.evidence import Array, Cells, Evidence, Sample

# From this size on a bootstrap reads cells: the curve is the same and the cost no longer grows.
CELLS_FROM = 1 << 16


def _histogram(evidence: Evidence) -> tuple[Array, Array]:
    edges = np.arange(HISTOGRAM_CELLS + 1) / HISTOGRAM_CELLS
    w = evidence.bins(edges[1:-1]).w
    return edges, w * (evidence.n / w.sum())


def fit_curve(
    evidence: Evidence,
    estimator: Density,
    *,
    n_boot: int,
    level: float,
    rng: np.random.Generator,
    band: str | None = "corrected",
    progress: Progress | None = None,
    **about: Any,
) -> ReliabilityCurve:
    """The curve of one problem, with its band."""
    if isinstance(evidence, Sample) and evidence.shape[-1] > CELLS_FROM:
        evidence = Cells.of(evidence)
    fit = one_fit(estimator, evidence)
    point, nearby = fit.frequency, fit.nearby
    probability, low, high = point, None, None
    if n_boot:
        drawn = _resampled(evidence, estimator, fit, n_boot, rng, progress)
        low, probability, high = _quantiles(drawn, [(1 - level) / 2, 0.5, (1 + level) / 2])
        low, probability, high = (
            np.where(np.isnan(point), np.nan, part) for part in (low, probability, high)
        )
    if band is None:
        low = high = None
    elif band == "corrected":
        width = max(float(fit.bandwidth), NARROWEST)
        low, high = corrected(evidence, width, fit.score, nearby, level)
        low, high = np.minimum(low, probability), np.maximum(high, probability)
    return ReliabilityCurve(
        score=fit.score,
        probability=probability,
        point=point,
        low=low,
        high=high,
        density=fit.density,
        n_eff=nearby,
        bandwidth=float(fit.bandwidth),
        floored=bool(fit.floored),
        kernel=fit.kernel,
        support=_support(evidence),
        histogram=_histogram(evidence),
        error=float(fit.error()),
        n=float(evidence.n),
        n_boot=n_boot,
        level=level,
        band=None if low is None else band,
        **about,
    )


def fit_rank_curve(evidence: Evidence, *, level: float, band: str | None, **about: Any) -> ReliabilityCurve:
    """The curve of one problem by rank."""
    groups, (score, probability, low, high, nearby) = by_rank(evidence, level)
    density = one_fit(Density(), evidence)
    gap = np.interp(groups.score, score, probability - score)
    # Beyond its last node a curve goes on; nodes without a value end it.
    before = np.nextafter(score[:1], 0.0)[score[:1] > 0]
    after = np.nextafter(score[-1:], 1.0)[score[-1:] < 1]
    score = np.concatenate([before, score, after])
    probability, low, high = (
        np.pad(part, (before.size, after.size), constant_values=np.nan) for part in (probability, low, high)
    )
    nearby = np.pad(nearby, (before.size, after.size))
    return ReliabilityCurve(
        score=score,
        probability=probability,
        point=probability,
        low=None if band is None else low,
        high=None if band is None else high,
        density=np.interp(score, density.score, density.density),
        n_eff=nearby,
        bandwidth=float(density.bandwidth),
        floored=False,
        kernel="ranks",
        support=_support(evidence),
        histogram=_histogram(evidence),
        error=float((groups.w * np.abs(gap)).sum() / groups.w.sum()),
        n=float(evidence.n),
        n_boot=0,
        level=level,
        band=band,
        **about,
    )


def _support(evidence: Evidence) -> tuple[float, float]:
    """Where scores can lie, and do."""
    return min(evidence.support[0], float(evidence.ranked(np.zeros(1))[0])), evidence.support[1]


def _resampled(
    evidence: Evidence,
    estimator: Density,
    fit: DensityFit,
    n_boot: int,
    rng: np.random.Generator,
    progress: Progress | None,
) -> Array:
    """The curves of bootstrap resamples, one in each row."""
    # Every resample is smoothed alike: its spread is that of the data, not of the bandwidth.
    again = Density(max(float(fit.bandwidth), NARROWEST), estimator.kernel, estimator.step)
    drawn = np.empty((n_boot, fit.score.size))
    step = max(1, (1 << 19) // fit.score.size)
    for first in range(0, n_boot, step):
        size = min(step, n_boot - first)
        drawn[first : first + size] = one_fit(again, evidence.resample(rng, size)).frequency
        if progress is not None:
            progress(first + size, n_boot)
    return drawn


def one_fit(estimator: Density, evidence: Evidence) -> DensityFit:
    """The fit of problems that share one bandwidth, which is never several."""
    fit = estimator.fit(evidence)
    assert isinstance(fit, DensityFit)
    return fit


def _quantiles(drawn: Array, shares: list[float]) -> list[Array]:
    """Quantiles over the first axis among the entries that are not NaN."""
    ordered = np.sort(drawn.T, axis=-1)
    valid = np.count_nonzero(~np.isnan(ordered), axis=-1)
    found = []
    for share in shares:
        place = share * np.maximum(valid - 1, 0)
        low = place.astype(np.intp)
        below, above = (
            np.take_along_axis(ordered, index[:, None], axis=-1)[:, 0]
            for index in (low, np.minimum(low + 1, np.maximum(valid - 1, 0)))
        )
        found.append(below + (place - low) * (above - below))
    return found


def fit_diagram(
    evidence: Evidence, estimator: Binned, *, level: float, interval: str, **about: Any
) -> ReliabilityDiagram:
    """The diagram of one problem."""
    fit = estimator.fit(evidence)
    squares = mapped(evidence.squared(), fit.edges, estimator.mapping).w
    count = np.divide(fit.bins.w**2, squares, out=np.zeros(squares.shape), where=squares > 0)
    low, high = INTERVALS[interval](fit.bins.frequency, count, level)
    return ReliabilityDiagram(
        edges=fit.edges,
        score=fit.bins.score,
        frequency=fit.bins.frequency,
        count=count,
        low=low,
        high=high,
        histogram=_histogram(evidence),
        error=float(fit.error()),
        n=float(evidence.n),
        level=level,
        estimator=str(estimator),
        interval=interval,
        support=evidence.support,
        **about,
    )
