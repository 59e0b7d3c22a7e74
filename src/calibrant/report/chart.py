"""The pictures of the report: curves, intervals, costs, and which classes take probability from which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from calibrant.assessment import Odds
from calibrant.assessment.probability_transfer import ClassTransfer
from calibrant.curves import ReliabilityCurve, ReliabilityDiagram, appearance
from calibrant.decisions import BestThreshold
from calibrant.decisions.decision import COST_THRESHOLDS
from calibrant.inference.result import Estimate
from calibrant.inputs import house_style as house
from calibrant.inputs.house_style import BLUE, GREY, INK, LINE, NO_ERROR, ORANGE, SIDES, SOFT, sides
from calibrant.inputs.wording import (
    count,
    counted,
    number,
    percent,
    points,
    points_with_ends,
    short,
    size_name,
)
from calibrant.inputs.wording import with_interval as interval_text
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.report.svg import STRAIGHT, Axis, area, drawing, path, runs, tag, text
from calibrant.settings import REPORT
from calibrant.tasks import get_notion


class Frame(NamedTuple):
    """The square, the histogram below it down to `foot`, and the size of the type."""

    left: float
    top: float
    side: float
    right: float
    foot: float
    strip: float
    size: int


FRAME = Frame(50.0, 24.0, 298.0, 348.0, 424.0, 76.0, 12)
COMPACT = 360.0  # width of drawings that stand on every page
TINT, SLIVER = 0.22, 0.015  # opacity of a band at its strongest, and least share of the axis of one colour
SIDE_CLASSES = ("too-high", "too-low", "in-line")
HIDDEN = {"visibility": "hidden"}
HALO: dict[str, Any] = {"stroke": "#fff", "stroke_width": 4, "paint_order": "stroke"}
# The heat map: space for names at the left and above, the width of all cells, and their deepest shade.
NAMES, ABOVE, CELLS, DEEPEST = 112.0, 84.0, 320.0, 0.55
# Classes up to which cells hold numbers.
NUMBERED = 8


@dataclass(frozen=True, eq=False)
class Picture:
    """What is drawn: a curve, and on each axis the bins and the histogram of the same data."""

    curve: ReliabilityCurve
    diagram: ReliabilityDiagram
    odds: Odds
    title: str
    described: str
    axis_names: tuple[str, str]

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest score and frequency of the log-odds axes."""
        return appearance.log_odds_limits(self.curve)

    def svg(self, name: str, *, log_odds: bool = False, paper: bool = False) -> Markup:
        """Draw it on even or log-odds axes; on paper of its own where the page may be dark."""
        left, top, side, right, foot, _, size = FRAME
        ends, bottom = self.ends if log_odds else (0.0, 1.0), top + side
        x, y = Axis(left, side, *ends, log_odds), Axis(bottom, -side, *ends, log_odds)
        width, height, curve = right + 14.0, foot + 3.4 * size, self.curve
        too_low, too_high = (_side(k, "fill", "halo") | HALO for k in (1, 0))
        parts = [
            *([tag("rect", width=width, height=height, fill="#fff")] if paper else []),
            *_frame(x, y, self.axis_names, curve),
            *_histogram(x, curve),
            *([] if curve.discrete else _bins(self.odds.diagram if log_odds else self.diagram, x, y)),
            *_line(curve, x, y),
            *_single_rows(curve, x, y, 0.6 * size),
            text(SIDES[1], left + 8, top + 2.1 * size, size, **too_low),
            text(SIDES[0], right - 8, bottom - 1.3 * size, size, text_anchor="end", **too_high),
            tag("line", class_="cross", x1=0, x2=0, y1=top, y2=foot, stroke=INK, **HIDDEN),
            tag("circle", class_="spot", cx=0, cy=0, r=5, fill=INK, **HIDDEN),
        ]
        place = {"data_frame": f"{left:g} {top:g} {side:g}"}
        return drawing(width, height, self.title, self.described, name, parts, **place)


