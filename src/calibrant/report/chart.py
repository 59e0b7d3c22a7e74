"""The pictures of the report: curves, intervals, costs, and which classes take probability from which."""

from __future__ import annotations

from collections.abc import Sequence
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
from calibrant.inputs.house_style import (
    BLUE,
    EXPECTED,
    GREY,
    INK,
    LINE,
    ORANGE,
    SIDE_COLORS,
    SIDES,
    SOFT,
    sides,
)
from calibrant.inputs.wording import (
    count,
    counted,
    number,
    percent,
    points,
    points_with_ends,
    short,
    size_name,
    with_interval,
)
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.report.svg import Axis, area, drawing, path, tag, text
from calibrant.settings import REPORT
from calibrant.tasks import get_notion


class Frame(NamedTuple):
    """Where the square lies, the height of the histogram below it, and the size of the type."""

    left: float
    top: float
    side: float
    strip: float
    type_size: int

    @property
    def right(self) -> float:
        """The right side of the square."""
        return self.left + self.side

    @property
    def foot(self) -> float:
        """The lower end of the histogram."""
        return self.top + self.side + 2.2 * self.type_size + self.strip


# The drawing of a wide page, and one 360 pixels wide; both have type of at least 11 pixels where they stand.
WIDE, NARROW = Frame(66.0, 26.0, 524.0, 100.0, 14), Frame(50.0, 24.0, 298.0, 76.0, 12)
LEFT, TOP, SIDE, *_ = WIDE
COMPACT = 360.0  # width of drawings that stand on every page
# The log-odds axis helps where most scores lie so near to 0 or 1.
CROWDED = 0.02
TINT, DISTANCE = 0.22, 2.0  # opacity of a band at its strongest, and least distance of its points
SIDE_CLASSES = ("too-high", "too-low", "in-line")
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

    @property
    def crowded(self) -> bool:
        """Whether most scores lie at the ends of the even axis."""
        edges, counts = self.odds.edges, self.odds.counts
        outside = (edges[1:] <= CROWDED) | (edges[:-1] >= 1 - CROWDED)
        return float(counts[outside].sum()) > 0.5 * float(counts.sum())

    def svg(self, name: str, *, log_odds: bool = False, narrow: bool = False, paper: bool = False) -> Markup:
        """Draw it on even or log-odds axes; on paper of its own where the page may be dark."""
        frame = NARROW if narrow else WIDE
        ends = self.ends if log_odds else (0.0, 1.0)
        x = Axis(frame.left, frame.side, *ends, log_odds)
        y = Axis(frame.top + frame.side, -frame.side, *ends, log_odds)
        width, height = frame.right + 14.0, frame.foot + 3.4 * frame.type_size
        bins = self.odds.diagram if log_odds else self.diagram
        parts = [
            *([tag("rect", width=width, height=height, fill="#fff")] if paper else []),
            *_frame(frame, x, y, self.axis_names, self.curve),
            *_histogram(frame, x, self.curve),
            *([] if self.curve.discrete else _bins(bins, x, y)),
            *_line(self.curve, x, y, 3.0 if frame is WIDE else 2.2),
            *_single_rows(frame, x, self.curve),
            tag("line", class_="cross", x1=0, x2=0, y1=frame.top, y2=frame.foot, stroke=INK, **HIDDEN),
            tag("circle", class_="spot", cx=0, cy=0, r=5, fill=INK, **HIDDEN),
        ]
        place = f"{frame.left:g} {frame.top:g} {frame.side:g}"
        return drawing(width, height, self.title, self.described, name, parts, data_frame=place)


HIDDEN = {"visibility": "hidden"}


def small(curve: ReliabilityCurve, title: str, name: str) -> Markup:
    """Draw a panel of a few square centimetres: band, curve and diagonal."""
    side, edge = 128.0, 4.0
    words = f"Frequency against score, both from 0 to 1, for {title}."
    size = 2 * edge + side
    return drawing(size, size, title, words, name, _panel(curve, edge, edge, side))


