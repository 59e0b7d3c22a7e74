"""Reliability: diagrams, curves, both at once, several models at once, and the local error.

Each is drawn on the unit square with the diagonal of calibrated scores, and with the distribution of the
scores underneath where there is one result to speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.plot.canvas import (
    BINS,
    CALIBRATED,
    CORNERS,
    CURVE,
    DWARFED,
    GREY,
    LIMITS,
    axis_labels,
    counted,
    inches,
    legend,
    new,
    part_of,
    plain,
    reading_of,
    rounded,
    shade,
    unit_ticks,
    words,
)
from calibrant.settings import REPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.assessment import Assessment
    from calibrant.curves import ReliabilityCurve, ReliabilityDiagram

PANEL = "_calibrant_histogram"  # the attribute of a main panel that holds the one underneath
NARROW = 1.4  # inches; a panel below has finer lines
# Safe for colour-blind eyes and of six lightnesses, neighbours far apart; dashes tell all apart in grey.
LINES: Sequence[tuple[str, Any]] = (
    (CURVE, "-"),
    ("#d8731f", (0, (5, 1.3))),
    ("#7b4fa3", (0, (1.1, 1.1))),
    ("#7fb6d9", (0, (7, 1.3, 1.2, 1.3))),
    ("#000000", (0, (2.6, 1.1))),
    ("#1f9e89", (0, (4, 1.2, 1.1, 1.2, 1.1, 1.2))),
)
BANDED = 2  # up to so many models have their bands; more would hide each other


def diagram(result: ReliabilityDiagram | Assessment, ax: Axes | None = None, *, histogram: bool = True,
            legend: bool = True, color: str = BINS, label: str | None = None) -> Axes:  # fmt: skip
    """Draw a reliability diagram: a marker and a bar for each bin with mass, the area growing with its count.

    Parameters
    ----------
    result : ReliabilityDiagram or Assessment
        What to draw.
    ax : Axes, optional
        Where to draw; one new figure otherwise.
    histogram : bool
        Whether to put the distribution of the scores underneath, within the space of `ax`.
    legend : bool
        Whether to write error, sample size and legend into the emptier corner, or above if data lie in both.
    color, label : str, optional
        Colour of all marks, and a name in the legend, for several results on one Axes.

    Returns
    -------
    Axes
        The main panel.
    """
    return draw(part_of(result, "diagram"), ax, histogram, legend, color, label)


def curve(result: ReliabilityCurve | Assessment, ax: Axes | None = None, *, histogram: bool = True,
          legend: bool = True, color: str = CURVE, label: str | None = None) -> Axes:  # fmt: skip
    """Draw a reliability curve and its band where there are data, faint where these are few.

    A curve of few scores that repeat is a point and a bar for each of them.

    The parameters and the Axes returned are those of `diagram`.
    """
    return draw(part_of(result, "curve"), ax, histogram, legend, color, label)


def overlay(
    curve_result: ReliabilityCurve | Assessment,
    diagram_result: ReliabilityDiagram | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a curve with its band and, over it, the bins of a diagram of the same sample with their bars.

    The one error in the legend is that of the curve, which is the headline of estimates and reports. An
    assessment has both.
    """
    bins = curve_result if diagram_result is None else diagram_result
    diagram_result = part_of(bins, "diagram")
    curve_result = part_of(curve_result, "curve")
    fresh, ax = ax is None, draw(curve_result, ax, True, False, CURVE, None, "curve")
    draw(diagram_result, ax, False, False, BINS, None, "bins")
    legend(ax, [words(curve_result)[1][0], *words(diagram_result, "")[1]], CORNERS, fresh)
    return ax