def thumbnail(
    curves: Mapping[str, ReliabilityCurve], title: str, name: str, *, coarse: bool = False
) -> Markup:
    """Draw curves for a place 200 pixels wide; their names stand on their sides of the diagonal."""
    first = next(iter(curves.values()))
    x, y, reading = Axis(22.0, 172.0), Axis(190.0, -172.0), get_notion(first.notion).reading
    parts = [
        tag("rect", x=22.0, y=18.0, width=172.0, height=172.0, fill="none", stroke=LINE, class_="grid"),
        _diagonal(x, y),
        *(element for curve in curves.values() for element in _line(curve, x, y, coarse=coarse)),
        *(_single_rows(first, x, y, 6.0) if len(curves) == 1 else []),
        text(reading.frequency, 0, 12),
        *(
            text(words, at, 205, text_anchor="middle")
            for words, at in ((reading.score, 108), (0, 22), (1, 191))
        ),
        *(text(words, 16, at, text_anchor="end") for words, at in ((0, 190), (1, 28))),
    ]
    named = [0, 0]
    for words, curve in [(words, curve) for words, curve in curves.items() if words]:
        low = int(np.nansum((curve.value - curve.score) * curve.n_eff) > 0)  # which side has most rows
        place, anchor = (
            ((28.0, 34.0 + 15 * named[1]), "start") if low else ((188.0, 182.0 - 15 * named[0]), "end")
        )
        named[low] += 1
        parts.append(text(words, *place, 13, text_anchor=anchor, **(_side(low, "fill", "halo") | HALO)))
    words = f"{reading.frequency.capitalize()} against {reading.score}, both from 0 to 1, for {title}."
    return drawing(200.0, 210.0, title, words, name, parts, class_="drawing thumbnail")


def bar(estimate: Estimate, top: float, *, strong: bool = False) -> Markup:
    """Draw an interval on a line from 0 to `top`, for a cell of a table; the numbers stand beside it."""
    x, width = Axis(4.0, 142.0, 0.0, max(top, 1e-9)), 3 if strong else 2
    values = (estimate.low, estimate.high, estimate.value, estimate.null.mean)
    a, b, at, usual = (float(x(min(value, top))) for value in values)
    return _cell(
        tag("line", x1=4.0, x2=146.0, y1=9.0, y2=9.0, stroke=LINE, class_="grid"),
        tag("line", x1=usual, x2=usual, y1=2.0, y2=16.0, stroke=GREY, class_="null", stroke_dasharray="2"),
        *_interval(a, b, at, 9.0, width),
    )


def signed_interval(
    gap: float, low: float, high: float, null_low: float, null_high: float, limit: float
) -> Markup:
    """Draw a calibration gap for a cell of a table: scores that are too high left of 0, too low right of it.

    The gap is frequency minus score, `null_low` to `null_high` its range expected if calibrated, and `limit`
    the largest gap of the table.
    """
    limit = max(limit, 1e-9)
    values = np.clip((low, high, gap, null_low, null_high), -limit, limit)
    a, b, at, left, right = Axis(4.0, 142.0, -limit, limit)(values).tolist()
    return _cell(
        tag("rect", x=left, y=3.0, width=right - left, height=12.0, fill=LINE, class_="expected"),
        tag("line", x1=75.0, x2=75.0, y1=0.0, y2=18.0, stroke=GREY, class_="null"),
        *_interval(a, b, at, 9.0, 2, int(sides(0.0, low, high))),
    )


def _cell(*parts: Markup) -> Markup:
    size = {"viewBox": "0 0 150 18", "width": 150, "height": 18}
    return tag("svg", *parts, xmlns="http://www.w3.org/2000/svg", **size, aria_hidden="true", class_="bar")


def _side(k: int, paint: str, kind: str) -> dict[str, Any]:
    """Return colour and classes of what lies on one of the sides."""
    return {paint: house.SIDE_COLORS[k], "class_": f"{kind} {SIDE_CLASSES[k]}"}


def _interval(a: float, b: float, at: float, y: float, width: float, k: int | None = None) -> list[Markup]:
    """Return a line from `a` to `b` with a dot."""
    line, dot = {"stroke": BLUE, "class_": "curve blue"}, {"fill": BLUE, "class_": "dot blue"}
    if k is not None:
        line, dot = _side(k, "stroke", "curve"), _side(k, "fill", "dot")
    ends = {"x1": a, "x2": b, "y1": y, "y2": y, "stroke_width": width}
    return [tag("line", **ends, **line), tag("circle", cx=at, cy=y, r=width + 1.5, **dot)]