def thumbnail(curve: ReliabilityCurve, title: str, name: str) -> Markup:
    """Draw the curve beside an answer, 200 pixels wide, with the ends of its axes and the sides it is on."""
    left, top, side = 22.0, 18.0, 172.0
    right, foot, reading = left + side, top + side, get_notion(curve.notion).reading
    parts = [
        *_panel(curve, left, top, side, 2.2),
        text(reading.frequency, 0, 12, 12),
        text(reading.score, left + side / 2, foot + 15, 12, text_anchor="middle"),
        *(text(end, at, foot + 15, 12, text_anchor="middle") for end, at in (("0", left), ("1", right - 3))),
        *(text(end, left - 6, at, 12, text_anchor="end") for end, at in (("0", foot), ("1", top + 10))),
    ]
    words = f"{reading.frequency.capitalize()} against {reading.score}, both from 0 to 1, for {title}."
    return drawing(200.0, foot + 20, title, words, name, parts, class_="drawing thumbnail")


def _panel(curve: ReliabilityCurve, left: float, top: float, side: float, width: float = 1.8) -> list[Markup]:
    x, y = Axis(left, side), Axis(top + side, -side)
    return [
        tag("rect", x=left, y=top, width=side, height=side, fill="none", stroke=LINE, class_="grid"),
        _diagonal(left, top + side, left + side, top),
        *_line(curve, x, y, width),
    ]


def bar(estimate: Estimate, top: float, *, strong: bool = False) -> Markup:
    """Draw an interval on a line from 0 to `top`, for a cell of a table; the numbers stand beside it."""
    x, width = Axis(4.0, 142.0, 0.0, max(top, 1e-9)), 3 if strong else 2
    values = (estimate.low, estimate.high, estimate.value, estimate.null.mean)
    a, b, at, usual = (float(x(min(value, top))) for value in values)
    return _cell(
        tag("line", x1=4.0, x2=146.0, y1=9.0, y2=9.0, stroke=LINE, class_="grid"),
        tag("line", x1=usual, x2=usual, y1=2.0, y2=16.0, stroke=GREY, class_="null", stroke_dasharray="2"),
        *_interval(a, b, at, 9.0, "blue", BLUE, width),
    )


def signed_interval(
    gap: float, low: float, high: float, null_low: float, null_high: float, limit: float
) -> Markup:
    """Draw a calibration gap for a cell of a table: scores that are too low left of 0, too high right of it.

    Parameters
    ----------
    gap, low, high : float
        Calibration gap (frequency minus score) and its interval; below 0 where scores are too high.
    null_low, null_high : float
        Range of the gap expected if calibrated.
    limit : float
        Largest gap of the table.
    """
    limit = max(limit, 1e-9)
    x = Axis(146.0, -142.0, -limit, limit)
    b, a, at, right, left = (
        float(x(np.clip(value, -limit, limit))) for value in (low, high, gap, null_low, null_high)
    )
    side = int(sides(0.0, low, high))
    return _cell(
        tag("rect", x=left, y=3.0, width=right - left, height=12.0, fill=LINE, class_="expected"),
        tag("line", x1=75.0, x2=75.0, y1=0.0, y2=18.0, stroke=GREY, class_="null"),
        *_interval(a, b, at, 9.0, SIDE_CLASSES[side], SIDE_COLORS[side], 2),
    )


def _cell(*parts: Markup) -> Markup:
    size = {"viewBox": "0 0 150 18", "width": 150, "height": 18}
    return tag("svg", *parts, xmlns="http://www.w3.org/2000/svg", **size, aria_hidden="true", class_="bar")


def _interval(a: float, b: float, at: float, y: float, look: str, color: str, width: float) -> list[Markup]:
    """Return a line from `a` to `b` with a dot."""
    line = {"stroke": color, "stroke_width": width, "class_": f"curve {look}"}
    return [
        tag("line", x1=a, x2=b, y1=y, y2=y, **line),
        tag("circle", cx=at, cy=y, r=width + 1.5, fill=color, class_=f"dot {look}"),
    ]


