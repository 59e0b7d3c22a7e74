"""What drawings of curves and diagrams show, whichever package draws them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from calibrant.curves.histogram import evenly
from calibrant.inputs.house_style import DWARFED
from calibrant.inputs.wording import short
from calibrant.score_data import Array
from calibrant.settings import REPORT
from calibrant.tasks.notions import get_notion

# A band is in full colour from FULL times REPORT.assessed_rows on, and fades in so many steps.
FULL, STEPS = 3.0, 6
# Lowest end of a log-odds scale, the share of the rows beyond each end, and points of a curve between them.
FINEST, BEYOND, NODES = 1e-6, 0.01, 400
UNEVEN = 5.0  # sides of a histogram whose largest cells differ by this factor ask for a log axis


def strength(x: Array, n_eff: Array) -> Array:
    """Return how strongly a band is drawn, in steps from 0 to 1, without the noise of neighbouring scores.

    >>> strength(np.linspace(0, 1, 5), np.array([3.0, 12.0, 100.0, 100.0, 100.0]))
    array([0.        , 0.16666667, 1.        , 1.        , 1.        ])
    """
    from scipy.ndimage import minimum_filter1d, uniform_filter1d

    strength = np.clip(np.log(np.maximum(n_eff, 1e-9) / REPORT.assessed_rows) / np.log(FULL), 0, 1)
    grid = np.linspace(x[0], x[-1], 101)
    least = minimum_filter1d(np.interp(grid, x, strength), 9, mode="nearest")
    smooth: Array = np.interp(x, grid, uniform_filter1d(least, 9, mode="nearest"))
    return np.where(n_eff >= REPORT.assessed_rows, np.ceil(STEPS * smooth - 1e-9) / STEPS, 0.0)


def single_rows(curve: Any) -> tuple[list[float], list[float]]:
    """Return scores of rows with and without the outcome where too few are near each other for a band."""
    if curve.discrete:
        return [], []
    edges, *counts = evenly(curve.by_outcome)
    few = np.interp((edges[1:] + edges[:-1]) / 2, curve.score, curve.n_eff) < REPORT.assessed_rows
    most = int(REPORT.assessed_rows)
    positive, negative = (
        [
            float(x)
            for i in np.flatnonzero(few & (rows > 0))
            for x in np.linspace(edges[i], edges[i + 1], min(int(np.ceil(rows[i])), most) + 2)[1:-1]
        ]
        for rows in counts
    )
    return positive, negative


def on_log_odds(curve: Any, low: float, high: float) -> Any:
    """Return the curve at even log-odds, between which it is straight; scores of 0 and 1 lie at the ends."""
    from scipy.special import expit, logit

    at = curve.score
    if not curve.discrete:
        at = expit(np.linspace(logit(low), logit(high), NODES))
        inner = curve.score[(curve.score > 0) & (curve.score < 1)]
        at = at[(at >= inner.min(initial=0.5)) & (at <= inner.max(initial=0.5))]

    def read(name: str, least: float, most: float) -> Any:
        values = getattr(curve, name)
        return None if values is None else np.clip(np.interp(at, curve.score, values), least, most)

    shown = {name: read(name, low, high) for name in ("score", "value", "low", "high")}
    n_eff = read("n_eff", 0, np.inf)
    return SimpleNamespace(n=curve.n, n_eff=n_eff, discrete=curve.discrete, **shown)


def log_odds_limits(result: Any) -> tuple[float, float]:
    """Return the scores between which nearly all rows lie, and frequencies that so many rows can tell."""
    edges, positive, negative = result.by_outcome
    edges, total = edges[1:-1], np.cumsum((positive + negative)[1:-1])  # 0 and 1 have no log-odds
    first, last = np.searchsorted(total, [BEYOND * total[-1], (1 - BEYOND) * total[-1]])
    bins, ends = hasattr(result, "edges"), (edges[first], edges[min(last + 1, edges.size - 1)])
    frequency, rows = (result.frequency, result.count) if bins else (result.value, result.n_eff)
    within = (result.score >= ends[0]) & (result.score <= ends[1]) & (bins | (rows >= REPORT.assessed_rows))
    inner = frequency[within & (frequency > 0) & (frequency < 1)]
    least = min(max(FINEST, 1 / (3 * max(result.n, 1.0))), 0.2)
    low, high = min(ends[0], *inner, 0.2), max(ends[1], *inner, 0.8)
    return float(max(low / 1.3, least)), float(1 - max((1 - high) / 1.3, least))


def cells(result: Any, log_odds: bool = False) -> tuple[Array, Array, Array]:
    """Return edges and counts by outcome; or scores and counts, where scores are few and repeat."""
    if not getattr(result, "discrete", False):
        positions = 1 / (1 + np.exp(-np.arange(-14, 14.1, 0.5)))
        return evenly(result.by_outcome, positions if log_odds else None)
    edges, positive, negative = result.by_outcome
    cell = np.minimum(np.searchsorted(edges, result.score, side="right") - 1, positive.size - 1)
    share = positive[cell] / np.maximum(positive + negative, 1e-300)[cell]
    return result.score, result.n_eff * share, result.n_eff * (1 - share)


def dwarfed(positive: Array, negative: Array) -> bool:
    """Whether some cell, or the smaller side as a whole, would be too low to see.

    >>> dwarfed(np.array([500.0, 3.0, 2.0]), np.zeros(3)), dwarfed(np.array([5.0]), np.array([4.0]))
    (True, False)
    """
    counts = np.concatenate([positive, negative])
    tops = [side.max() for side in (positive, negative) if side.any()]
    limit = min(DWARFED * np.median(counts[counts > 0]), UNEVEN * min(tops)) if tops else np.inf
    return bool(counts.max(initial=0.0) > limit)


def outcome_names(result: Any) -> tuple[str, str]:
    """Return the names of the two outcomes."""
    reading = get_notion(result.notion).reading
    if reading.event:
        return reading.positive, reading.negative
    label = result.label
    return ("positive", "negative") if label is None else (f"class {short(str(label), 12)}", "other")