def certainty(estimate: Estimate) -> Markup:
    """Draw the error with its interval, and the range expected if calibrated, on one axis of points."""
    null, level = estimate.null, percent(estimate.level)
    often = null.quantiles.get(0.95, null.mean)
    x = Axis(8.0, COMPACT - 24, 0.0, 108 * max(estimate.high, often, 1e-5))
    values = (null.mean, often, estimate.low, estimate.high, estimate.value)
    mean, end, low, high, at = x(100 * np.array(values)).tolist()
    value, *ends = points_with_ends(estimate.value, estimate.low, estimate.high)
    estimate_text = f"calibration error {value} ({level} interval {' to '.join(ends)})"
    expected = f"{house.EXPECTED}: {points(null.mean)} (95 % below {points(often)})"
    parts = [
        *_grid(x, 92.0, 20.0),
        text(estimate_text, 8, 14, fill=INK, class_="known"),
        *_interval(low, high, at, 30.0, 4),
        text(expected, 8, 54, class_="halo", **HALO),
        tag("rect", x=8.0, y=62.0, width=end - 8, height=12.0, fill=GREY, class_="expected"),
        tag("line", x1=mean, x2=mean, y1=60.0, y2=76.0, stroke=INK, class_="mark", stroke_width=2),
        text("percentage points", COMPACT / 2, 126, text_anchor="middle"),
    ]
    title, words = "How certain the error is", f"{estimate_text}; {expected}; in percentage points."
    return drawing(COMPACT, 132.0, title, words, "certainty", parts, class_="drawing compact")


def costs(best: BestThreshold, level: float) -> Markup:
    """Draw the cost at every threshold, with the threshold in use and the best one with its interval."""
    log_odds, bottom, top = best._axes
    ends = (float(COST_THRESHOLDS[0]), float(COST_THRESHOLDS[-1])) if log_odds else (0.0, 1.0)
    x, y = Axis(56.0, COMPACT - 70, *ends, log_odds), Axis(236.0, -170.0, 1000 * bottom, 1000 * top)
    cost = np.asarray(best.costs)
    line = path(x(COST_THRESHOLDS), y(1000 * np.where(cost <= top, cost, np.nan)))
    low, high, at = x(np.clip((best.low, best.high, best.value), *ends)).tolist()
    yours = f"your threshold {best.implied_threshold:.3g}: cost {number(1000 * best.cost_as_is)}"
    where = {0.0: "always act", np.inf: "never act"}.get(
        best.value, f"{best.value:.3g} ({percent(level)} interval {best.low:.3g} to {best.high:.3g})"
    )
    least = f"best {where}: cost {number(1000 * best.cost)}"
    up, now = (float(y(1000 * each)) for each in (best.cost, best.cost_as_is))
    square: dict[str, Any] = {"width": 9.0, "height": 9.0, "fill": INK, "class_": "mark"}
    dot = {"r": 5, "fill": ORANGE, "class_": "dot orange"}
    orange = {"stroke": ORANGE, "class_": "curve orange"}
    parts = [
        tag("rect", x=2.0, y=5.0, **square),
        text(yours, 18, 14, fill=INK, class_="known"),
        tag("circle", cx=6.5, cy=27.5, **dot),
        text(least, 18, 32, fill=INK, class_="known"),
        text("cost per 1,000 rows", 0, 54),
        *_grid(x, 236.0, 66.0),
        *_grid(y, 56.0, COMPACT - 14),
        tag("path", d=line, fill="none", stroke=BLUE, stroke_width=2, class_="curve blue"),
        tag("line", x1=low, x2=high, y1=up, y2=up, stroke_width=3, **orange),
        tag("circle", cx=at, cy=up, **dot),
        tag("rect", x=float(x(best.implied_threshold)) - 4.5, y=now - 4.5, **square),
        text("threshold", COMPACT / 2, 270, text_anchor="middle"),
    ]
    words = f"{yours}; {least}."
    return drawing(COMPACT, 276.0, "Cost against threshold", words, "costs", parts, class_="drawing compact")