def certainty(estimate: Estimate) -> Markup:
    """Draw the error with its interval, and the range expected if calibrated, on one axis of points."""
    null = 100 * estimate.null.mean
    usual = 100 * estimate.null.quantiles.get(0.95, estimate.null.mean)
    value, low, high = (100 * each for each in (estimate.value, estimate.low, estimate.high))
    x = Axis(8.0, COMPACT - 24, 0.0, 1.08 * max(high, usual, value, 1e-3))
    words = points_with_ends(estimate.value, estimate.low, estimate.high)
    found = f"calibration error {words[0]} ({percent(estimate.level)} interval {words[1]} to {words[2]})"
    expected = f"{EXPECTED}: {points(estimate.null.mean)}, 95 % of the time below {points(usual / 100)}"
    mean, foot = float(x(null)), 92.0
    parts = [
        text(found, 8, 14, 12, fill=INK, class_="known"),
        text(expected, 8, 54, 12),
        *_ticks(x, 20.0, foot),
        tag("rect", x=8.0, y=62.0, width=float(x(usual)) - 8, height=12.0, fill=GREY, class_="expected"),
        tag("line", x1=mean, x2=mean, y1=60.0, y2=76.0, stroke=INK, class_="mark", stroke_width=2),
        *_interval(float(x(low)), float(x(high)), float(x(value)), 30.0, "blue", BLUE, 4),
        text("percentage points", COMPACT / 2, foot + 34, 12, text_anchor="middle"),
    ]
    more = {"class_": "drawing compact"}
    return drawing(
        COMPACT, foot + 40, "How certain the error is", f"{found}; {expected}.", "certainty", parts, **more
    )


def costs(best: BestThreshold, level: float) -> Markup:
    """Draw the cost at every threshold, with the threshold in use and the best one with its interval."""
    log_odds, bottom, top = best._axes
    ends = (float(COST_THRESHOLDS[0]), float(COST_THRESHOLDS[-1])) if log_odds else (0.0, 1.0)
    x, y = Axis(56.0, COMPACT - 70, *ends, log_odds), Axis(236.0, -170.0, bottom, top)
    cost = np.asarray(best.costs)
    line = path(x(COST_THRESHOLDS), y(np.where(cost <= top, cost, np.nan)))
    low, high, at = (float(x(np.clip(each, *ends))) for each in (best.low, best.high, best.value))
    yours = f"your threshold {number(best.implied_threshold)}: cost {number(best.cost_as_is)}"
    where = {0.0: "always act", np.inf: "never act"}.get(
        best.value, f"{best.value:.2g} ({percent(level)}: {best.low:.2g} to {best.high:.2g})"
    )
    least = f"best threshold {where}: cost {number(best.cost)}"
    square: dict[str, Any] = {"width": 9.0, "height": 9.0, "fill": INK, "class_": "mark"}
    place = float(x(best.implied_threshold)) - 4.5, float(y(best.cost_as_is)) - 4.5
    parts = [
        tag("rect", x=2.0, y=5.0, **square),
        text(yours, 18, 14, 12, fill=INK, class_="known"),
        tag("circle", cx=6.5, cy=27.5, r=5, fill=ORANGE, class_="dot orange"),
        text(least, 18, 32, 12, fill=INK, class_="known"),
        text("cost per row", 0, 54, 12),
        *_ticks(x, 66.0, 236.0),
        *_ticks_left(y, 56.0, COMPACT - 14),
        tag("path", d=line, fill="none", stroke=BLUE, stroke_width=2, class_="curve blue"),
        *_interval(low, high, at, float(y(best.cost)), "orange", ORANGE, 3),
        tag("rect", x=place[0], y=place[1], **square),
        text("threshold", COMPACT / 2, 270, 12, text_anchor="middle"),
    ]
    more = {"class_": "drawing compact"}
    return drawing(COMPACT, 276.0, "Cost against threshold", f"{yours}; {least}.", "costs", parts, **more)


def _ticks(x: Axis, top: float, foot: float, size: int = 12) -> list[Markup]:
    """Return vertical grid lines with their values below."""
    parts = []
    for value, words in x.ticks:
        at = float(x(value))
        parts.append(tag("line", x1=at, x2=at, y1=top, y2=foot, stroke=LINE, class_="grid"))
        parts.append(text(words, at, foot + 1.3 * size, size, text_anchor="middle"))
    return parts


