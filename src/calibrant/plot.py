"""Pictures of results: nothing is computed here, only laid out.

Every function draws on the Axes it is given, or on one new figure, and returns the main panel. Colours differ
in lightness and marks in shape, so that a picture survives a grey print. matplotlib is imported on use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from calibrant.results import ReliabilityCurve, ReliabilityDiagram

    Result = ReliabilityCurve | ReliabilityDiagram

CURVE, BINS, GREY = "#12376b", "#c4661f", "0.45"
CALIBRATED = "calibrated"  # the label of the reference line, by which a second call finds it
LIMITS = (-0.03, 1.03)  # room around [0, 1], so that markers at 0 and 1 are whole
DWARFED = 25.0  # a largest cell this many times the median one asks for a log axis
NARROW = 1.4  # inches; a panel below has fewer ticks, smaller type and finer lines
CORNERS = ("upper left", "lower right")  # those the diagonal leaves free
KEY = {"fontsize": "small", "title_fontsize": "small", "labelspacing": 0.3, "frameon": False}


def diagram(
    result: ReliabilityDiagram,
    ax: Axes | None = None,
    *,
    histogram: bool = True,
    legend: bool = True,
    color: str = BINS,
    label: str | None = None,
) -> Axes:
    """Draw a reliability diagram: a marker and a bar for each bin with mass, the area growing with its count.

    Parameters
    ----------
    result : ReliabilityDiagram
        What to draw.
    ax : Axes, optional
        Where to draw; one new figure otherwise.
    histogram : bool
        Whether to put the distribution of the scores underneath, within the room that `ax` has.
    legend : bool
        Whether to write the error, the sample size and a legend into the emptier corner, or above the panel
        when data lie in both.
    color : str
        Colour of the markers, bars and histogram.
    label : str, optional
        Name in the legend, for several results on one Axes.

    Returns
    -------
    Axes
        The main panel.
    """
    ax = _frame(ax, result)
    _bins(ax, result, color, _words(result, label)[0])
    return _finish(ax, result, histogram, legend, color, label)


def curve(
    result: ReliabilityCurve,
    ax: Axes | None = None,
    *,
    histogram: bool = True,
    legend: bool = True,
    color: str = CURVE,
    label: str | None = None,
) -> Axes:
    """Draw a reliability curve and its band where there are data, thin where these are few.

    The parameters and the Axes returned are those of `diagram`.
    """
    ax = _frame(ax, result)
    _line(ax, result, result.probability, 0.0, color, _words(result, label)[0])
    return _finish(ax, result, histogram, legend, color, label)


def overlay(
    curve_result: ReliabilityCurve, diagram_result: ReliabilityDiagram, ax: Axes | None = None
) -> Axes:
    """Draw a curve with its band and, over it, the bins of a diagram of the same sample with their bars."""
    ax = curve(curve_result, ax, legend=False, label="curve")
    return diagram(diagram_result, ax, histogram=False, label="bins")


def local_error(result: ReliabilityCurve, ax: Axes | None = None, *, legend: bool = True) -> Axes:
    """Draw the local calibration error, frequency minus score, with its band over the score.

    The parameters and the Axes returned are those of `diagram`.
    """
    ax = _new(0.75) if ax is None else ax
    entry, facts = _words(result)
    ax.axhline(0, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    _line(ax, result, result.lce, result.score, CURVE, entry)
    reach = np.abs(_drawn(ax)[:, 1])
    top = 1.1 * float(np.max(reach, initial=0.02, where=np.isfinite(reach)))
    ax.set(xlim=LIMITS, ylim=(-top, top), xlabel=_axis_labels(result)[0])
    ax.set_ylabel("accuracy\nminus confidence" if result.notion == "confidence" else "frequency\nminus score")
    _shade(ax, result)
    for height, hint in ((0.75, "too low"), (0.25, "too high")):
        style = {"rotation": 270, "va": "center", "color": GREY, "size": "small"}
        ax.text(1.015, height, hint, transform=ax.transAxes, **style)
    if legend:
        _legend(ax, facts, (*CORNERS, "upper right", "lower left"))
    return ax


def small_multiples(
    results: Mapping[Any, Result], axes: Any = None, *, histogram: bool = True, n_columns: int | None = None
) -> NDArray[np.object_]:
    """Draw one square panel per class, all on the same axes, with the error of the class in a corner.

    Parameters
    ----------
    results : mapping of class to ReliabilityCurve or ReliabilityDiagram
        What to draw, in this order.
    axes : array of Axes, optional
        Where to draw, at least as many as results; those left over are switched off. One new figure of the
        default width otherwise, with a legend.
    histogram : bool
        Whether to put a strip with the distribution of the scores under each panel.
    n_columns : int, optional
        Panels in a row of the new figure.

    Returns
    -------
    array of Axes
        The main panels, in the order of `results`.
    """
    count = len(results)
    if not 0 < count <= (count if axes is None else np.size(axes)):
        raise ValueError(
            f"axes must hold one Axes per result, and there must be a result: got {count} results"
        )
    grid = np.asarray(_new(1.3, count, n_columns) if axes is None else axes, dtype=object)
    panels, columns = grid.ravel(), grid.shape[-1] if grid.ndim > 1 else grid.size
    log = any(_dwarfs(result) for result in results.values())
    for i, (name, result) in enumerate(results.items()):
        ax, (entry, facts) = _frame(panels[i], result), _words(result)
        if hasattr(result, "edges"):
            _bins(ax, result, BINS, entry)
        else:
            _line(ax, result, result.probability, 0.0, CURVE, entry)
        left, lowest = i % columns == 0, _histogram(ax, result, GREY, log, strip=True) if histogram else ax
        score, frequency = (text.split()[0] for text in _axis_labels(result))
        ax.set(xlabel="", ylabel=frequency if left else "")
        ax.tick_params(labelleft=left)
        ax.set_title(_plain(name, int(12 * _inches(ax))), size="medium")
        lowest.set_xlabel(score if i // columns == (count - 1) // columns else "")
        lowest.tick_params(labelbottom=i + columns >= count)
        if histogram and log and left:
            lowest.set_ylabel("log", size="small", rotation=0, ha="right", va="center")
        text = facts[0] if _inches(ax) > 1 else facts[0].removeprefix("ECE ")
        high = _corner(ax, [text], CORNERS)[0] == "upper left"
        x, y, ha, va = (0.05, 0.95, "left", "top") if high else (0.95, 0.05, "right", "bottom")
        ax.text(x, y, text, transform=ax.transAxes, ha=ha, va=va, size="small")
    for panel in panels[count:]:
        panel.set_axis_off()
    if axes is None:
        key = {"title": f"in the corners: ECE; {facts[1]}", "loc": "outside lower center", "ncols": 2}
        panels[0].figure.legend(*_handles(panels[0]), **key, **KEY)
    return panels[:count]


def _new(ratio: float, n: int = 1, n_columns: int | None = None) -> Any:
    """Make one figure of n panels, in rows as even as may be, each `ratio` times as high as wide."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'calibrant[plot]'") from error
    width = plt.rcParams["figure.figsize"][0] if n > 1 else min(plt.rcParams["figure.figsize"])
    rows = math.ceil(n / (n_columns or max(1, int(width / 1.1))))
    columns = n_columns or math.ceil(n / rows)
    size = (width, rows * ratio * width / columns + 0.7 * (n > 1))
    axes = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)[1]
    return axes if n > 1 else axes[0, 0]