def _grid(axis: Axis, start: float, end: float, size: int = 12) -> list[Markup]:
    """Return lines across an axis from `start`, where the values stand, to `end`; size 0 leaves these out."""
    parts, along, lines = [], axis.length > 0, ""
    for value, words in axis.ticks:
        at = float(axis(value))
        lines += f"M{at:.1f} {start:g}V{end:g}" if along else f"M{start:g} {at:.1f}H{end:g}"
        place = (at, start + 1.3 * size, "middle") if along else (start - 7, at + 0.35 * size, "end")
        parts += [text(words, *place[:2], size, text_anchor=place[2])] if size else []
    return [tag("path", d=lines, stroke=LINE, class_="grid"), *parts]


def _line(
    curve: ReliabilityCurve, x: Axis, y: Axis, width: float = 2.2, *, coarse: bool = False
) -> list[Markup]:
    """Return the curve with its band, fading with the number of rows; or a dot with a bar for each score."""
    if curve.discrete:
        return _each_score(curve, x, y, width)
    shown: Any = appearance.on_log_odds(curve, x.low, x.high) if x.odds else curve._thinned()
    at, known = x(shown.score), np.isfinite(shown.value)
    step, straight = appearance.strength(at, shown.n_eff), STRAIGHT
    if coarse:  # in fewer steps, and with fewer corners
        step, straight = np.ceil(2 * step) / 2, 4 * STRAIGHT
    side = np.full(at.shape, 2) if shown.low is None else sides(shown.score, shown.low, shown.high)
    if not step.any():
        return []  # a line without any band would look certain
    side[step == 0] = 2
    for run in (run for k in (0, 1) for run in runs(side == k)):
        if at[run.stop - 1] - at[run.start] < SLIVER * x.length:
            side[run] = 2
    bands, lines = [], []
    for strength, k in sorted({*zip(step[known].tolist(), side[known].tolist(), strict=True)}):
        held = known & (side == k) & (step == strength)
        held |= known & np.append(False, held[:-1])  # so that neighbours meet
        value = y(np.where(held, shown.value, np.nan))
        if shown.low is not None and strength > 0:
            low, high = (y(np.where(held, end, np.nan)) for end in (shown.low, shown.high))
            outline, opacity = area(at, low, high, straight), f"{TINT * strength:.2f}"
            bands.append(tag("path", d=outline, fill_opacity=opacity, **_side(k, "fill", "band")))
        style = {"fill": "none", "stroke_opacity": f"{0.6 + 0.4 * strength:.2f}"}
        style |= _side(k, "stroke", "curve")
        thin = width * (0.4 + 0.6 * strength)
        lines.append(tag("path", d=path(at, value), stroke_width=thin, **style))
    # Smoothed edges would leave seams between neighbours.
    return [tag("g", *bands, shape_rendering="crispEdges"), *lines]


def _each_score(curve: ReliabilityCurve, x: Axis, y: Axis, width: float) -> list[Markup]:
    """Return a dot with one interval for each score; grey and hollow where few rows have it."""
    parts = []
    low, high = (curve.value if end is None else end for end in (curve.low, curve.high))
    columns = (curve.score, curve.value, low, high, curve.n_eff, sides(curve.score, low, high))
    for score, frequency, a, b, rows, side in zip(*columns, strict=True):
        if np.isnan(frequency):
            continue
        few = rows < REPORT.assessed_rows
        k, at, up = 2 if few else side, float(x(score)), float(y(frequency))
        words = f"score {score:.4g}: {interval_text(frequency, a, b)}, {_size(rows, curve.n_eff.sum())}, "
        unclear = few or (k == 2 and b - a > REPORT.wide_interval)
        words += "too few to tell" if unclear else (*SIDES[:2], NO_ERROR)[k]
        style = {"stroke_width": 1, "stroke_dasharray": "3 3"} if few else {"stroke_width": width}
        line = tag(
            "line", x1=at, x2=at, y1=float(y(a)), y2=float(y(b)), **style, **_side(k, "stroke", "curve")
        )
        mark = {"fill": "#fff", **_side(k, "stroke", "hollow")} if few else _side(k, "fill", "dot")
        parts.append(tag("g", tag("title", words), line, tag("circle", cx=at, cy=up, r=1.8 * width, **mark)))
    return parts


