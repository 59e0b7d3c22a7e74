"""Selective decisions: the accuracy of what is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.inputs.wording import percent
from calibrant.plot.canvas import CURVE, GREY, LIMITS, legend, new, plain, reading_of, unit_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.decisions import RiskCoverage


def risk_coverage(result: RiskCoverage, ax: Axes | None = None) -> Axes:
    """Draw the accuracy of the rows that are kept over their share, from the surest on.

    Intervals of single coverages are dark, the band that holds at all coverages together is light, and the
    dotted line is the accuracy of all rows: where confidence told nothing, keeping fewer would gain nothing.

    Parameters
    ----------
    result : RiskCoverage
        What to draw.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    fresh, ax = ax is None, new(0.75)[0, 0] if ax is None else ax
    level = plain(percent(result.level))
    # A share is kept by the threshold that keeps at least as much: the curve is a flight of steps.
    share = np.append(0.0, result.coverage)
    kept = [np.append(part[0], part) for part in (result.band_low, result.band_high, result.low, result.high)]
    for ends, alpha, name in ((kept[:2], 0.15, "band"), (kept[2:], 0.3, "interval")):
        style: dict[str, Any] = {"step": "pre", "color": CURVE, "linewidth": 0, "zorder": 1.5}
        ax.fill_between(share, ends[0], ends[1], alpha=alpha, label=f"{level} {name}", **style)
    accuracy = np.append(result.accuracy[0], result.accuracy)
    ax.plot(share, accuracy, drawstyle="steps-pre", color=CURVE, linewidth=1.6, zorder=3)
    every = float(result.accuracy[-1])
    ax.axhline(every, color=GREY, linewidth=1, linestyle=":", zorder=1, label="all rows")
    least = float(min(result.low[result.coverage >= 0.1].min(initial=1.0), every))
    ax.set(xlim=LIMITS, ylim=(max(-0.03, least - 0.25 * (1 - least) - 0.02), 1.03))
    ax.set_xlabel("share of rows kept, the surest first")
    ax.set_ylabel(f"{reading_of(result).frequency} of what is kept")
    unit_ticks(ax, ax.xaxis)
    facts = [f"AURC {result.aurc.value:.3g}", f"n = {result.n:,.0f}"]
    legend(ax, facts, ("lower left", "lower right", "upper right"), fresh)
    return ax
