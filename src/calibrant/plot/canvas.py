"""Shared parts of all plots: colours, new figures, space for text, and names as plain text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.assessment import Assessment
from calibrant.curves import ByClass
from calibrant.inputs import InputTypeError
from calibrant.inputs.house_style import CALIBRATED, LINE, error_text, log_odds_ticks
from calibrant.inputs.wording import count, percent, size_name
from calibrant.tasks.notions import NotionWording, get_notion

if TYPE_CHECKING:
    from numpy.typing import NDArray

LIMITS = (-0.03, 1.03)  # margin around [0, 1], so that markers at 0 and 1 are not cut
COLUMN = 3.3  # inches; a new figure is no narrower, unless figures are set to be
SPARSE = 1.9  # inches; a panel below has fewer ticks
MOST = 200  # characters of a name that are measured; more than fit on any axis
LEGEND_BOX = "legend above"
CORNERS = ("upper left", "lower right")  # those the diagonal leaves free
KEY: dict[str, Any] = {"fontsize": "small", "title_fontsize": "small", "frameon": False, "alignment": "left"}
KEY |= {"labelspacing": 0.3, "handlelength": 1.6, "columnspacing": 1.0}
Size: TypeAlias = tuple[float, float] | None


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say what to install."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("drawing needs matplotlib: pip install 'calibrant[plot]'") from error
    return plt


def new(ratio: float, n: int = 1, figsize: Size = None) -> Any:
    """Make one figure of n panels, in rows as even as may be, each `ratio` times as high as wide."""
    plt = pyplot()
    wide, high = figsize or plt.rcParams["figure.figsize"]
    width = wide if n > 1 or figsize else max(min(wide, high), min(wide, COLUMN))
    columns = math.ceil(n / (rows := math.ceil(n / max(1, int(width / 1.1 + 1e-9)))))
    size = (width, rows * (ratio * (width - 0.5) / columns + 0.2) + 0.95 if n > 1 else ratio * width)
    return plt.subplots(rows, columns, figsize=figsize or size, layout="constrained", squeeze=False)[1]


def panel(ax: Any, ratio: float, figsize: Size) -> tuple[bool, Any]:
    """Return whether the figure is new and may grow, and the given Axes or those of a new figure."""
    return ax is None and figsize is None, new(ratio, figsize=figsize)[0, 0] if ax is None else ax


def stacked(ax: Any, count: int, size: tuple[float, float]) -> Any:
    """Return the given Axes, which must be so many, or panels of a new figure, one below the other."""
    if ax is None:
        _, ax = pyplot().subplots(count, 1, figsize=size, layout="constrained", sharex=True)
    if len(ax) != count:
        raise ValueError(f"ax must be {count} panels, got {len(ax)}")
    return ax


def unit_ticks(ax: Any, axis: Any) -> None:
    """Set the ticks of an axis of scores, few in a small panel."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator

    most = 3 if inches(ax) < SPARSE else 6
    if axis.get_scale() == "logit":
        low, high = axis.get_view_interval()
        ticks = log_odds_ticks(low, high, most)
        axis.set_major_locator(FixedLocator(list(ticks)))
        axis.set_major_formatter(FixedFormatter(list(ticks.values())))
        ax.minorticks_off()
    else:
        axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))


def inches(ax: Any) -> float:
    """Return the width of the panel as it is now."""
    return float(ax.get_window_extent().width / ax.figure.dpi)


def settle(ax: Any) -> None:
    """Set the position of the panel among those that share its space."""
    ax.apply_aspect(locator(ax, None) if (locator := ax.get_axes_locator()) else None)


def space(ax: Any) -> float:
    """Return the inches that the panel may take with all that is written beside it."""
    share = min(1.25 * ax.get_position(original=True).width, 1.0)
    return float(share * ax.figure.bbox.width / ax.figure.dpi)