def _single_rows(curve: ReliabilityCurve, x: Axis, y: Axis, length: float) -> list[Markup]:
    """Return ticks at the frame for rows with few others near them: above with the outcome, below without."""
    parts, starts = [], (y.start + y.length, y.start - length)
    names = appearance.outcome_names(curve)
    for rows, start, name in zip(appearance.single_rows(curve), starts, names, strict=True):
        at = [float(x(score)) for score in rows if x.low <= score <= x.high]
        if at:
            d = "".join([f"M{place:.1f} {start:.1f}v{length:.1f}" for place in at])
            title = tag("title", f"single rows, {name}: too few near each other for a band")
            parts.append(tag("path", title, d=d, stroke=SOFT, stroke_width=1.2, class_="rows"))
    return parts


def _bins(diagram: ReliabilityDiagram, x: Axis, y: Axis) -> list[Markup]:
    parts = []
    columns = (diagram.score, diagram.frequency, diagram.low, diagram.high, diagram.count)
    for score, frequency, low, high, rows in zip(*columns, strict=True):
        if rows >= REPORT.assessed_rows and x.low <= score <= x.high:
            words = f"bin at {score:.4g}: {interval_text(frequency, low, high)}, {_size(rows, diagram.n)}"
            parts.append(tag("circle", tag("title", words), cx=float(x(score)), cy=float(y(frequency)), r=2))
    return [tag("g", *parts, fill="none", stroke=GREY, class_="bin")]


def _size(rows: float, n: float) -> str:
    """Return the rows behind a point, or their effective number where that of all rows is one."""
    return counted(round(rows), "row") if size_name(n) == "rows" else f"about {rows:,.0f} rows (effective)"


def _histogram(x: Axis, curve: ReliabilityCurve) -> list[Markup]:
    """Return the rows with the outcome upwards and those without it downwards, on one scale."""
    at, *counts = appearance.cells(curve, x.odds)
    tops, log = [float(rows.max(initial=0.0)) for rows in counts], appearance.dwarfed(*counts)
    if not max(tops) > 0:
        return []
    first, _, _, right, foot, strip, size = FRAME
    scaled, title = np.log1p if log else np.asarray, "by score and outcome"
    title = f"{'rows' if size_name(curve.n) == 'rows' else 'rows (effective)'} {title}"
    up, down = (float(scaled(max(top, 1e-9))) for top in tops)
    up, down = max(up, 0.15 * down), max(down, 0.15 * up)  # room for the label of the smaller side
    unit = strip / (up + down)
    zero = foot - unit * down
    bars = (x(at) - 0.4 * size, x(at) + 0.4 * size) if curve.discrete else (x(at[:-1]), x(at[1:]))
    parts = [
        tag("line", x1=first, x2=right, y1=zero, y2=zero, stroke=GREY, class_="box"),
        text(f"{title}, log scale" if log else title, first, foot - strip - 0.6 * size, size),
    ]
    names = appearance.outcome_names(curve)
    for sign, rows, top, name in zip((1, -1), counts, tops, names, strict=True):
        tips = zero - sign * np.maximum(unit * scaled(rows), 1.0)
        d, last = "", np.nan
        for a, b, tip in np.stack([*bars, tips], axis=1)[(rows > 0) & (bars[1] > bars[0])].tolist():
            if a != last:
                d += f"{f'V{zero:.1f}' if d else ''}M{a:.1f} {zero:.1f}"
            d, last = f"{d}V{tip:.1f}H{b:.1f}", b
        style = {"class_": "hist"} if sign > 0 else {"class_": "hist other", "fill_opacity": "0.5"}
        third, end = max(len(rows) // 3, 1), foot - strip + 0.75 * size if sign > 0 else foot - 0.15 * size
        emptier = float(rows[:third].sum()) < float(rows[-third:].sum())
        place, anchor = (first + 5, "start") if emptier else (right - 5, "end")
        parts += [
            tag("path", d=f"{d}V{zero:.1f}" if d else "", fill=SOFT, **style),
            text(name, place, end, size, text_anchor=anchor, class_="halo", **HALO),
            text(f"{top:.1f}" if 0 < top < 1 else count(round(top)), first - 7, end, size, text_anchor="end"),
        ]
    return parts


def _frame(x: Axis, y: Axis, names: tuple[str, str], curve: ReliabilityCurve) -> list[Markup]:
    """Return the grid, ticks, the diagonal, and the names of the axes."""
    left, top, side, right, foot, strip, size = FRAME
    first = max(x.low, curve.support[0] if get_notion(curve.notion).top else 0.0)
    shade = {"x": left, "y": top, "width": float(x(first)) - left, "height": side, "fill_opacity": "0.4"}
    middle, named = {"text_anchor": "middle"}, {"fill": INK, "class_": "known"}
    return [
        *([tag("rect", **shade, fill=LINE, class_="outside")] if first > x.low else []),
        *_grid(x, top + side, top, 0),
        *_grid(x, foot, foot - strip, size),
        *_grid(y, left, right, size),
        _diagonal(x, y, first),
        tag("rect", x=left, y=top, width=side, height=side, fill="none", stroke=GREY, class_="box"),
        text(names[0], left + side / 2, foot + 2.8 * size, size, **middle, **named),
        text(names[1], 0, top - 0.7 * size, size, **named),
    ]


def _diagonal(x: Axis, y: Axis, first: float = 0.0) -> Markup:
    x1, y1, x2, y2 = (float(each) for each in (x(first), y(first), x(x.high), y(y.high)))
    dashes = {"stroke": GREY, "stroke_dasharray": "6 5", "class_": "diagonal"}
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **dashes)


