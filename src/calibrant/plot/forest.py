"""Values with their intervals in rows: of models, of groups, of estimators.

A light tick in each row is the value expected if calibrated, and a light bar the range of such values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.assessment import Assessment
from calibrant.inference.comparison import INDEPENDENT
from calibrant.inference.result import NAMES, Estimate
from calibrant.inference.table import EstimateTable
from calibrant.inputs import house_style as house
from calibrant.inputs.wording import are_dates, size_name
from calibrant.inputs.wording import count as grouped
from calibrant.plot import canvas
from calibrant.plot.canvas import Size, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.inference.audit import SegmentAudit
    from calibrant.inference.comparison import Comparison

ROW, REST = 0.25, 0.95  # inches of a row in a new figure, and of all that is not rows
MOST_ROWS = 400  # rows that make a new figure higher; more are drawn closer together
WIDE = 4.5  # inches; below, names and ticks are in small type
SHARE = 0.36  # share of the width that names may take
BESIDE = 0.72  # width of the panel of differences, in that of the errors
LEAST = 0.01  # the axis reaches so far at least, or rounding would look like a result
LABEL_SPACING = 0.06  # inches between the labels of ticks


def compare(result: Comparison, ax: Axes | None = None, *, figsize: Size = None) -> Axes:
    """Draw the errors of several models and, at their right, the differences from the baseline.

    A difference is significant where its interval excludes 0.

    Parameters
    ----------
    result : Comparison
        What to draw, in its order.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size. A constrained layout makes space for the names.

    Returns
    -------
    Axes
        The panel of the errors.

    See Also
    --------
    calibrant.compare : Computes the comparison.
    models : Curves of several models.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> result = calibrant.compare(outcome, {"a": score, "b": [s**2 for s in score]})
    >>> ax = calibrant.plot.compare(result, figsize=(6, 2))
    """
    names, estimates_shown = list(result.estimates), list(result.estimates.values())
    ax, size, wide = _rows(ax, names, estimates_shown, share=1 / (1 + BESIDE), figsize=figsize)
    panel, wide = canvas.attached(ax, "right", f"{100 * BESIDE:g}%", 0.12, sharey=ax), wide * BESIDE
    panel.tick_params(labelleft=False)
    _ruled(panel, len(names))
    differences = list(result.differences.values())
    _intervals(panel, [names.index(difference.model) for difference in differences], differences)
    panel.axvline(0, color=house.GREY, linestyle="--", linewidth=1, zorder=1)
    note = panel.text(0, names.index(result.baseline), "baseline", color=house.GREY, size=size)
    note.set(ha="center", va="center", bbox={"color": ax.get_facecolor(), "pad": 1})
    low = min([-LEAST / 2, *(1.1 * difference.low for difference in differences)])
    high = max([LEAST / 2, *(1.1 * difference.high for difference in differences)])
    name = canvas.fitted(result.baseline, wide, size)
    kind = "unpaired" if result.pairing == INDEPENDENT else "paired"
    labels = (f"difference from\n{name} ({text})" for text in (result.pairing, kind))
    _axis(panel, low, high, wide, *labels, f"difference\n({kind})", inner="left")
    _key(panel, estimates_shown)
    return ax


def groups(estimates: Mapping[Any, Estimate] | Estimate | EstimateTable | Assessment, ax: Axes | None = None,
           *, overall: Any = None, most: int = 30, figsize: Size = None) -> Axes:  # fmt: skip
    """Draw the gaps or the errors of groups, the largest first, with the size of each at the right.

    Groups whose names are dates, such as "2026-05-04", are in the order of time.

    Parameters
    ----------
    estimates : mapping from name to Estimate, Estimate, EstimateTable or Assessment
        What to draw. Of an assessment the signed calibration gap of each group, with its interval and the
        range expected if calibrated; without groups, the errors of its classes. Of an estimate the errors
        of its classes. Of a table the errors of its cells in its order, and the macro average.
    ax : Axes, optional
        Where to draw; one new figure otherwise, higher the more groups there are. In a given one the
        type shrinks instead. A constrained layout makes space for the names.
    overall : Estimate, optional
        That of all rows together: a line, and a band for its interval. An estimate and the classes of an
        assessment have their own.
    most : int, default 30
        Groups or classes of an assessment or an estimate that are drawn, those with the largest errors.
        Groups in the order of time, mappings and tables are drawn in full.
    figsize : pair of floats, optional
        Size of a new figure in inches.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.assess : Takes `groups`.
    small_multiples : A panel for each class or group.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> groups = ["no", "no", "no", "se", "se", "se"] * 20
    >>> ax = calibrant.plot.groups(calibrant.assess(outcome, score, groups=groups))
    """
    shown = len(estimates) if isinstance(estimates, Mapping) else most
    if isinstance(estimates, Assessment):
        rows = estimates.by_group or estimates.by_class
        if all(row.gap is not None for row in rows) and rows:
            named = _ordered([(row.name, row) for row in rows], lambda row: abs(row.gap.value), most)
            names, ordered = [name for name, _ in named], [row for _, row in named]
            sizes, level = _sizes([row.estimate.n for row in ordered]), ordered[0].estimate.level
            gaps = [row.gap for row in ordered]
            return _gaps(names, gaps, sizes, level, len(rows), ax, figsize)
        about = estimates.estimates["classwise"] if rows is estimates.by_class else estimates.estimate
        overall, estimates = overall or about, {row.name: row.estimate for row in rows}
    elif isinstance(estimates, Estimate):
        overall, estimates = overall or estimates, estimates.by_class or {}
    if isinstance(estimates, EstimateTable):
        ordered, overall = list(zip(estimates.names, estimates.estimates, strict=True)), estimates.macro
        overall_name = "macro average"
    else:
        ordered = _ordered(list(estimates.items()), lambda estimate: estimate.value, shown)
        overall_name = "overall"
    rest = len(estimates) - len(ordered) if isinstance(estimates, Mapping) else 0
    estimates_shown = [estimate for _, estimate in ordered]
    names, sizes = [name for name, _ in ordered], _sizes([estimate.n for estimate in estimates_shown])
    ax, *_ = _rows(ax, names, estimates_shown, column=sizes, also_shown=overall, figsize=figsize)
    if overall is not None:
        ax.axvspan(overall.low, overall.high, color=house.ORANGE, alpha=0.16, linewidth=0, zorder=0.5)
        ax.axvline(overall.value, color=house.ORANGE, linewidth=1.4, zorder=1)
    _key(ax, estimates_shown, overall, overall_name, title=_shown_share(len(ordered), rest))
    return ax


def _shown_share(shown: int, rest: int) -> str | None:
    """Return which part of the groups is shown, or nothing if it is all of them."""
    return f"{shown} of {shown + rest}, the largest" if rest else None


def _ordered(named: list[tuple[Any, Any]], size: Callable[[Any], float], most: int) -> list[tuple[Any, Any]]:
    """Return all items by time if their names are dates, and otherwise the largest first."""
    if are_dates(name for name, _ in named):
        return sorted(named, key=lambda item: str(item[0]))
    return sorted(named, key=lambda item: -size(item[1]))[:most]


def _sizes(n: Sequence[float]) -> list[str]:
    """Return the column of sizes with its header."""
    integers = all(size_name(rows) == "rows" for rows in n)
    return ["n" if integers else "effective n", *(grouped(round(rows)) for rows in n)]


def segments(audit: SegmentAudit, ax: Axes | None = None, *, difference: bool = False, most: int = 20,
             figsize: Size = None) -> Axes:  # fmt: skip
    """Draw the gaps of the segments whose gaps are certainly the largest, with simultaneous intervals.

    Parameters
    ----------
    audit : SegmentAudit
        What to draw, in its order.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size.
    difference : bool
        Whether to draw the differences from the common recalibration instead of the gaps of the segments.
    most : int
        Number of segments.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.audit : Computes the gaps.
    groups : Gaps of groups that do not overlap.

    Examples
    --------
    >>> import calibrant
    >>> score, country = [0.2, 0.4, 0.6, 0.8] * 100, ["no", "no", "se", "se"] * 100
    >>> audit = calibrant.audit([0, 0, 1, 1] * 100, score, {"country": country}, n_resamples=199)
    >>> ax = calibrant.plot.segments(audit)
    """
    shown = audit.segments[:most]
    gaps = [each.difference if difference else each.gap for each in shown]
    sizes, names = _sizes([each.rows for each in shown]), [each.name for each in shown]
    ax = _gaps(names, gaps, sizes, audit.level, len(audit.segments), ax, figsize)
    if difference:
        ax.set_xlabel("difference from the common recalibration")
    return ax


def _gaps(names: Sequence[str], gaps: Sequence[Any], sizes: Sequence[str], level: float, total: int,
          ax: Any, figsize: Size) -> Any:  # fmt: skip
    """Draw signed gaps, coloured by the side of 0 that the interval lies on."""
    from matplotlib.lines import Line2D

    ax, *_ = _rows(ax, names, gaps, column=sizes, figsize=figsize)
    side = house.sides(0.0, [gap.low for gap in gaps], [gap.high for gap in gaps])
    wide: dict[str, Any] = {"lw": 6, "color": house.LINE, "zorder": 1.5, "solid_capstyle": "butt"}
    for k, gap in enumerate(gaps):
        ax.plot([-gap.expected, gap.expected], [k, k], **wide)
    ax.axvline(0, color=house.GREY, linestyle="--", linewidth=1, zorder=1)
    entries: list[Any] = [
        Line2D([], [], color=house.SIDE_COLORS[k], marker="o", ms=4.6, lw=1.6) for k in np.unique(side)
    ]
    labels = [house.SIDES[k] for k in np.unique(side)]
    shown_text = _shown_share(len(names), total - len(names))
    title = "; ".join(filter(None, (canvas.level_text(level), shown_text)))
    canvas.above(ax, [*entries, Line2D([], [], **wide)], [*labels, house.EXPECTED], title=title, **canvas.KEY)
    return ax


def estimators(
    estimates: Mapping[str, Estimate] | Assessment, ax: Any = None, *, figsize: Size = None
) -> Axes:
    """Draw what different estimators say of the same rows, the first of them in front of the others.

    Parameters
    ----------
    estimates : mapping from name to Estimate, or Assessment
        What to draw, in this order.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size. A constrained layout makes space for the names.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.assess : Compares estimators.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.estimators(calibrant.assess(outcome, score))
    """
    estimates = estimates.by_estimator if isinstance(estimates, Assessment) else estimates
    estimates_shown = list(estimates.values())
    values = ["", *(f"{estimate.value:.3f}" for estimate in estimates_shown)]
    ax, *_ = _rows(ax, list(estimates), estimates_shown, column=values, first=True, figsize=figsize)
    ax.axvline(estimates_shown[0].value, color=house.BLUE, linewidth=0.8, alpha=0.5, zorder=1)
    _key(ax, estimates_shown)
    return ax


def _rows(ax: Any, names: Sequence[Any], estimates_shown: Sequence[Any], *, column: Sequence[str] = (),
          first: bool = False, also_shown: Estimate | None = None, share: float = 1.0,
          figsize: Size = None) -> tuple[Any, float, float]:  # fmt: skip
    """Draw one row for each estimate; return the Axes, the size of the type and the inches left beside names.

    `column` is a header and a text for each row, `first` says whether only the first is in full colour,
    `also_shown` must lie on the axis too, and `share` is the part of the space that the panel will have.
    """
    if not estimates_shown:
        raise ValueError("estimates must map at least one name to an Estimate, got none")
    count, ax = len(estimates_shown), _new(len(estimates_shown), figsize) if ax is None else ax
    size = _size(ax, count)
    labels = [canvas.fitted(name, SHARE * canvas.space(ax), size) for name in names]
    ax.set(yticks=range(count), ylim=(count - 0.5, -0.5))
    ax.set_yticklabels(labels, size=size)
    _ruled(ax, count)
    signed = hasattr(estimates_shown[0], "expected")
    null = [each.expected if signed else each.null.mean for each in estimates_shown]
    if not signed:
        tick = min(11.0, 0.7 * _points(ax, count))
        ticks = ax.scatter(null, range(count), tick**2, house.GREY, marker="|", zorder=2)
        ticks.set(linewidth=0.14 * tick, clip_on=False)
    _intervals(ax, range(count), estimates_shown, front=1 if first else count, signed=signed)
    if first:
        ax.get_yticklabels()[0].set_fontweight("bold")
    beside = max((canvas.width_of(text, size) for text in column), default=0.0)
    names_take = max(canvas.width_of(label, size) for label in labels)
    wide = share * max(canvas.space(ax) - names_take - beside - 0.25, 0.5)
    top = max(
        LEAST,
        *null,
        *(estimate.high for estimate in estimates_shown),
        0.0 if also_shown is None else also_shown.high,
    )
    low = -max(top, *(-each.low for each in estimates_shown)) if signed else 0.0
    measured = (house.GAP, "frequency minus score", "gap") if signed else _measured(estimates_shown)
    _axis(ax, 1.06 * low, 1.06 * max(top, -low), wide, *measured, inner="right" if share < 1 else "")
    style = {"textcoords": "offset points", "ha": "right", "size": size, "annotation_clip": False}
    for i, text in enumerate(column[1:]):
        where = {"xytext": (72 * beside + 4, 0), "xycoords": ("axes fraction", "data"), "va": "center"}
        ax.annotate(text, (1, i), **where, **style)
    if column:
        where = {"xytext": (72 * beside + 4, 3), "xycoords": "axes fraction", "va": "bottom"}
        ax.annotate(column[0], (1, 1), **where, **style)
    return ax, size, wide


def _new(count: int, figsize: Size) -> Any:
    plt = canvas.pyplot()
    size = figsize or (plt.rcParams["figure.figsize"][0], ROW * min(count, MOST_ROWS) + REST)
    return plt.subplots(figsize=size, layout="constrained")[1]


def _ruled(ax: Any, count: int) -> None:
    style = {"color": house.LINE, "alpha": 0.6, "linewidth": 0.8, "zorder": 0}
    ax.hlines(range(count), 0, 1, transform=ax.get_yaxis_transform(), **style)


def _points(ax: Any, count: int) -> float:
    """Return the points from row to row, less what axis labels and legend may take from the panel."""
    return float(0.85 * ax.get_window_extent().height / ax.figure.dpi * 72 / count)


def _size(ax: Any, count: int) -> float:
    """Return the size of the type: that of ticks, smaller in a narrow panel or among many rows."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties

    usual = FontProperties(size=rcParams["ytick.labelsize"]).get_size_in_points()
    return float(min(usual if canvas.space(ax) >= WIDE else usual / 1.2, 0.8 * _points(ax, count)))


