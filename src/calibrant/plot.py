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

CURVE, BINS, GREY = "#12376b", "#c4661f", "0.45"
PANEL = "_calibrant_histogram"  # the attribute of a main panel that holds the one underneath
CALIBRATED = "calibrated"  # the label of the reference line, by which a second call finds it
LIMITS = (-0.03, 1.03)  # room around [0, 1], so that markers at 0 and 1 are whole
DWARFED = 25.0  # a largest cell this many times the median one asks for a log axis
NARROW = 1.4  # inches; a panel below has fewer ticks and finer lines
FEW = 3.0  # observations in a bandwidth, about ten under the kernel; a curve resting on fewer is faint
CORNERS = ("upper left", "lower right")  # those the diagonal leaves free
KEY: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "frameon": False, "alignment": "left"}
KEY |= {"labelspacing": 0.3, "handlelength": 1.6, "columnspacing": 1.0}


def diagram(result: ReliabilityDiagram, ax: Axes | None = None, *, histogram: bool = True,
            legend: bool = True, color: str = BINS, label: str | None = None) -> Axes:  # fmt: skip
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
        Whether to write error, sample size and legend into the emptier corner, or above if data lie in both.
    color, label : str, optional
        Colour of all marks, and a name in the legend, for several results on one Axes.

    Returns
    -------
    Axes
        The main panel.
    """
    return _draw(result, ax, histogram, legend, color, label)


def curve(result: ReliabilityCurve, ax: Axes | None = None, *, histogram: bool = True,
          legend: bool = True, color: str = CURVE, label: str | None = None) -> Axes:  # fmt: skip
    """Draw a reliability curve and its band where there are data, faint where these are few.

    The parameters and the Axes returned are those of `diagram`.
    """
    return _draw(result, ax, histogram, legend, color, label)


def overlay(
    curve_result: ReliabilityCurve, diagram_result: ReliabilityDiagram, ax: Axes | None = None
) -> Axes:
    """Draw a curve with its band and, over it, the bins of a diagram of the same sample with their bars."""
    ax = curve(curve_result, ax, legend=False, label="curve")
    return diagram(diagram_result, ax, histogram=False, label="bins")


def local_error(result: ReliabilityCurve, ax: Axes | None = None) -> Axes:
    """Draw the local calibration error, frequency minus score, with its band over the score."""
    ax = _new(0.75)[0, 0] if ax is None else ax
    ax.axhline(0, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    _line(ax, result, result.lce, result.score, CURVE, _words(result)[0])
    top = 1.1 * float(np.nanmax(np.abs(_drawn(ax)[:, 1]), initial=0.02))
    ax.set(xlim=LIMITS, ylim=(-top, top), xlabel=_axis_labels(result)[0])
    ax.set_ylabel("accuracy\nminus confidence" if result.notion == "confidence" else "frequency\nminus score")
    _shade(ax, result)
    for y, hint in ((0.75, "too low"), (0.25, "too high")):
        ax.text(1.015, y, hint, color=GREY, size="small", rotation=270, va="center", transform=ax.transAxes)
    _legend(ax, _words(result)[1], (*CORNERS, "upper right", "lower left"))
    return ax


def small_multiples(
    results: Mapping[Any, ReliabilityCurve | ReliabilityDiagram], axes: Any = None, *, histogram: bool = True
) -> NDArray[np.object_]:
    """Draw one square panel per class, all on the same axes, with the error of the class in a corner.

    Parameters
    ----------
    results : mapping of class to ReliabilityCurve or ReliabilityDiagram
        What to draw, in this order.
    axes : array of Axes, optional
        Where to draw, one per result; any more are switched off. One new figure with a legend otherwise.
    histogram : bool
        Whether to put a strip with the distribution of the scores under each panel.

    Returns
    -------
    array of Axes
        The main panels, in the order of `results`.
    """
    count, peers = len(results), list(results.values())
    if not 0 < count <= (count if axes is None else np.size(axes)):
        raise ValueError(f"axes must hold one Axes per result, and results at least one, got {count} results")
    grid = np.asarray(_new(1.28, count) if axes is None else axes, dtype=object)
    panels, columns = grid.ravel(), grid.shape[-1] if grid.ndim else 1
    for i, (name, result) in enumerate(results.items()):
        ax = _draw(result, panels[i], False, False, BINS if hasattr(result, "edges") else CURVE, None)
        lowest = _histogram(ax, result, GREY, peers, strip=True) if histogram else ax
        left, bottom = i % columns == 0, i // columns == (count - 1) // columns
        ax.set(xlabel="", ylabel=ax.get_ylabel().split()[0] if left else "")
        ax.tick_params(labelleft=left)
        ax.set_title(_plain(name, int(12 * _inches(ax))), size="medium")
        lowest.yaxis.label.set_visible(left)
        lowest.set_xlabel(_axis_labels(result)[0].split()[0] if bottom else "")
        lowest.tick_params(labelbottom=i + columns >= count)
        error = _words(result)[1][0].removeprefix("ECE " if _inches(ax) < 1 else "")
        note = ax.text(0.05, 0.95, error, transform=ax.transAxes, va="top", size="small")
        if _corner(ax, note, CORNERS)[0] == "lower right":
            note.set(x=0.95, y=0.05, ha="right", va="bottom")
    for panel in panels[count:]:
        panel.set_axis_off()
    if axes is None:
        key = {"title": f"in the corners: ECE; {_words(result)[1][1]}", "ncols": 2, **KEY}
        ax.figure.legend(*_handles(ax), loc="outside lower center", **key)
    return panels[:count]


def _new(ratio: float, n: int = 1) -> Any:
    """Make one figure of n panels, in rows as even as may be, each `ratio` times as high as wide."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'calibrant[plot]'") from error
    width = plt.rcParams["figure.figsize"][0] if n > 1 else min(plt.rcParams["figure.figsize"])
    columns = math.ceil(n / (rows := math.ceil(n / max(1, int(width / 1.1)))))
    size = (width, rows * (ratio * (width - 0.5) / columns + 0.3) + 0.6 if n > 1 else ratio * width)
    return plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)[1]