def heat(where: ProbabilityTransfer, names: Sequence[str], pairs: Sequence[ClassTransfer]) -> Markup:
    """Draw what the class of each row receives from that of each column, significant `pairs` in bold."""
    classes = len(names)
    size, most = CELLS / classes, max(float(np.abs(where.net).max()), 1e-9)
    certain = {frozenset((pair.taker, pair.giver)) for pair in pairs if pair.low > 0}
    parts = [text("receives from", NAMES - 8, ABOVE - 10, 12, text_anchor="end")]
    for k, name in enumerate(names):
        middle = (k + 0.5) * size
        parts.append(text(short(name, 14), NAMES - 8, ABOVE + middle + 4, 13, text_anchor="end", fill=INK))
        x, y = NAMES + middle, ABOVE - 8
        parts.append(text(short(name, 14), x, y, 13, fill=INK, transform=f"rotate(-35 {x:g} {y:g})"))
        for j in range(classes):
            value, known = float(where.net[k, j]), frozenset((k, j)) in certain
            place = {"x": NAMES + j * size, "y": ABOVE + k * size, "width": size, "height": size}
            takes = {"fill": ORANGE, "class_": "takes"} if value >= 0 else {"fill": BLUE, "class_": "gives"}
            words = f"{names[k]} {'receives' if value >= 0 else 'gives'} {points(abs(value))} points "
            words += f"{'from' if value >= 0 else 'to'} {names[j]}"
            shade = f"{DEEPEST * abs(value) / most:.3f}"
            cell = [tag("rect", **place, **takes, fill_opacity=shade)]
            cell.append(tag("rect", **place, fill="none", stroke=LINE, class_="grid"))
            if k != j and classes <= NUMBERED:
                text_style: dict[str, Any] = {"fill": SOFT}
                if known:
                    text_style = {"fill": INK, "class_": "known", "font_weight": "bold"}
                centre = place["x"] + size / 2, place["y"] + size / 2 + 5
                cell.append(text(signed(value), *centre, 13, text_anchor="middle", **text_style))
            parts.append(tag("g", *([] if k == j else [tag("title", words)]), *cell))
    described = (
        "A square for each pair of classes: orange where the class of the row receives probability from that "
        "of the column, blue where it gives, paler the less; bold where the interval excludes 0."
    )
    width, height = NAMES + CELLS + 52, ABOVE + CELLS + 8
    return drawing(width, height, "Probability transfer between classes", described, "heat", parts)


def signed(share: float) -> str:
    """Return a share in points, with a minus below 0.

    >>> signed(-0.021), signed(-1e-9)
    ('−2.1', '0.0')
    """
    written = points(abs(share))
    return f"−{written}" if share < 0 and float(written) else written