def _ticks_left(y: Axis, left: float, right: float, size: int = 12) -> list[Markup]:
    """Return horizontal grid lines with their values at the left."""
    parts = []
    for value, words in y.ticks:
        up = float(y(value))
        parts.append(tag("line", x1=left, x2=right, y1=up, y2=up, stroke=LINE, class_="grid"))
        parts.append(text(words, left - 7, up + 0.35 * size, size, text_anchor="end"))
    return parts


def _line(curve: ReliabilityCurve, x: Axis, y: Axis, width: float) -> list[Markup]:
    """Return the curve with its band, fading with the number of rows; or a point with a bar for each score."""
    if curve.discrete:
        return _each_score(curve, x, y, width)
    shown: Any = appearance.on_log_odds(curve, x.low, x.high) if x.odds else curve
    at = x(shown.score)
    step = appearance.strength(at, shown.n_eff)
    side = np.full(at.shape, 2) if shown.low is None else sides(shown.score, shown.low, shown.high)
    side = np.where(step == 0, 2, side)
    # As many points as can be told apart.
    kept = np.union1d(np.unique(np.round(at / DISTANCE), return_index=True)[1], [0, at.size - 1])
    at, step, side, value = at[kept], step[kept], side[kept], shown.value[kept]
    bands, lines, known = [], [], np.isfinite(value)
    for strength, k in sorted({*zip(step[known].tolist(), side[known].tolist(), strict=True)}):
        held = known & (side == k) & (step == strength)
        held |= known & np.append(False, held[:-1])  # so that neighbours meet
        ink, look = SIDE_COLORS[k], SIDE_CLASSES[k]
        if shown.low is not None and strength > 0:
            low, high = (y(np.where(held, end[kept], np.nan)) for end in (shown.low, shown.high))
            opacity = f"{TINT * strength:.3f}"
            outline = area(at, low, high)
            bands.append(tag("path", d=outline, class_=f"band {look}", fill=ink, fill_opacity=opacity))
        style = {"stroke_width": width * (0.4 + 0.6 * strength), "stroke_linecap": "round"}
        if strength < 1:
            style["stroke_opacity"] = f"{0.45 + 0.55 * strength:.2f}"
        d = path(at, y(np.where(held, value, np.nan)))
        lines.append(tag("path", d=d, class_=f"curve {look}", fill="none", stroke=ink, **style))
    return [*bands, *lines]


def _each_score(curve: ReliabilityCurve, x: Axis, y: Axis, width: float) -> list[Markup]:
    """Return a dot with one interval for each score; grey and hollow where few rows have it."""
    parts = []
    low, high = (curve.value if end is None else end for end in (curve.low, curve.high))
    columns = (curve.score, curve.value, low, high, curve.n_eff, sides(curve.score, low, high))
    for score, frequency, a, b, rows, side in zip(*columns, strict=True):
        if np.isnan(frequency):
            continue
        few = rows < REPORT.assessed_rows
        k, at, up = 2 if few else int(side), float(x(score)), float(y(frequency))
        words = f"score {score:.4g}: {with_interval(frequency, a, b)}, {_size(rows, curve.n)}"
        words += ", too few to assess" if few else f", {SIDES[k]}"
        look: dict[str, Any] = {"stroke": SIDE_COLORS[k], "class_": f"curve {SIDE_CLASSES[k]}"}
        dashes: dict[str, Any] = (
            {"stroke_width": 1, "stroke_dasharray": "3 3"} if few else {"stroke_width": width}
        )
        line = tag("line", x1=at, x2=at, y1=float(y(a)), y2=float(y(b)), **look, **dashes)
        if few:
            dot = tag(
                "circle", cx=at, cy=up, r=1.4 * width, fill="#fff", **look | {"class_": "hollow in-line"}
            )
        else:
            dot = tag(
                "circle", cx=at, cy=up, r=1.9 * width, fill=look["stroke"], class_=f"dot {SIDE_CLASSES[k]}"
            )
        parts.append(tag("g", tag("title", words), line, dot))
    return parts