def _draw(result: Any, ax: Axes | None, histogram: bool, legend: bool, color: str, label: Any) -> Axes:
    """Draw a result on the unit square: equal aspect, the diagonal once, axes that say what is measured."""
    ax = _new(1.12)[0, 0] if ax is None else ax
    from matplotlib.ticker import MaxNLocator

    (score, frequency), (entry, facts) = _axis_labels(result), _words(result, label)
    ax.set(xlim=LIMITS, ylim=LIMITS, aspect="equal")
    ax.apply_aspect()
    ax.set_ylabel(frequency if _inches(ax) > 2.2 else frequency.split()[0])  # or it would meet "count"
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(3 if _inches(ax) < NARROW else 6, steps=[1, 2, 5, 10]))
    if CALIBRATED not in (line.get_label() for line in ax.lines):
        ends = (_shade(ax, result), 1.0)
        ax.plot(ends, ends, color=GREY, linestyle="--", linewidth=1, zorder=1, label=CALIBRATED)
    if hasattr(result, "edges"):
        _bins(ax, result, color, entry)
    else:
        _line(ax, result, result.probability, 0.0, color, entry)
    (_histogram(ax, result, color) if histogram else getattr(ax, PANEL, ax)).set_xlabel(score)
    if legend:
        _legend(ax, facts, CORNERS)
    return ax


def _bins(ax: Any, result: ReliabilityDiagram, color: str, label: str) -> None:
    held = (result.count > 0) & np.isfinite(result.frequency)
    score, share = result.score[held], result.count[held] / np.max(result.count, initial=1e-300)
    # The root keeps a bin of 1 % of the sample visible beside one of 84 %.
    area = 10 + (min(max(3.2 * _inches(ax), 5.0), 9.0) ** 2 - 10) * np.sqrt(share)
    ax.vlines(score, result.low[held], result.high[held], color=color, linewidth=1, zorder=3)
    marks = ax.scatter(score, result.frequency[held], area, color, zorder=4, label=label)
    marks.set(edgecolor=ax.get_facecolor(), linewidth=0.4)


def _line(ax: Any, result: Any, middle: Any, base: Any, color: str, label: str) -> None:
    few, width = result.n * result.bandwidth * result.density < FEW, 1.1 if _inches(ax) < NARROW else 1.6
    for part, faint, name in ((~few, 1.0, label), (few, 0.3, None)):
        style = {"color": color, "alpha": faint, "linewidth": width * faint, "zorder": 2.5 * faint}
        if result.low is not None:
            low, high = result.low - base, result.high - base
            held, tint = part & np.isfinite(middle + low + high), {"alpha": 0.22 * faint, "linewidth": 0}
            ax.fill_between(result.score, low, high, held, color=color, zorder=2, label=name, **tint)
            name = None
        ax.plot(result.score, np.where(part, middle, np.nan), label=name, **style)


def _shade(ax: Any, result: Any) -> float:
    """Shade the scores that cannot occur (confidences below 1/C) and return the first that can."""
    if (start := float(result.support[0])) > 0:
        ax.axvspan(LIMITS[0], start, color="0.5", alpha=0.1, linewidth=0, zorder=0)
    return start