def _intervals(
    ax: Any,
    rows: Sequence[int],
    estimates_shown: Sequence[Any],
    front: int | None = None,
    signed: bool = False,
) -> None:
    """Draw values and intervals: by side if signed, and hollow and grey behind the first `front`."""
    front, pitch = len(estimates_shown) if front is None else front, _points(ax, max(len(ax.get_yticks()), 1))
    value, low, high = (
        np.array([getattr(each, end) for each in estimates_shown]) for end in ("value", "low", "high")
    )
    behind = np.arange(len(estimates_shown)) >= front
    side = house.sides(0.0, low, high)
    color = np.where(behind, house.SOFT, np.array(house.SIDE_COLORS)[side] if signed else house.BLUE)
    y = np.asarray(rows)
    for ink, hollow in sorted({*zip(color.tolist(), behind.tolist(), strict=True)}, key=lambda key: key[1]):
        held = (color == ink) & (behind == hollow)
        ax.hlines(y[held], low[held], high[held], color=ink, linewidth=min(1.6, 0.2 * pitch), zorder=3)
        marks = ax.scatter(value[held], y[held], min(4.6, 0.5 * pitch) ** 2, zorder=4)
        # A mark at zero is whole.
        marks.set(facecolor=ax.get_facecolor() if hollow else ink, edgecolor=ink, clip_on=False)
        marks.set_linewidth(min(1.0, 0.1 * pitch))


