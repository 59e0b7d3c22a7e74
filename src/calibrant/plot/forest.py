"""Estimates with their intervals in rows: of models, of groups, of estimators.

A light tick in each row is the error expected if calibrated at that sample size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.assessment import Assessment
from calibrant.inference.result import Estimate
from calibrant.inputs.wording import percent, size_name
from calibrant.plot.canvas import BINS, CURVE, GREY, KEY, above, fitted, plain, pyplot, room, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.inference.comparison import Comparison

ROW, REST = 0.25, 0.95  # inches of a row in a new figure, and of all that is not rows
WIDE = 4.5  # inches; below, names and ticks are in small type
NAMES = 0.36  # share of the width that names may take
BESIDE = 0.72  # width of the panel of differences, in that of the errors
LEAST = 0.01  # the axis reaches so far at least, or rounding would look like a result
APART = 0.06  # inches between the labels of ticks
NULL = "0.6"


def comparison(result: Comparison, ax: Axes | None = None) -> Axes:
    """Draw the errors of several models and, at their right, the paired differences from the baseline.

    A difference whose interval stays clear of zero is one that the labels can tell.

    Parameters
    ----------
    result : Comparison
        What to draw, in its order.
    ax : Axes, optional
        Where to draw; one new figure otherwise. A constrained layout makes room for the names.

    Returns
    -------
    Axes
        The panel of the errors.
    """
    names, shown = list(result.estimates), list(result.estimates.values())
    ax, size, wide = _rows(ax, names, shown, share=1 / (1 + BESIDE))
    panel, wide = _beside(ax), wide * BESIDE
    differences = list(result.differences.values())
    _intervals(panel, [names.index(difference.model) for difference in differences], differences)
    panel.axvline(0, color=GREY, linestyle="--", linewidth=1, zorder=1)
    note = panel.text(0, names.index(result.baseline), "baseline", color=GREY, size=size)
    note.set(ha="center", va="center", bbox={"color": ax.get_facecolor(), "pad": 1})
    low = min([-LEAST / 2, *(1.1 * difference.low for difference in differences)])
    high = max([LEAST / 2, *(1.1 * difference.high for difference in differences)])
    name = fitted(result.baseline, wide, size)
    _axis(panel, low, high, wide, f"difference from\n{name}", "difference", inner="left")
    _key(panel, shown)
    return ax


def groups(
    estimates: Mapping[Any, Estimate] | Estimate | Assessment,
    ax: Axes | None = None,
    *,
    overall: Estimate | None = None,
) -> Axes:
    """Draw the errors of groups, the worst first, with the size of each at the right.

    Parameters
    ----------
    estimates : mapping from name to Estimate, Estimate or Assessment
        What to draw. Of an estimate its classes; of an assessment its groups, or its classes if it has no
        groups.
    ax : Axes, optional
        Where to draw; one new figure otherwise, higher the more groups there are. In a given one the
        type shrinks instead. A constrained layout makes room for the names.
    overall : Estimate, optional
        That of all rows together: a line, and a band for its interval. An estimate and an assessment have
        their own.

    Returns
    -------
    Axes
    """
    if isinstance(estimates, Assessment):
        rows = estimates.by_group or estimates.by_class
        about = estimates.estimates["classwise"] if rows is estimates.by_class else estimates.estimate
        overall, estimates = overall or about, {row.name: row.estimate for row in rows}
    elif isinstance(estimates, Estimate):
        overall, estimates = overall or estimates, estimates.by_class or {}
    ordered = sorted(estimates.items(), key=lambda item: -item[1].value)
    shown = [estimate for _, estimate in ordered]
    whole = all(size_name(estimate.n) == "rows" for estimate in shown)
    sizes = ["n" if whole else "effective n", *(f"{estimate.n:,.0f}" for estimate in shown)]
    ax, *_ = _rows(ax, [name for name, _ in ordered], shown, column=sizes, reach=overall)
    if overall is not None:
        ax.axvspan(overall.low, overall.high, color=BINS, alpha=0.16, linewidth=0, zorder=0.5)
        ax.axvline(overall.value, color=BINS, linewidth=1.4, zorder=1)
    _key(ax, shown, overall)
    return ax


def estimators(estimates: Mapping[str, Estimate] | Assessment, ax: Axes | None = None) -> Axes:
    """Draw what different estimators say of the same rows, the first of them in front of the others.

    Parameters
    ----------
    estimates : mapping from name to Estimate, or Assessment
        What to draw, in this order.
    ax : Axes, optional
        Where to draw; one new figure otherwise. A constrained layout makes room for the names.

    Returns
    -------
    Axes
    """
    estimates = estimates.by_estimator if isinstance(estimates, Assessment) else estimates
    shown = list(estimates.values())
    values = ["", *(f"{estimate.value:.3f}" for estimate in shown)]
    ax, *_ = _rows(ax, list(estimates), shown, column=values, first=True)
    ax.axvline(shown[0].value, color=CURVE, linewidth=0.8, alpha=0.5, zorder=1)
    _key(ax, shown)
    return ax


def _rows(
    ax: Any,
    names: Sequence[Any],
    shown: Sequence[Estimate],
    *,
    column: Sequence[str] = (),
    first: bool = False,
    reach: Estimate | None = None,
    share: float = 1.0,
) -> tuple[Any, float, float]:
    """Draw one row for each estimate; return the Axes, the size of the type and the inches left beside names.

    `column` is a header and a text for each row, `first` says whether only the first is in full colour,
    `reach` must lie on the axis too, and `share` is the part of the room that the panel will have.
    """
    if not shown:
        raise ValueError("estimates must map at least one name to an Estimate, got none")
    count, ax = len(shown), _new(len(shown)) if ax is None else ax
    size = _size(ax, count)
    labels = [fitted(name, NAMES * room(ax), size) for name in names]
    ax.set(yticks=range(count), ylim=(count - 0.5, -0.5))
    ax.set_yticklabels(labels, size=size)
    ax.hlines(range(count), 0, 1, color="0.93", linewidth=0.8, zorder=0, transform=ax.get_yaxis_transform())
    null = [estimate.null.mean for estimate in shown]
    tick = min(11.0, 0.7 * _points(ax, count))
    ticks = ax.scatter(null, range(count), tick**2, NULL, marker="|", zorder=2)
    ticks.set(linewidth=0.14 * tick, clip_on=False)
    _intervals(ax, range(count), shown, front=1 if first else count)
    if first:
        ax.get_yticklabels()[0].set_fontweight("bold")
    beside = max((width_of(text, size) for text in column), default=0.0)
    names_take = max(width_of(label, size) for label in labels)
    wide = share * max(room(ax) - names_take - beside - 0.25, 0.5)
    top = max(LEAST, *null, *(estimate.high for estimate in shown), 0.0 if reach is None else reach.high)
    _axis(ax, 0.0, 1.06 * top, wide, *_measured(shown), inner="right" if share < 1 else "")
    style = {"textcoords": "offset points", "ha": "right", "size": size, "annotation_clip": False}
    for i, text in enumerate(column[1:]):
        where = {"xytext": (72 * beside + 4, 0), "xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(text, (1, i), **where, **style)
    if column:
        where = {"xytext": (72 * beside + 4, 3), "xycoords": "axes fraction", "va": "bottom"}
        ax.annotate(column[0], (1, 1), **where, **style)
    return ax, size, wide


def _new(count: int) -> Any:
    plt = pyplot()
    width = plt.rcParams["figure.figsize"][0]
    return plt.subplots(figsize=(width, ROW * count + REST), layout="constrained")[1]


def _beside(ax: Any) -> Any:
    """Add a panel at the right with the same rows."""
    from mpl_toolkits.axes_grid1 import make_axes_locatable

    current = ax.figure.gca()
    panel = make_axes_locatable(ax).append_axes("right", size=f"{100 * BESIDE:g}%", pad=0.12, sharey=ax)
    if ax.get_subplotspec() is not None:  # so that layout engines leave room for its labels
        panel.set_subplotspec(ax.get_subplotspec())
    ax.figure.sca(current)
    panel.tick_params(labelleft=False)
    count = len(ax.get_yticks())
    panel.hlines(range(count), 0, 1, color="0.93", lw=0.8, zorder=0, transform=panel.get_yaxis_transform())
    return panel


def _points(ax: Any, count: int) -> float:
    """Return the points from row to row, less what axis labels and legend may take from the panel."""
    return float(0.85 * ax.get_window_extent().height / ax.figure.dpi * 72 / count)


def _size(ax: Any, count: int) -> float:
    """Return the size of the type: that of ticks, smaller in a narrow panel or among many rows."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    usual = FontProperties(size=rcParams["ytick.labelsize"]).get_size_in_points()
    return float(min(usual if room(ax) >= WIDE else usual / 1.2, 0.8 * _points(ax, count)))