def _histogram(ax: Any, result: Any, color: str, peers: Sequence[Any] = (), strip: bool = False) -> Any:
    """Draw the counts of the scores underneath on the same x axis; a log scale if some peer needs one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    panel, (edges, counts) = getattr(ax, PANEL, None), result.histogram
    if first := panel is None:
        current, size = ax.figure.gca(), "22%" if strip else "20%"
        panel = make_axes_locatable(ax).append_axes("bottom", size=size, pad=0.05, sharex=ax)
        setattr(ax, PANEL, panel)
        if ax.get_subplotspec() is not None:  # so that layout engines leave room for its labels
            panel.set_subplotspec(ax.get_subplotspec())
        ax.tick_params(labelbottom=False)
        ax.figure.sca(current)
        _shade(panel, result)
    panel.stairs(counts, edges, fill=first, color=color, alpha=0.6 if first else 1.0)
    cells = [peer.histogram[1][peer.histogram[1] > 0] for peer in (result, *peers)]
    log = panel.get_yscale() == "log" or any(h.size and h.max() > DWARFED * np.median(h) for h in cells)
    panel.set_yscale("log" if log else "linear")
    panel.set_ylim(0.6 * panel.dataLim.minposy if log else 0, panel.dataLim.y1 * (2.0 if log else 1.15))
    panel.set_ylabel(("log count" if log else "count") if not strip else "log" if log else "")
    if strip:
        panel.tick_params(left=False, labelleft=False)
        panel.yaxis.label.set(size="x-small", rotation=0, ha="right", va="center")
    panel.yaxis.set_major_locator(LogLocator(numticks=3) if log else MaxNLocator(2))
    panel.minorticks_off()
    panel.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}" if v < 1000 else f"{v / 1000:g}k"))
    return panel


def _legend(ax: Any, facts: Sequence[str], corners: Sequence[str]) -> None:
    """Write into the emptiest corner or, where that would cover data, above the panel."""
    inside = {"title": "\n".join(facts), **KEY}
    corner, covered = _corner(ax, ax.legend(*_handles(ax), **inside), corners)
    above = {"title": ", ".join(facts), "bbox_to_anchor": (0.5, 1), "ncols": 2, **KEY}
    ax.legend(*_handles(ax), loc="lower center" if covered else corner, **(above if covered else inside))


def _handles(ax: Any) -> tuple[list[Any], list[str]]:
    """Legend entries that look like what is drawn: a marker on its bar, a line in its band."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    for i, handle in enumerate(handles):
        dots, band = isinstance(handle, PathCollection), isinstance(handle, PolyCollection)
        style = {"color": handle.get_facecolor()[0, :3], "lw": 1.6 * band} if dots or band else {}
        if dots:
            handles[i] = tuple(Line2D([], [], marker=m, ms=s, **style) for m, s in (("|", 11), ("o", 5)))
        elif band:
            handles[i] = (handle, Line2D([], [], **style))
    return handles, labels


def _drawn(ax: Any) -> NDArray[np.float64]:
    """Points along everything drawn, the reference line aside; a marker lies on its bar."""
    paths = [line.get_path() for line in ax.lines if line.get_label() != CALIBRATED]
    paths += [path for group in ax.collections if group.get_zorder() < 4 for path in group.get_paths()]
    return np.concatenate([np.empty((0, 2)), *(path.interpolated(9).vertices for path in paths)])


def _corner(ax: Any, text: Any, corners: Sequence[str]) -> tuple[str, int]:
    """Find the corner where the text covers least of what is drawn, and how much it covers there."""
    ax.apply_aspect(locator(ax, None) if (locator := ax.get_axes_locator()) else None)
    width, height = 1.1 * text.get_window_extent().size / ax.get_window_extent().size
    x, y = (ax.transScale + ax.transLimits).transform(_drawn(ax)).T
    sides = {"left": x < width, "right": x > 1 - width, "lower": y < height, "upper": y > 1 - height}
    covered = {c: int(np.sum(np.all([sides[side] for side in c.split()], axis=0))) for c in corners}
    best = min(covered, key=covered.__getitem__)
    return best, covered[best]


def _axis_labels(result: Any) -> tuple[str, str]:
    if result.notion == "confidence":
        return "confidence", "accuracy"
    name = "" if result.label is None else f" of class {_plain(result.label)}"
    return f"score{name}", "frequency of the class"


def _words(result: Any, label: str | None = None) -> tuple[str, list[str]]:
    """The entry in the legend, and the lines above it; a named result has its error in the entry."""
    error = "ECE < 0.001" if result.error < 0.001 else f"ECE {result.error:.3f}"
    size, percent = f"n = {result.n:,.0f}", _plain(f"{100 * result.level:g} %")
    if label is not None:
        return f"{_plain(label)}, {error}", [size, f"{percent} intervals"]
    what = "interval" if hasattr(result, "edges") else "band"
    return "curve" if result.low is None else f"{percent} {what}", [error, size]


def _inches(ax: Any) -> float:
    return float(ax.get_window_extent().width / ax.figure.dpi)


def _plain(name: object, longest: int = 20) -> str:
    """Shorten a name to what an axis has room for, and keep its dollars from being read as mathematics."""
    from matplotlib import rcParams

    text = " ".join(str(name).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return re.sub(r"([$%&#_{}])" if rcParams["text.usetex"] else r"(\$)", r"\\\1", text)
