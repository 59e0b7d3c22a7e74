"""Reliability: diagrams, curves, both at once, several models at once, and the local error.

Each is drawn on a square with the diagonal of calibrated scores, and with the distribution of the scores
underneath where there is one result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from calibrant.curves import appearance
from calibrant.inputs import check_choice
from calibrant.inputs import house_style as house
from calibrant.plot import canvas
from calibrant.plot.canvas import Size, plain
from calibrant.plot.scores import mirrored, outcomes
from calibrant.settings import REPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.assessment import Assessment
    from calibrant.curves import ReliabilityCurve, ReliabilityDiagram

Scale: TypeAlias = Literal["linear", "log-odds"]
PANEL = "_calibrant_histogram"  # the attribute of a main panel that holds the one underneath
NARROW = 1.4  # inches; a panel below has finer lines
# Safe for colour-blind eyes and of six lightnesses, neighbours far apart; dashes and shapes differ too.
LINES: Sequence[tuple[str, Any, str]] = (
    ("#12376b", "-", "o"),
    ("#d8731f", (0, (5, 1.3)), "s"),
    ("#7b4fa3", (0, (1.1, 1.1)), "D"),
    ("#7fb6d9", (0, (7, 1.3, 1.2, 1.3)), "^"),
    ("#000000", (0, (2.6, 1.1)), "v"),
    ("#1f9e89", (0, (4, 1.2, 1.1, 1.2, 1.1, 1.2)), "P"),
)
BANDED = 2  # up to so many models have their bands; more would hide each other


def diagram(result: ReliabilityDiagram | Assessment, ax: Axes | None = None, *, histogram: bool = True,
            legend: bool = True, color: str | None = None, label: str | None = None, scale: Scale = "linear",
            figsize: Size = None) -> Axes:  # fmt: skip
    """Draw a reliability diagram: a marker and a bar for each bin with mass, the area growing with its count.

    Parameters
    ----------
    result : ReliabilityDiagram or Assessment
        What to draw.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size in inches.
    histogram : bool
        Whether to put the distribution of the scores by outcome underneath, within the space of `ax`.
    legend : bool
        Whether to write error, sample size and legend into the emptier corner, or above if data lie in both.
    color, label : str, optional
        Colour of all marks, and a name in the legend, for several results on one Axes. Without a colour
        marks show by theirs whether the score is too high, too low, or neither as far as the interval tells.
    scale : {"linear", "log-odds"}
        Scale of both axes, which always have the same range.

    Returns
    -------
    Axes
        The main panel.

    See Also
    --------
    calibrant.reliability_diagram : Computes the diagram.
    overlay : Curve and bins in one panel.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.diagram(calibrant.reliability_diagram(outcome, score, binning="uniform:5"))
    >>> ax.get_ylabel()
    'frequency of the class'
    """
    return draw(
        canvas.curve_or_diagram(result, "diagram"), ax, histogram, legend, color, label, scale, figsize
    )


def curve(result: ReliabilityCurve | Assessment, ax: Axes | None = None, *, histogram: bool = True,
          legend: bool = True, color: str | None = None, label: str | None = None, scale: Scale = "linear",
          figsize: Size = None) -> Axes:  # fmt: skip
    """Draw a reliability curve and its band, which fade where the effective number of rows falls.

    Below ten effective rows there is no band; ticks at the frame show the single rows instead. A curve of
    few scores that repeat is a point and a bar for each of them.

    Parameters
    ----------
    result : ReliabilityCurve or Assessment
        What to draw; of an assessment the curve of its own notion.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size.
    histogram : bool
        Whether to draw the scores by outcome below.
    legend : bool
        Whether to draw a legend.
    color, label : str, optional
        One colour instead of a colour by side, and the name in the legend.
    scale : {"linear", "log-odds"}
        Scale of both axes.

    Returns
    -------
    Axes
        The main panel.

    See Also
    --------
    calibrant.reliability_curve : Computes the curve.
    overlay : Curve and bins in one panel.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.curve(calibrant.reliability_curve(outcome, score))
    >>> ax.get_ylabel()
    'frequency of the class'
    """
    return draw(canvas.curve_or_diagram(result, "curve"), ax, histogram, legend, color, label, scale, figsize)


def overlay(curve_result: ReliabilityCurve | Assessment, diagram_result: ReliabilityDiagram | None = None,
            ax: Axes | None = None, *, scale: Scale = "linear", figsize: Size = None) -> Axes:  # fmt: skip
    """Draw a curve with its band and, over it, the bins of a diagram of the same sample with their bars.

    The one error in the legend is that of the curve, which is the headline of estimates and reports. An
    assessment has both. A curve of few scores that repeat is drawn without bins: it has a bar for each score.

    Parameters
    ----------
    curve_result : ReliabilityCurve or Assessment
        Curve, or an assessment with curve and bins.
    diagram_result : ReliabilityDiagram, optional
        Bins of the same sample. Needed unless an assessment is given.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size.
    scale : {"linear", "log-odds"}
        Scale of both axes.

    Returns
    -------
    Axes
        The main panel.

    See Also
    --------
    curve : The curve alone.
    diagram : The bins alone.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.overlay(calibrant.assess(outcome, score))
    """
    bins = canvas.curve_or_diagram(curve_result if diagram_result is None else diagram_result, "diagram")
    line: ReliabilityCurve = canvas.curve_or_diagram(curve_result, "curve")
    fresh, ax = canvas.panel(ax, 1.12, figsize)
    draw(line, ax, True, False, None, None, scale)
    if not line.discrete:
        draw(bins, ax, False, False, house.INK, None, scale, entry="bins, with intervals")
    canvas.legend(ax, canvas.words(line)[1], canvas.CORNERS, fresh)
    return ax


def models(curves: Mapping[str, ReliabilityCurve | Assessment], ax: Axes | None = None, *,
           scale: Scale = "linear", figsize: Size = None) -> Axes:  # fmt: skip
    """Draw the curves of up to six models in one square, each with its own colour, dashes and shape.

    Parameters
    ----------
    curves : mapping from name to ReliabilityCurve or Assessment
        What to draw, in this order, all of one notion. One or two have their bands. Scores that are few and
        repeat are points with bars, side by side where models share a score.
    ax, scale, figsize
        As for `diagram`.

    Returns
    -------
    Axes

    See Also
    --------
    compare : Errors and differences of several models.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> curves = {"a": calibrant.reliability_curve(outcome, score)}
    >>> ax = calibrant.plot.models(curves)
    """
    if not 0 < len(curves) <= len(LINES):
        raise ValueError(f"curves must hold 1 to {len(LINES)} curves to be told apart, got {len(curves)}")
    drawn: dict[str, ReliabilityCurve] = {
        k: canvas.curve_or_diagram(each, "curve") for k, each in curves.items()
    }
    if len(kinds := {result.notion for result in drawn.values()}) > 1:
        raise ValueError(f"curves must be of one notion, got {sorted(kinds)}")
    fresh, ax = canvas.panel(ax, 1.0, figsize)
    banded = len(drawn) <= BANDED
    for result in sorted(drawn.values(), key=lambda result: float(result.support[0])):
        ax.set_xlabel(_square(ax, result, scale))
    for i, ((name, result), (color, dashes, mark)) in enumerate(zip(drawn.items(), LINES, strict=False)):
        tint = 0.16 if banded or result.discrete else 0.0
        _line(ax, result, 0.0, color, None, dashes, mark, tint, dodge=i - (len(drawn) - 1) / 2)
        entry = f"{plain(name, 16)}, {house.error_text(result.error)}"
        line_style = {"marker": mark, "linestyle": ""} if result.discrete else {"linestyle": dashes}
        ax.plot([], [], color=color, linewidth=1.6, label=entry, **line_style)
    size, *level = canvas.words(result, "")[1]
    facts = [size] if len({round(curve.n) for curve in drawn.values()}) == 1 else []
    level = [text.replace("band", "bands") for text in level]
    facts += level if banded or all(curve.discrete for curve in drawn.values()) else []
    canvas.legend(ax, [*facts, "ECE by model"], canvas.CORNERS, fresh, handlelength=2.4)
    return ax


def local_error(result: ReliabilityCurve | Assessment, ax: Any = None, *, figsize: Size = None) -> Axes:
    """Draw the local calibration error, frequency minus score, with its band over the score.

    Parameters
    ----------
    result : ReliabilityCurve or Assessment
        What to draw; of an assessment the curve of its own notion.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size.

    Returns
    -------
    Axes
        The panel.

    See Also
    --------
    calibrant.lce : Values of the local calibration error.
    curve : The reliability curve.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.local_error(calibrant.reliability_curve(outcome, score), figsize=(4, 3))
    >>> ax.figure.get_size_inches()
    array([4., 3.])
    """
    drawn: ReliabilityCurve = canvas.curve_or_diagram(result, "curve")
    fresh, ax = canvas.panel(ax, 0.75, figsize)
    ax.axhline(0, color=house.GREY, linestyle="--", linewidth=1, zorder=2, label=house.CALIBRATED)
    _line(ax, drawn, drawn.score, None, None)
    # The band counts where it is firm: elsewhere it may span all there is, and would flatten the rest.
    band = [] if drawn.low is None or drawn.high is None else [drawn.low, drawn.high]
    firm = [(edge - drawn.score)[drawn.n_eff >= REPORT.assessed_rows] for edge in band]
    top = 1.1 * float(np.nanmax(np.abs(np.concatenate([drawn.lce, *firm])), initial=0.02))
    ax.set(xlim=canvas.LIMITS, ylim=(-top, top), xlabel=canvas.axis_labels(drawn)[0])
    ax.set_ylabel("{0.frequency}\nminus {0.score}".format(canvas.reading_of(drawn)))
    canvas.unit_ticks(ax, ax.xaxis)
    canvas.shade(ax, drawn)
    canvas.legend(ax, canvas.words(drawn)[1], (*canvas.CORNERS, "upper right", "lower left"), fresh)
    return ax


def draw(result: Any, ax: Axes | None, histogram: bool, key: bool, color: str | None, label: Any,
         scale: Scale = "linear", figsize: Size = None, entry: str | None = None) -> Axes:  # fmt: skip
    """Draw a diagram or a curve on the square; an `entry` is all that the legend says of it."""
    fresh, ax = canvas.panel(ax, 1.16, figsize)
    score, (usual, facts) = _square(ax, result, scale), canvas.words(result, label)
    entry, color = entry or usual, color or (None if label is None else house.BLUE)
    if hasattr(result, "edges"):
        _bins(ax, result, color, entry)
    else:
        _line(ax, result, 0.0, color, entry)
        if color is None:  # ticks of several models could not be told apart
            _single_rows(ax, result)
    (strip(ax, result, color) if histogram else getattr(ax, PANEL, ax)).set_xlabel(score)
    if key:
        canvas.legend(ax, facts, canvas.CORNERS, fresh)
    return ax


def _square(ax: Any, result: Any, scale: Scale) -> str:
    """Lay out the square: equal ranges, the diagonal once, a y axis that says what is measured."""
    check_choice("scale", scale, ("linear", "log-odds"))
    score, frequency = canvas.axis_labels(result)
    limits = canvas.LIMITS
    if scale == "log-odds":
        limits = appearance.log_odds_limits(result)
        if ax.get_xscale() == "logit":
            limits = min(limits[0], ax.get_xlim()[0]), max(limits[1], ax.get_xlim()[1])
        ax.set(xscale="logit", yscale="logit")
    ax.set(xlim=limits, ylim=limits, aspect="equal")
    ax.apply_aspect()
    ax.set_ylabel(frequency if canvas.inches(ax) > 2.2 else frequency.split()[0])  # or it would meet "rows"
    for axis in (ax.xaxis, ax.yaxis):
        canvas.unit_ticks(ax, axis)
    if house.CALIBRATED not in (line.get_label() for line in ax.lines):
        end = 0.0 if scale == "linear" else appearance.FINEST
        ends = np.clip([canvas.shade(ax, result), 1.0], end, 1 - end)
        ax.plot(ends, ends, color=house.GREY, linestyle="--", linewidth=1, zorder=2, label=house.CALIBRATED)
    return score


def _colored(result: Any, color: str | None, label: str | None) -> tuple[Any, Sequence[Any], Sequence[Any]]:
    """Return the side of each score, and colour and name of each side; one side if a colour is given."""
    if color is None and result.low is not None:
        return house.sides(result.score, result.low, result.high), house.SIDE_COLORS, house.SIDES
    return (
        np.zeros(result.score.shape, dtype=int),
        (color or house.BLUE,),
        ("curve" if color is None else label,),
    )


def _bins(ax: Any, result: ReliabilityDiagram, color: str | None, label: str | None) -> None:
    drawable = (result.count > 0) & np.isfinite(result.frequency)
    share = result.count / np.max(result.count, initial=1e-300)
    # The root keeps a bin of 1 % of the sample visible beside one of 84 %.
    area = 10 + (min(max(3.2 * canvas.inches(ax), 5.0), 9.0) ** 2 - 10) * np.sqrt(share)
    side, colors, names = _colored(result, color, label)
    frequency = np.clip(result.frequency, *ax.get_ylim())  # a frequency of 0 has no log-odds
    for k in np.unique(side[drawable]):
        these = drawable & (side == k)
        ax.vlines(result.score[these], result.low[these], result.high[these], colors[k], lw=1, zorder=3)
        marks = ax.scatter(result.score[these], frequency[these], area[these], colors[k], zorder=4)
        marks.set(edgecolor=ax.get_facecolor(), linewidth=0.4, label=names[k])
        marks.set_clip_on(ax.get_xscale() != "logit")


def _line(ax: Any, result: Any, base: Any, color: str | None, label: str | None, dashes: Any = "-",
          mark: str = "o", tint: float = 0.22, dodge: float = 0.0) -> None:  # fmt: skip
    """Draw a curve with its band, fading with the number of rows; or a point with a bar for each score."""
    from matplotlib.colors import to_rgb
    from matplotlib.transforms import ScaledTranslation

    if logit := ax.get_xscale() == "logit":
        result = appearance.on_log_odds(result, *ax.get_xlim())
    x, middle, width = result.score, result.value - base, 1.1 if canvas.inches(ax) < NARROW else 1.6
    known, (side, colors, names) = np.isfinite(middle), _colored(result, color, label)
    fade = (result.n_eff >= REPORT.assessed_rows).astype(float)
    if color is None and not result.discrete:
        fade *= appearance.strength(np.arange(x.size) if logit else x, result.n_eff)
        side = np.where(fade == 0, len(colors) - 1, side)
    banded = result.low is not None and tint > 0
    low, high = (result.low - base, result.high - base) if banded else (middle, middle)
    moved = ax.transData + ScaledTranslation(dodge * 4.5 / 72, 0, ax.figure.dpi_scale_trans)
    named: set[int] = set()
    keys = {*zip(side[known].tolist(), (-fade[known]).tolist(), strict=True)}
    for k, strength in ((k, -minus) for k, minus in sorted(keys)):
        drawable = known & (side == k) & (fade == strength)
        style = {"color": colors[k], "alpha": 0.3 + 0.7 * strength, "zorder": 2.5 + strength / 2}
        name = names[k] if k not in named and (strength > 0 or color is not None) else None
        named |= {k} if name is not None else set()
        if result.discrete:
            ax.vlines(x[drawable], low[drawable], high[drawable], linewidth=width, transform=moved, **style)
            size = {"markersize": 3 * width, "linestyle": "", "transform": moved, "clip_on": not logit}
            ax.plot(x[drawable], middle[drawable], mark, label=name, **size, **style)
            continue
        drawable |= known & np.append(False, drawable[:-1])  # so that neighbours meet
        if banded and strength > 0:
            flat: dict[str, Any] = {"color": colors[k], "alpha": tint * strength}
            if color is None:  # neighbours overlap by a pixel, which transparent colours would show
                share, paper = np.array([tint * strength]), np.array(to_rgb(ax.get_facecolor()))
                flat = {"color": [paper + share * (np.array(to_rgb(colors[k])) - paper)]}
            ax.fill_between(x, low, high, drawable, linewidth=0, zorder=1.5, **flat)
        line = {"linestyle": dashes, "linewidth": width * (0.5 + 0.5 * strength)}
        ax.plot(x, np.where(drawable, middle, np.nan), label=name, **line, **style)


def _single_rows(ax: Any, result: Any) -> None:
    """Mark rows by ticks at the frame where too few are near each other for a band."""
    label = "single rows"
    for at, y in zip(appearance.single_rows(result), (0.985, 0.015), strict=True):
        if at:
            where = {"transform": ax.get_xaxis_transform(), "zorder": 3}
            ax.plot(at, np.full(len(at), y), "|", color=house.SOFT, ms=5, mew=0.8, label=label, **where)
            label = "_more rows"


def strip(ax: Any, result: Any, color: str | None, peers: Sequence[Any] = (), bare: bool = False) -> Any:
    """Draw the scores by outcome underneath on the same x axis; a log scale if some peer needs one."""
    from matplotlib.patheffects import withStroke

    below = getattr(ax, PANEL, None)
    if first := below is None:
        below = canvas.attached(ax, "bottom", "24%" if bare else "28%", 0.05, sharex=ax)
        setattr(ax, PANEL, below)
        ax.tick_params(labelbottom=False)
        canvas.shade(below, result)
    log_odds = ax.get_xscale() == "logit"
    cells = [appearance.cells(each, log_odds) for each in (result, *peers)]
    mirrored(below, cells[0], cells[1:], color)
    if bare:
        below.tick_params(left=False, labelleft=False)
        below.set_ylabel("log" if below.get_yscale() == "symlog" else "", size="x-small", rotation=0)
        below.yaxis.label.set(ha="right", va="center")
    elif first and canvas.inches(ax) > 2.2:
        places = zip(outcomes(result), cells[0][1:], (0.95, 0.03), ("top", "bottom"), strict=True)
        for text, rows, y, va in places:
            third = max(len(rows) // 3, 1)
            left = float(rows[:third].sum()) < float(rows[-third:].sum())
            where = {"transform": below.transAxes, "va": va, "ha": "left" if left else "right"}
            note = below.text(0.02 if left else 0.98, y, text, size="x-small", color=house.INK, **where)
            note.set_path_effects([withStroke(linewidth=2, foreground=below.get_facecolor())])
    return below