def attached(ax: Any, side: str, size: str, pad: float, **shared: Any) -> Any:
    """Add a panel within the space of another one, at its side."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    current = ax.figure.gca()
    added = make_axes_locatable(ax).append_axes(side, size=size, pad=pad, **shared)
    if ax.get_subplotspec() is not None:  # so that layout engines leave space for its labels
        added.set_subplotspec(ax.get_subplotspec())
    ax.figure.sca(current)
    return added


def shade(ax: Any, result: Any) -> float:
    """Shade the scores that cannot occur (confidences below 1/C) and return the first that can."""
    start = float(result.support[0]) if get_notion(result.notion).top else 0.0
    if start > 0:
        ax.axvspan(ax.get_xlim()[0], start, color=LINE, alpha=0.4, linewidth=0, zorder=0)
    return start


def counted(value: float, _: object = None) -> str:
    """Return a count as a tick has it, upwards or downwards."""
    return f"{abs(value):g}" if abs(value) < 1 else count(abs(value))


def legend(ax: Any, facts: Sequence[str], corners: Sequence[str], grow: bool = False, **style: Any) -> None:
    """Write into the emptiest corner or, where that would cover data, above the panel.

    A new figure may `grow` by what is written above, so that the panel keeps its size.
    """
    entries, style = handles(ax), KEY | style
    inside = {"title": "\n".join(facts), **style}
    corner, covered = find_corner(ax, ax.legend(*entries, **inside), corners)
    if not covered:
        ax.legend(*entries, loc=corner, **inside)
        return
    key = above(ax, *entries, title=", ".join(facts), **style)
    if grow:
        ax.figure.set_figheight(ax.figure.get_figheight() + key.get_window_extent().height / ax.figure.dpi)


def above(ax: Any, entries: Sequence[Any], labels: Sequence[str], **style: Any) -> Any:
    """Write a legend above the panel, in as few rows as fit."""
    for columns in sorted({len(labels), 2, 1}, reverse=True):
        key = ax.legend(entries, labels, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=columns, **style)
        width = key.get_window_extent().width / ax.figure.dpi
        if width <= 0.9 * space(ax):
            break
    settle(ax)
    if width > inches(ax):  # the space of the axis labels is free at the left
        key.set(loc="lower right", bbox_to_anchor=(1, 1))
    _raise_titles(ax)
    return key


def _raise_titles(ax: Any) -> None:
    """Have matplotlib write titles above the legend: it writes them above all panels within an Axes."""
    if any(child.get_label() == LEGEND_BOX for child in ax.child_axes):
        return
    box = ax.inset_axes((0, 0, 1, 1), label=LEGEND_BOX, visible=False)
    box.set_in_layout(False)
    box.set_axes_locator(partial(_legend_position, ax))


def _legend_position(panel: Any, _: Any, renderer: Any) -> Any:
    """Return the position in the figure of the legend of a panel, without its margin at the top."""
    from matplotlib.transforms import Bbox

    key = panel.get_legend()
    x0, y0, x1, y1 = (key or panel).get_window_extent(renderer).extents
    margin = 0.0 if key is None else key.borderpad * key.prop.get_size_in_points() * panel.figure.dpi / 72
    return Bbox.from_extents(x0, y0, x1, y1 - margin).transformed(panel.figure.transSubfigure.inverted())


def handles(ax: Any) -> tuple[list[Any], list[str]]:
    """Return legend entries that look like what is drawn: a marker on its bar, a line in its band."""
    from matplotlib.collections import PathCollection, PolyCollection
    from matplotlib.lines import Line2D

    marks, labels = ax.get_legend_handles_labels()
    for i, handle in enumerate(marks):
        dots, band = isinstance(handle, PathCollection), isinstance(handle, PolyCollection)
        if dots or (band and handle.get_alpha() is not None):
            style = {"color": handle.get_facecolor()[0, :3], "lw": 1.6 * band}
            marks[i] = (handle, Line2D([], [], **style))
            if dots:
                marks[i] = tuple(Line2D([], [], marker=m, ms=s, **style) for m, s in (("|", 11), ("o", 5)))
    return marks, labels


def drawn(ax: Any) -> NDArray[np.float64]:
    """Return points along everything drawn, the reference line aside; a marker lies on its bar."""
    from matplotlib.patches import StepPatch

    paths = [line.get_path() for line in ax.lines if line.get_label() != CALIBRATED]
    paths += [patch.get_path() for patch in ax.patches if isinstance(patch, StepPatch)]
    paths += [path for group in ax.collections if group.get_zorder() < 4 for path in group.get_paths()]
    outlines = (path.interpolated(9).vertices for path in paths if len(path.vertices))
    return np.concatenate([np.empty((0, 2)), *outlines])


def find_corner(ax: Any, text: Any, corners: Sequence[str]) -> tuple[str, int]:
    """Find the corner where the text covers least of what is drawn, and how much it covers there."""
    settle(ax)
    width, height = 1.1 * text.get_window_extent().size / ax.get_window_extent().size
    points = (ax.transScale + ax.transLimits).transform(drawn(ax))
    x, y = points[np.all((points >= 0) & (points <= 1), axis=1)].T
    sides = {"left": x < width, "right": x > 1 - width, "lower": y < height, "upper": y > 1 - height}
    covered = {c: int(np.sum(np.all([sides[side] for side in c.split()], axis=0))) for c in corners}
    best = min(covered, key=covered.__getitem__)
    return best, covered[best]


def reading_of(result: Any) -> NotionWording:
    """Return how a person reads what a result compares."""
    return get_notion(result.notion).reading


def axis_labels(result: Any) -> tuple[str, str]:
    """Return what lies along the axes of a result."""
    reading = reading_of(result)
    if reading.event:
        return reading.score, reading.frequency
    name = "" if result.label is None else f" of class {fitted(result.label, 1.5, 'medium')}"
    return f"{reading.score}{name}", f"{reading.frequency} of the class"


def curve_or_diagram(result: Any, field: str) -> Any:
    """Return the curve or the diagram to draw: the result itself, or that part of an assessment."""
    chosen = getattr(result, field) if isinstance(result, Assessment) else result
    if isinstance(chosen, ByClass):
        hint = "calibrant.plot.small_multiples draws one panel for each class"
        raise InputTypeError(field, "be of one class", got="one for each class", hint=hint)
    return chosen


def size_text(n: float) -> str:
    """Return the number of rows, or their effective number."""
    return f"{'n' if size_name(n) == 'rows' else 'effective n'} = {count(round(n))}"


def level_text(level: float, what: str = "interval") -> str:
    """Return the level of an interval or a band."""
    return _escaped(f"{percent(level)} {what}")


def words(result: Any, label: str | None = None) -> tuple[str | None, list[str]]:
    """Return the entry in the legend, and the lines above it; a named result has its error in the entry.

    The error of bins is called so: it is not the one that estimates and reports give.
    """
    error = f"{'binned ' if hasattr(result, 'edges') else ''}ECE {error_text(result.error)}"
    what = "intervals" if hasattr(result, "edges") or result.discrete else "band"
    facts = [size_text(result.n), *([] if result.low is None else [level_text(result.level, what)])]
    return (None, [error, *facts]) if label is None else (f"{plain(label)}, {error}", facts)


def _text(name: object) -> str:
    """Return a name on one line, without characters that no font shows (or that turn the line around)."""
    return "".join(letter for letter in " ".join(str(name).split()) if letter.isprintable())


def _escaped(text: str) -> str:
    """Return text whose dollars are not read as mathematics."""
    from matplotlib import rcParams

    return re.sub(r"([$%&#_{}])" if rcParams["text.usetex"] else r"(\$)", r"\\\1", text)


def plain(name: object, longest: int = 20) -> str:
    """Shorten a name to the space of an axis, and escape dollar signs, which would start mathematics."""
    text = _text(name)
    return _escaped(text if len(text) <= longest else text[: longest - 1] + "…")


def width_of(text: str, size: float | str) -> float:
    """Return the inches that the widest line of a text of this size takes."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font, measure = FontProperties(size=size), text_to_path.get_text_width_height_descent
    return max(float(measure(line, font, False)[0]) for line in text.split("\n")) / 72


def fitted(name: object, width: float, size: float | str) -> str:
    """Shorten a name to some inches; its middle goes, since the ends tell names apart."""
    text = _text(name)
    low, high = 0, min(len(text), MOST)

    def without_middle(kept: int) -> str:
        return text if kept >= len(text) else text[: (kept + 1) // 2] + "…" + text[len(text) - kept // 2 :]

    while low < high:
        kept = (low + high + 1) // 2
        low, high = (kept, high) if width_of(without_middle(kept), size) <= width else (low, kept - 1)
    return _escaped(without_middle(low))