def _single_rows(frame: Frame, x: Axis, curve: ReliabilityCurve) -> list[Markup]:
    """Return ticks at the frame for rows with few others near them: above with the outcome, below without."""
    length, parts = 0.6 * frame.type_size, []
    starts = (frame.top, frame.top + frame.side - length)
    names = appearance.outcome_names(curve)
    for rows, start, name in zip(appearance.single_rows(curve), starts, names, strict=True):
        at = [float(x(score)) for score in rows if x.low <= score <= x.high]
        if at:
            d = "".join(f"M{place:.1f} {start:.1f}v{length:.1f}" for place in at)
            title = tag("title", f"single rows, {name}: too few near each other for a band")
            parts.append(tag("path", title, d=d, stroke=SOFT, stroke_width=1.2, class_="rows"))
    return parts


def _bins(diagram: ReliabilityDiagram, x: Axis, y: Axis) -> list[Markup]:
    parts = []
    columns = (diagram.score, diagram.frequency, diagram.low, diagram.high, diagram.count)
    for score, frequency, low, high, rows in zip(*columns, strict=True):
        if rows > 0 and x.low <= score <= x.high:
            words = f"bin at {score:.4g}: {with_interval(frequency, low, high)}, {_size(rows, diagram.n)}"
            place = {"cx": float(x(score)), "cy": float(y(frequency)), "r": 3}
            style = {"fill": "none", "stroke": GREY, "class_": "bin"}
            parts.append(tag("circle", tag("title", words), **place, **style))
    return parts


def _size(rows: float, n: float) -> str:
    """Return the rows behind a point, or their effective number where that of all rows is one."""
    return counted(round(rows), "row") if size_name(n) == "rows" else f"effective sample size {rows:,.0f}"


def _histogram(frame: Frame, x: Axis, curve: ReliabilityCurve) -> list[Markup]:
    """Return the rows with the outcome upwards and those without it downwards, on one scale."""
    at, positive, negative = appearance.cells(curve, x.odds)
    tops = [float(rows.max(initial=0.0)) for rows in (positive, negative)]
    if not max(tops) > 0:
        return []
    log, size = appearance.dwarfed(positive, negative), frame.type_size
    scaled = np.log1p if log else np.asarray
    up, down = (float(scaled(top)) for top in tops)
    # Room for the label of the smaller side.
    up, down = max(up, 0.15 * down), max(down, 0.15 * up)
    unit, foot = frame.strip / (up + down), frame.foot
    zero, half = foot - unit * down, 0.0
    left, right = at[:-1], at[1:]
    if curve.discrete:  # stems at the scores
        left, right, half = at, at, 0.3 * size
    left, right = x(left) + 0.5 - 1.5 * half, x(right) - 0.5 + 1.5 * half
    parts = [tag("line", x1=frame.left, x2=frame.right, y1=zero, y2=zero, stroke=GREY, class_="box")]
    names = appearance.outcome_names(curve)
    for sign, rows, top, name in zip((1, -1), (positive, negative), tops, names, strict=True):
        tips = zero - sign * np.maximum(unit * scaled(rows), 1.0)
        d = "".join(
            f"M{a:.1f} {zero:.1f}V{tip:.1f}H{b:.1f}V{zero:.1f}Z"
            for a, b, tip, n in zip(left, right, tips, rows, strict=True)
            if n > 0 and b > a
        )
        style = {"fill": SOFT, "class_": "hist"} if sign > 0 else {"fill": GREY, "class_": "hist other"}
        parts.append(tag("path", d=d, **style, fill_opacity=None if sign > 0 else "0.55"))
        third = max(len(rows) // 3, 1)
        empty = float(rows[:third].sum()) < float(rows[-third:].sum())
        end = foot - frame.strip + 0.75 * size if sign > 0 else foot - 0.15 * size
        place: dict[str, Any] = (
            {"x": frame.left + 5, "text_anchor": "start"}
            if empty
            else {"x": frame.right - 5, "text_anchor": "end"}
        )
        parts.append(text(name, y=end, size=size, class_="halo", **place, **HALO))
        label = f"{top:.1f}" if 0 < top < 1 else count(round(top))
        parts.append(text(label, frame.left - 7, end, size, text_anchor="end"))
    title = f"{size_name(curve.n)} by score and outcome{', log scale' if log else ''}"
    parts.append(text(title, frame.left, foot - frame.strip - 0.6 * size, size))
    return parts


def _frame(frame: Frame, x: Axis, y: Axis, names: tuple[str, str], curve: ReliabilityCurve) -> list[Markup]:
    """Return the grid, ticks, the diagonal, the names of the axes and of the sides of the diagonal."""
    left, top, side, _, size = frame
    right, bottom, foot, notion = frame.right, top + side, frame.foot, get_notion(curve.notion)
    start = curve.support[0] if notion.top else 0.0
    first = max(x.low, start)
    shade = {"x": left, "y": top, "width": float(x(first)) - left, "height": side}
    return [
        *([tag("rect", **shade, fill=LINE, fill_opacity="0.4", class_="outside")] if first > x.low else []),
        *_ticks(x, top, bottom, 0),
        *_ticks(x, foot - frame.strip, foot, size),
        *_ticks_left(y, left, right, size),
        _diagonal(*(float(v) for v in (x(first), y(first), x(x.high), y(x.high)))),
        tag("rect", x=left, y=top, width=side, height=side, fill="none", stroke=GREY, class_="box"),
        text(
            names[0], left + side / 2, foot + 2.8 * size, size, text_anchor="middle", fill=INK, class_="known"
        ),
        text(names[1], 0, top - 0.7 * size, size, fill=INK, class_="known"),
        text(SIDES[1], left + 8, top + 2.1 * size, size, fill=SIDE_COLORS[1], class_="halo too-low", **HALO),
        text(
            SIDES[0],
            right - 8,
            bottom - 1.3 * size,
            size,
            fill=SIDE_COLORS[0],
            class_="halo too-high",
            text_anchor="end",
            **HALO,
        ),
    ]


def _diagonal(x1: float, y1: float, x2: float, y2: float) -> Markup:
    dashes: dict[str, Any] = {"stroke": GREY, "stroke_dasharray": "6 5", "class_": "diagonal"}
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **dashes)