def models(curves: Mapping[str, ReliabilityCurve | Assessment], ax: Axes | None = None) -> Axes:
    """Draw the curves of up to six models in one square, each with its own colour, lightness and dashes.

    Parameters
    ----------
    curves : mapping from name to ReliabilityCurve or Assessment
        What to draw, in this order, all of one notion. One or two have their bands.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    if not 0 < len(curves) <= len(LINES):
        raise ValueError(f"curves must hold 1 to {len(LINES)} curves to be told apart, got {len(curves)}")
    drawn: dict[str, ReliabilityCurve] = {name: part_of(each, "curve") for name, each in curves.items()}
    if len(kinds := {result.notion for result in drawn.values()}) > 1:
        raise ValueError(f"curves must be of one notion, got {sorted(kinds)}")
    fresh, ax = ax is None, new(1.0)[0, 0] if ax is None else ax
    banded = len(drawn) <= BANDED
    ax.set_xlabel(_square(ax, min(drawn.values(), key=lambda result: result.support[0])))
    for (name, result), (color, dashes) in zip(drawn.items(), LINES, strict=False):
        _line(ax, result, result.value, 0.0, color, None, dashes, 0.16 if banded else 0.0)
        entry = f"{plain(name, 16)}, {rounded(result.error)}"
        look = {"marker": "o", "linestyle": ""} if result.discrete else {"linestyle": dashes}
        ax.plot([], [], color=color, linewidth=1.6, label=entry, **look)
    size, level = words(result, "")[1]
    facts = [size] if len({round(curve.n) for curve in drawn.values()}) == 1 else []
    facts += [level.replace("intervals", "bands")] if banded and result.low is not None else []
    legend(ax, [*facts, "ECE by model"], CORNERS, fresh, handlelength=2.4)
    return ax


def local_error(result: ReliabilityCurve | Assessment, ax: Axes | None = None) -> Axes:
    """Draw the local calibration error, frequency minus score, with its band over the score."""
    drawn: ReliabilityCurve = part_of(result, "curve")
    fresh, ax = ax is None, new(0.75)[0, 0] if ax is None else ax
    ax.axhline(0, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    _line(ax, drawn, drawn.lce, drawn.score, CURVE, words(drawn)[0])
    # The band counts where it is firm: elsewhere it may span all there is, and would flatten the rest.
    band = [] if drawn.low is None or drawn.high is None else [drawn.low, drawn.high]
    firm = [(edge - drawn.score)[drawn.n_eff >= REPORT.assessed_rows] for edge in band]
    top = 1.1 * float(np.nanmax(np.abs(np.concatenate([drawn.lce, *firm])), initial=0.02))
    ax.set(xlim=LIMITS, ylim=(-top, top), xlabel=axis_labels(drawn)[0])
    ax.set_ylabel("{0.frequency}\nminus {0.score}".format(reading_of(drawn)))
    unit_ticks(ax, ax.xaxis)
    shade(ax, drawn)
    for y, side, hint in ((1, "top", "too low"), (0, "bottom", "too high")):
        ax.text(1.015, y, hint, color=GREY, size="small", rotation=270, va=side, transform=ax.transAxes)
    legend(ax, words(drawn)[1], (*CORNERS, "upper right", "lower left"), fresh)
    return ax


def draw(
    result: Any, ax: Axes | None, histogram: bool, key: bool, color: str, label: Any, entry: str = ""
) -> Axes:
    """Draw a diagram or a curve on the unit square; an `entry` is all that the legend says of it."""
    fresh, ax = ax is None, new(1.12)[0, 0] if ax is None else ax
    score, (usual, facts) = _square(ax, result), words(result, label)
    entry = entry or usual
    if hasattr(result, "edges"):
        _bins(ax, result, color, entry)
    else:
        _line(ax, result, result.value, 0.0, color, entry)
    (strip(ax, result, color) if histogram else getattr(ax, PANEL, ax)).set_xlabel(score)
    if key:
        legend(ax, facts, CORNERS, fresh)
    return ax


def _square(ax: Any, result: Any) -> str:
    """Lay out the unit square: equal aspect, the diagonal once, a y axis that says what is measured."""
    score, frequency = axis_labels(result)
    ax.set(xlim=LIMITS, ylim=LIMITS, aspect="equal")
    ax.apply_aspect()
    ax.set_ylabel(frequency if inches(ax) > 2.2 else frequency.split()[0])  # or it would meet "count"
    for axis in (ax.xaxis, ax.yaxis):
        unit_ticks(ax, axis)
    if CALIBRATED not in (line.get_label() for line in ax.lines):
        ends = (shade(ax, result), 1.0)
        ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    return score


def _bins(ax: Any, result: ReliabilityDiagram, color: str, label: str) -> None:
    held = (result.count > 0) & np.isfinite(result.frequency)
    score, share = result.score[held], result.count[held] / np.max(result.count, initial=1e-300)
    # The root keeps a bin of 1 % of the sample visible beside one of 84 %.
    area = 10 + (min(max(3.2 * inches(ax), 5.0), 9.0) ** 2 - 10) * np.sqrt(share)
    ax.vlines(score, result.low[held], result.high[held], color=color, linewidth=1, zorder=3)
    marks = ax.scatter(score, result.frequency[held], area, color, zorder=4, label=label)
    marks.set(edgecolor=ax.get_facecolor(), linewidth=0.4)


def _line(ax: Any, result: Any, middle: Any, base: Any, color: str, label: str | None,
          dashes: Any = "-", tint: float = 0.22) -> None:  # fmt: skip
    """Draw a curve with its band, faint where few rows speak; or a point with a bar for each score."""
    few, width = result.n_eff < REPORT.assessed_rows, 1.1 if inches(ax) < NARROW else 1.6
    if result.discrete:
        for rows, faint, name in ((~few, 1.0, label), (few, 0.3, None)):
            style = {"color": color, "alpha": faint}
            if result.low is not None and tint:
                ends = ((end - base)[rows] for end in (result.low, result.high))
                ax.vlines(result.score[rows], *ends, linewidth=width, zorder=2.5, **style)
            ax.plot(
                result.score[rows], middle[rows], "o", markersize=3 * width, zorder=3, label=name, **style
            )
        return
    for rows, faint, name in ((~few, 1.0, label), (few, 0.3, None)):
        style = {"color": color, "alpha": faint, "linewidth": width * faint, "zorder": 2.5 * faint}
        if result.low is not None and tint:
            low, high = result.low - base, result.high - base
            held, flat = rows & np.isfinite(middle + low + high), {"alpha": tint * faint, "linewidth": 0}
            ax.fill_between(result.score, low, high, held, color=color, zorder=2, label=name, **flat)
            name = None
        ax.plot(result.score, np.where(rows, middle, np.nan), label=name, linestyle=dashes, **style)


def strip(ax: Any, result: Any, color: str, peers: Sequence[Any] = (), bare: bool = False) -> Any:
    """Draw the counts of the scores underneath on the same x axis; a log scale if some peer needs one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    panel, (edges, counts) = getattr(ax, PANEL, None), result.histogram
    if first := panel is None:
        current, size = ax.figure.gca(), "22%" if bare else "20%"
        panel = make_axes_locatable(ax).append_axes("bottom", size=size, pad=0.05, sharex=ax)
        setattr(ax, PANEL, panel)
        if ax.get_subplotspec() is not None:  # so that layout engines leave space for its labels
            panel.set_subplotspec(ax.get_subplotspec())
        ax.tick_params(labelbottom=False)
        ax.figure.sca(current)
        shade(panel, result)
    panel.stairs(counts, edges, fill=first, color=color, alpha=0.6 if first else 1.0)
    cells = [peer.histogram[1][peer.histogram[1] > 0] for peer in (result, *peers)]
    log = panel.get_yscale() == "log" or any(h.size and h.max() > DWARFED * np.median(h) for h in cells)
    panel.set_yscale("log" if log else "linear")
    panel.set_ylim(0.6 * panel.dataLim.minposy if log else 0, panel.dataLim.y1 * (2.0 if log else 1.15))
    panel.set_ylabel(("log count" if log else "count") if not bare else "log" if log else "")
    if bare:
        panel.tick_params(left=False, labelleft=False)
        panel.yaxis.label.set(size="x-small", rotation=0, ha="right", va="center")
    panel.yaxis.set_major_locator(LogLocator(numticks=3) if log else MaxNLocator(2))
    panel.minorticks_off()
    panel.yaxis.set_major_formatter(FuncFormatter(counted))
    return panel