def _intervals(ax: Any, rows: Sequence[int], shown: Sequence[Any], front: int | None = None) -> None:
    """Draw the estimates and their intervals, those behind the first `front` hollow and grey."""
    front, pitch = len(shown) if front is None else front, _points(ax, max(len(ax.get_yticks()), 1))
    for group, color, inside in (
        (slice(front), CURVE, CURVE),
        (slice(front, None), GREY, ax.get_facecolor()),
    ):
        some, y = shown[group], rows[group]
        style = {"linewidth": min(1.6, 0.2 * pitch), "zorder": 3}
        value, low, high = ([getattr(estimate, end) for estimate in some] for end in ("value", "low", "high"))
        ax.hlines(y, low, high, color=color, **style)
        marks = ax.scatter(value, y, min(4.6, 0.5 * pitch) ** 2, zorder=4)
        # A mark at zero is whole.
        marks.set(facecolor=inside, edgecolor=color, linewidth=min(1.0, 0.1 * pitch), clip_on=False)


def _axis(ax: Any, low: float, high: float, wide: float, *labels: str, inner: str = "") -> None:
    """Lay out the x axis; the label is the first that there is room for, or the last."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlim(low, high)
    ax.ticklabel_format(axis="x", style="plain", useOffset=False)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    if room(ax) < WIDE:
        ax.tick_params(axis="x", labelsize="small")
        ax.xaxis.label.set_size("small")
    size = ax.xaxis.label.get_size()
    label = width_of(f"{low:.{2 if high - low > 0.05 else 3}f}", size) + APART
    half = 0.5 * label * (high - low) / wide
    # Labels stay off the inner side, where another panel is.
    first, last = low + half * (inner == "left"), high - half * (inner == "right")

    def ticks(most: int) -> Any:
        places: Any = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1).tick_values(low, high)
        return places[(places >= first) & (places <= last)]

    places = ticks(max(1, int(wide / label)))
    ax.set_xticks(places if len(places) > 1 else ticks(9)[[0, -1]])
    ax.set_xlabel(next((label for label in labels if width_of(label, size) <= wide), labels[-1]))


def _measured(shown: Sequence[Estimate]) -> tuple[str, str]:
    """Return what the axis shows, with and without the question asked."""
    norms, asked = {estimate.norm for estimate in shown}, {estimate.notion for estimate in shown}
    names = {"l1": "ECE", "l2": "root mean square error"}
    name = names[shown[0].norm] if len(norms) == 1 else "calibration error"
    if shown[0].label is not None and len({str(estimate.label) for estimate in shown}) == 1:
        asked = {f"class {plain(shown[0].label)}"} if len(asked) == 1 else asked
    return (f"{name} ({asked.pop()})" if len(asked) == 1 else name), name


def _key(ax: Any, shown: Sequence[Estimate], overall: Estimate | None = None) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    levels = {estimate.level for estimate in shown}
    level = plain(f"{percent(levels.pop())} interval") if len(levels) == 1 else "interval"
    entries: list[Any] = [
        Line2D([], [], color=CURVE, marker="o", ms=4.6, lw=1.6),
        Line2D([], [], color=NULL, marker="|", ms=11, mew=1.5, lw=0),
    ]
    labels = [level, "if calibrated"]
    if overall is not None:
        entries.append((Patch(color=BINS, alpha=0.16, lw=0), Line2D([], [], color=BINS, lw=1.4)))
        labels.append(f"overall, {overall.value:.3f}")
    above(ax, entries, labels, **KEY)
