"""Decisions: regret over thresholds, the decision curves below it, and the accuracy of what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.inputs.wording import percent
from calibrant.plot.canvas import (
    BINS,
    CURVE,
    GREY,
    KEY,
    LIMITS,
    above,
    handles,
    legend,
    new,
    plain,
    pyplot,
    reading_of,
    unit_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.decisions import Regret, RegretCurve, RiskCoverage

# Inches of a new figure, and how far below zero net benefits are still shown, as a share of the best.
WIDE, HIGH, BELOW = 4.5, 4.7, 0.25


def plot_regret_curve(result: RegretCurve, axes: Sequence[Axes] | None = None) -> Sequence[Axes]:
    """Draw the regret of each threshold with its band and, below, net benefit.

    Parameters
    ----------
    result : RegretCurve
        What to draw. With the difference of two models a third panel shows that.
    axes : sequence of Axes, optional
        Two panels, or three; one new figure otherwise.

    Returns
    -------
    sequence of Axes
    """
    count = 2 if result.difference is None else 3
    if axes is None:
        size = WIDE, HIGH * count / 2
        _, axes = pyplot().subplots(count, 1, figsize=size, layout="constrained", sharex=True)
    if len(axes) != count:
        raise ValueError(f"axes must be {count} panels, got {len(axes)}")
    top, bottom, *rest = axes
    level = plain(percent(result.level))
    t, worst = result.thresholds, result.worst
    top.fill_between(t, result.low, result.high, color=CURVE, alpha=0.18, lw=0, label=f"{level} band")
    top.plot(t, result.value, color=CURVE, lw=1.6, label="regret")
    top.plot(
        [worst.threshold], [worst.value], "o", color=BINS, ms=5, label=f"worst, at {worst.threshold:.2g}"
    )
    top.set(ylabel="lost per row", xlim=(0, 1))
    top.set_ylim(0, None)
    bottom.plot(t, result.net_benefit, color=CURVE, lw=1.6, label="model")
    bottom.plot(t, result.recalibrated, color=BINS, lw=1.4, ls="--", label="recalibrated")
    bottom.plot(t, result.treat_all, color=GREY, lw=1, ls=":", label="always act")
    bottom.axhline(0, color=GREY, lw=1, label="never act")
    best = max(float(result.net_benefit.max()), float(result.treat_all.max()), 1e-3)
    bottom.set(ylabel="net benefit", ylim=(-BELOW * best, 1.05 * best))
    for panel in rest:
        assert result.difference is not None
        value, low, high = result.difference
        panel.fill_between(t, low, high, color=CURVE, alpha=0.18, lw=0, label=f"{level} band")
        panel.plot(t, value, color=CURVE, lw=1.6, label="net benefit less the other's")
        panel.axhline(0, color=GREY, lw=1)
        # Beyond most thresholds few rows are left, and the odds blow their noise up.
        reach = 1.5 * float(abs(value[t <= 0.9]).max(initial=1e-3) + (high - low)[t <= 0.9].max(initial=0.0))
        panel.set(ylabel="difference", ylim=(-reach, reach))
    axes[-1].set_xlabel("threshold" if result.label is None else f"threshold of class {plain(result.label)}")
    for panel in axes:
        above(panel, *handles(panel), **KEY)
    return axes


def plot_regret(result: Regret, ax: Any = None) -> Any:
    """Draw the regret with its interval, what recalibrating recovers and what is expected if calibrated.

    Parameters
    ----------
    result : Regret
        What to draw, in its unit.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    if ax is None:
        _, ax = pyplot().subplots(figsize=(WIDE, 1.9), layout="constrained")
    names = ("regret", "recovered", "if calibrated")
    values = (result.value, result.recovered, result.null.mean)
    ax.hlines(0, result.low, result.high, color=CURVE, lw=3)
    for row, (value, color) in enumerate(zip(values, (CURVE, BINS, GREY), strict=True)):
        ax.plot([value], [row], "o", color=color, ms=7)
    ax.axvline(0, color=GREY, lw=1, ls="--", zorder=0)
    ax.set(yticks=range(3), ylim=(2.6, -0.6), xlabel="per row, in the unit of the costs")
    ax.set_yticklabels(names)
    return ax


def risk_coverage(result: RiskCoverage, ax: Axes | None = None) -> Axes:
    """Plot the accuracy of the most confident predictions over the coverage.

    Pointwise intervals are dark and the simultaneous band is light. The dotted line is the accuracy of all
    rows, which is also the accuracy at every coverage if the confidence is uninformative.

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
    ax.set_xlabel("coverage (most confident rows first)")
    ax.set_ylabel(f"{reading_of(result).frequency} of what is kept")
    unit_ticks(ax, ax.xaxis)
    facts = [f"AURC {result.aurc.value:.3g}", f"n = {result.n:,.0f}"]
    legend(ax, facts, ("lower left", "lower right", "upper right"), fresh)
    return ax