def heat(where: ProbabilityTransfer, names: Sequence[str], pairs: Sequence[ClassTransfer]) -> Markup:
    """Draw what the class of each row takes from that of each column; certain `pairs` in bold type."""
    classes = len(names)
    size, most = CELLS / classes, max(float(np.abs(where.taken).max()), 1e-9)
    certain = {frozenset((pair.taker, pair.giver)) for pair in pairs if pair.low > 0}
    parts = [text("takes from", NAMES - 8, ABOVE - 10, 12, text_anchor="end")]
    for k, name in enumerate(names):
        middle = (k + 0.5) * size
        parts.append(text(short(name, 14), NAMES - 8, ABOVE + middle + 4, 13, text_anchor="end", fill=INK))
        x, y = NAMES + middle, ABOVE - 8
        parts.append(text(short(name, 14), x, y, 13, fill=INK, transform=f"rotate(-35 {x:g} {y:g})"))
        for j in range(classes):
            value, known = float(where.taken[k, j]), frozenset((k, j)) in certain
            place = {"x": NAMES + j * size, "y": ABOVE + k * size, "width": size, "height": size}
            takes = {"fill": ORANGE, "class_": "takes"} if value >= 0 else {"fill": BLUE, "class_": "gives"}
            words = f"{names[k]} {'takes' if value >= 0 else 'gives'} {points(abs(value))} points "
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
        "A square for each pair of classes: orange where the class of the row takes probability from that "
        "of the column, blue where it gives, paler the less; bold where the interval excludes 0."
    )
    width, height = NAMES + CELLS + 52, ABOVE + CELLS + 8
    return drawing(width, height, "Which classes take probability from which", described, "heat", parts)


def signed(share: float) -> str:
    """Return a share in points, with a minus below 0.

    >>> signed(-0.021), signed(-1e-9)
    ('−2.1', '0.0')
    """
    written = points(abs(share))
    return f"−{written}" if share < 0 and float(written) else written