def _axis(ax: Any, low: float, high: float, wide: float, *labels: str, inner: str = "") -> None:
    """Lay out the x axis; the label is the first that fits, or the last."""
    from matplotlib.ticker import MaxNLocator

    ax.set_xlim(low, high)
    ax.ticklabel_format(axis="x", style="plain", useOffset=False)
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "left", "right"]].set_visible(False)
    if canvas.space(ax) < WIDE:
        ax.tick_params(axis="x", labelsize="small")
        ax.xaxis.label.set_size("small")
    size = ax.xaxis.label.get_size()
    label = canvas.width_of(f"{low:.{2 if high - low > 0.05 else 3}f}", size) + LABEL_SPACING
    half = 0.5 * label * (high - low) / wide
    # Labels stay off the inner side, where another panel is.
    first, last = low + half * (inner == "left"), high - half * (inner == "right")

    def ticks(most: int) -> Any:
        places: Any = MaxNLocator(most, steps=[1, 2, 5, 10], min_n_ticks=1).tick_values(low, high)
        return places[(places >= first) & (places <= last)]

    places = ticks(max(1, int(wide / label)))
    ax.set_xticks(places if len(places) > 1 else ticks(9)[[0, -1]])
    ax.set_xlabel(next((label for label in labels if canvas.width_of(label, size) <= wide), labels[-1]))