def _frame(ax: Axes | None, result: Result) -> Axes:
    """Set up the unit square: equal aspect, the diagonal once, axes that say what is measured."""
    axes: Axes = _new(1.12) if ax is None else ax
    from matplotlib.ticker import MaxNLocator

    score, frequency = _axis_labels(result)
    axes.set(xlim=LIMITS, ylim=LIMITS, aspect="equal", xlabel=score, ylabel=frequency)
    axes.apply_aspect()
    ticks = (
        {"nbins": 2, "steps": [1, 5, 10]} if _inches(axes) < NARROW else {"nbins": 6, "steps": [1, 2, 5, 10]}
    )
    axes.xaxis.set_major_locator(MaxNLocator(**ticks))
    axes.yaxis.set_major_locator(MaxNLocator(**ticks))
    if CALIBRATED not in (line.get_label() for line in axes.lines):
        ends = (_shade(axes, result), 1.0)
        axes.plot(ends, ends, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    return axes


def _finish(ax: Axes, result: Result, histogram: bool, legend: bool, color: str, label: str | None) -> Axes:
    if histogram:
        _histogram(ax, result, color, _dwarfs(result))
    elif _panel(ax) is not None:
        ax.set_xlabel("")
    if legend:
        _legend(ax, _words(result, label)[1], CORNERS)
    return ax


def _bins(ax: Axes, result: ReliabilityDiagram, color: str, label: str) -> None:
    held = np.flatnonzero((result.count > 0) & np.isfinite(result.frequency))
    share = result.count[held] / np.max(result.count, initial=1e-300)
    # The root keeps a bin of 1 % of the sample visible beside one of 84 %.
    area = 9 + (min(max(3.2 * _inches(ax), 5.0), 9.0) ** 2 - 9) * np.sqrt(share)
    style = {"edgecolors": ax.get_facecolor(), "linewidths": 0.4, "zorder": 4, "label": label}
    ax.vlines(result.score[held], result.low[held], result.high[held], color=color, linewidth=1, zorder=3)
    ax.scatter(result.score[held], result.frequency[held], area, color, **style)


def _line(ax: Axes, result: ReliabilityCurve, middle: Any, base: Any, color: str, label: str) -> None:
    few = result.n * result.bandwidth * result.density < 1  # less than one observation in a bandwidth
    width = 1.1 if _inches(ax) < NARROW else 1.6
    for part, strength, name in ((~few, 1.0, label), (few, 0.4, None)):
        style = {"color": color, "linewidth": width * strength, "zorder": 2.5}
        if result.low is not None and result.high is not None:
            low, high = result.low - base, result.high - base
            held = part & np.isfinite(middle + low + high)
            band = {"color": color, "alpha": 0.22 * strength, "linewidth": 0, "zorder": 2}
            ax.fill_between(result.score, low, high, where=held, label=name, **band)
            name = None
        ax.plot(result.score, np.where(part, middle, np.nan), label=name, **style)


def _shade(ax: Axes, result: Result) -> float:
    """Shade the scores that cannot occur (confidences below 1/C) and return the first that can."""
    start = float(result.support[0])
    if start > 0:
        ax.axvspan(LIMITS[0], start, color="0.5", alpha=0.1, linewidth=0, zorder=0)
    return start


def _panel(ax: Axes) -> Any:
    return next((other for other in ax.figure.axes if other.get_label() == f"histogram {id(ax)}"), None)


def _dwarfs(result: Result) -> bool:
    held = [count for count in result.histogram[1] if count > 0]
    return bool(held) and max(held) > DWARFED * float(np.median(held))


def _histogram(ax: Axes, result: Result, color: str, log: bool, strip: bool = False) -> Axes:
    """Draw the counts of the scores under the main panel, on the same x axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    edges, counts = result.histogram
    panel, current = _panel(ax), ax.figure.gca()
    if first := panel is None:
        place = {"size": "18%" if strip else "20%", "pad": 0.05, "label": f"histogram {id(ax)}"}
        panel = make_axes_locatable(ax).append_axes("bottom", sharex=ax, **place)
        if ax.get_subplotspec() is not None:  # so that layout engines leave room for its labels
            panel.set_subplotspec(ax.get_subplotspec())
        ax.figure.sca(current)
        ax.tick_params(labelbottom=False)
        _shade(panel, result)
    panel.stairs(counts, edges, fill=first, color=color, alpha=0.6 if first else 1.0)
    panel.set_yscale("log" if log else "linear")
    panel.set_ylim(0.6 * min(counts[counts > 0]) if log else 0, max(counts) * (2.0 if log else 1.15))
    ticks = LogLocator(numticks=3) if log else MaxNLocator(2)
    panel.yaxis.set_major_locator(NullLocator() if strip else ticks)
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if v < 1000 else f"{v / 1000:g}k"))
    panel.set(xlabel=ax.get_xlabel(), ylabel="" if strip else "log count" if log else "count")
    ax.set_xlabel("")
    return panel


def _legend(ax: Axes, facts: Sequence[str], corners: Sequence[str]) -> None:
    handles, labels = _handles(ax)
    corner, free = _corner(ax, [*facts, *("    " + label for label in labels)], corners)
    inside = {"loc": corner, "title": "\n".join(facts)}
    above = {"loc": "lower left", "bbox_to_anchor": (0, 1), "ncols": 2, "title": ", ".join(facts)}
    ax.legend(handles, labels, alignment="left", **(inside if free else above), **KEY)


def _handles(ax: Axes) -> tuple[list[Any], list[str]]:
    """Legend entries that look like what is drawn: a marker on its bar, a line in its band."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    for i, handle in enumerate(handles):
        if isinstance(handle, PathCollection | PolyCollection):
            line = Line2D([], [], color=handle.get_facecolor()[0][:3], linewidth=1.6)
        if isinstance(handle, PathCollection):
            line.set(linestyle="none", marker="o", markersize=5)
            bar = Line2D([], [], color=line.get_color(), linestyle="none", marker="|", markersize=11)
            handles[i] = (bar, line)
        elif isinstance(handle, PolyCollection):
            handles[i] = (handle, line)
    return handles, labels


def _drawn(ax: Axes) -> NDArray[np.float64]:
    """Points along everything drawn, the reference line aside; a marker lies on its bar."""
    from matplotlib.collections import PathCollection

    paths = [line.get_path() for line in ax.lines if line.get_label() != CALIBRATED]
    for group in ax.collections:
        paths += [] if isinstance(group, PathCollection) else group.get_paths()
    return np.concatenate([np.empty((0, 2)), *(path.interpolated(9).vertices for path in paths)])


def _corner(ax: Axes, lines: Sequence[str], corners: Sequence[str]) -> tuple[str, bool]:
    """Find the corner where these lines of text cover least of what is drawn, and whether they cover none."""
    from matplotlib.font_manager import FontProperties

    box = ax.get_window_extent()
    em = FontProperties(size="small").get_size_in_points() / 72 * ax.figure.dpi
    width, height = (
        em * (0.6 * max(map(len, lines)) + 1) / box.width,
        em * (1.4 * len(lines) + 1) / box.height,
    )
    x, y = (ax.transScale + ax.transLimits).transform(_drawn(ax)).T

    def covered(corner: str) -> int:
        beside = x < width if "left" in corner else x > 1 - width
        return int(np.sum(beside & (y > 1 - height if "upper" in corner else y < height)))

    best = min(corners, key=covered)
    return best, not covered(best)


def _axis_labels(result: Result) -> tuple[str, str]:
    if result.notion == "confidence":
        return "confidence", "accuracy"
    name = "" if result.label is None else f" of class {_plain(result.label)}"
    return f"score{name}", "frequency of the class"


def _words(result: Result, label: str | None = None) -> tuple[str, list[str]]:
    """The entry in the legend, and the lines above it; a named result has its error in the entry."""
    error = f"ECE {result.error:.3f}" if result.error >= 0.001 else "ECE < 0.001"
    size, percent = f"n = {result.n:,.0f}", _plain(f"{100 * result.level:g} %")
    if label is not None:
        return f"{_plain(label)}, {error}", [size, f"{percent} intervals"]
    return f"{percent} {'interval' if hasattr(result, 'edges') else 'band'}", [error, size]


def _inches(ax: Axes) -> float:
    return float(ax.get_window_extent().width / ax.figure.dpi)


def _plain(name: object, longest: int = 20) -> str:
    """Shorten a name to what an axis has room for, and keep its dollars from being read as mathematics."""
    from matplotlib import rcParams

    text = " ".join(str(name).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return re.sub(r"([$%&#_{}])" if rcParams["text.usetex"] else r"(\$)", r"\\\1", text)