def _measured(estimates_shown: Sequence[Estimate]) -> tuple[str, str]:
    """Return what the axis shows, with and without the question asked."""
    norms = {estimate.norm for estimate in estimates_shown}
    subjects = {estimate.notion for estimate in estimates_shown}
    labels = {str(estimate.label) for estimate in estimates_shown}
    first = estimates_shown[0]
    name = NAMES[first.norm] if len(norms) == 1 else "calibration error"
    if first.label is not None and len(labels) == len(subjects) == 1:
        subjects = {f"class {plain(first.label)}"}
    return (f"{name} ({subjects.pop()})" if len(subjects) == 1 else name), name


def _key(
    ax: Any,
    estimates_shown: Sequence[Estimate],
    overall: Any = None,
    overall_name: str = "overall",
    title: str | None = None,
) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    levels = {estimate.level for estimate in estimates_shown}
    level = canvas.level_text(levels.pop()) if len(levels) == 1 else "interval"
    entries: list[Any] = [
        Line2D([], [], color=house.BLUE, marker="o", ms=4.6, lw=1.6),
        Line2D([], [], color=house.GREY, marker="|", ms=11, mew=1.5, lw=0),
    ]
    labels = [level, house.EXPECTED]
    if overall is not None:
        entries.append(
            (Patch(color=house.ORANGE, alpha=0.16, lw=0), Line2D([], [], color=house.ORANGE, lw=1.4))
        )
        labels.append(f"{overall_name}, {overall.value:.3f}")
    canvas.above(ax, entries, labels, title=title, **canvas.KEY)
