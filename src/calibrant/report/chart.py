"""The pictures of the report: what a score really means, and which classes take probability from which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.assessment import Odds
from calibrant.assessment.probability_transfer import ClassTransfer
from calibrant.curves import ReliabilityCurve, ReliabilityDiagram
from calibrant.inference.result import Estimate
from calibrant.inputs.wording import counted, points, short, size_name, with_interval
from calibrant.posterior.softmax.probability_transfer import ProbabilityTransfer
from calibrant.report.svg import BLUE, FAINT, GREY, INK, ORANGE, Axis, area, drawing, path, tag, text
from calibrant.settings import REPORT

LEFT, TOP, SIDE, STRIP = 74.0, 10.0, 520.0, 76.0
WIDTH, HEIGHT = 612.0, 672.0
# The foot of the histogram, a little below the square.
FOOT = TOP + SIDE + 14 + STRIP
# The ends of the log-odds axis at most, and the share of the rows beyond each; the axis comes first where
# most scores lie so near to 0 or 1.
SHARPEST, BEYOND, CROWDED = 1e-8, 0.01, 0.02
# A largest bar this many times the median one asks for a log scale.
DWARFED = 25.0
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
        """Lowest and highest score of the log-odds axis."""
        edges, total = self.odds.edges, np.cumsum(self.odds.counts)
        first = int(np.searchsorted(total, BEYOND * total[-1]))
        last = int(np.searchsorted(total, (1 - BEYOND) * total[-1]))
        low, high = max(float(edges[first]), SHARPEST), min(float(edges[last + 1]), 1 - SHARPEST)
        return min(low, 0.4), max(high, 0.6)

    @property
    def heights(self) -> tuple[float, float]:
        """Lowest and highest frequency beside it: those that so many rows can tell from 0 and 1."""
        (low, high), least = self.ends, min(1 / (3 * max(self.curve.n, 1.0)), 0.4)
        return max(low, least), min(high, 1 - least)

    @property
    def crowded(self) -> bool:
        """Whether most scores lie at the ends of the even axis."""
        edges, counts = self.odds.edges, self.odds.counts
        outside = (edges[1:] <= CROWDED) | (edges[:-1] >= 1 - CROWDED)
        return float(counts[outside].sum()) > 0.5 * float(counts.sum())

    def svg(self, name: str, *, odds: bool, paper: bool = False) -> Markup:
        """Draw it on one of the two axes; on paper of its own where the page may be dark."""
        low, high = self.ends if odds else (0.0, 1.0)
        x = Axis(LEFT, SIDE, low, high, odds)
        y = Axis(TOP + SIDE, -SIDE, *(self.heights if odds else (0.0, 1.0)), odds)
        within = (self.curve.score >= low) & (self.curve.score <= high)
        shown = replace(self.curve, value=np.where(within, self.curve.value, np.nan))
        histogram = (self.odds.edges, self.odds.counts) if odds else self.curve.histogram
        parts = [
            *([tag("rect", width=WIDTH, height=HEIGHT, fill="#fff")] if paper else []),
            *_frame(x, y, self.axis_names),
            *_counts(x, *histogram),
            *_line(shown, x, y),
            *_bins(self.odds.diagram if odds else self.diagram, x, y),
            tag("line", class_="cross", x1=0, x2=0, y1=TOP, y2=FOOT, stroke=INK, visibility="hidden"),
            tag("circle", class_="spot", cx=0, cy=0, r=5, fill=INK, visibility="hidden"),
        ]
        return drawing(WIDTH, HEIGHT, self.title, self.described, name, parts)


def small(curve: ReliabilityCurve, title: str, name: str) -> Markup:
    """Draw a panel of a few square centimetres: band, curve and diagonal."""
    side, edge = 128.0, 4.0
    x, y = Axis(edge, side), Axis(edge + side, -side)
    parts = [
        tag("rect", x=edge, y=edge, width=side, height=side, fill="none", stroke=FAINT, class_="box"),
        _diagonal(edge, edge + side, edge + side, edge),
        *_line(curve, x, y, 1.5),
    ]
    words = f"Frequency against score, both from 0 to 1, for {title}."
    return drawing(2 * edge + side, 2 * edge + side, title, words, name, parts)


def bar(estimate: Estimate, top: float, *, strong: bool = False) -> Markup:
    """Draw an interval on a line from 0 to `top`, for a cell of a table; the numbers stand beside it."""
    x, width = Axis(4.0, 142.0, 0.0, max(top, 1e-9)), 3 if strong else 2
    values = (estimate.low, estimate.high, estimate.value, estimate.null.mean)
    a, b, at, usual = (float(x(min(value, top))) for value in values)
    return tag(
        "svg",
        tag("line", x1=4.0, x2=146.0, y1=9.0, y2=9.0, stroke=FAINT, class_="grid"),
        tag("line", x1=usual, x2=usual, y1=2.0, y2=16.0, stroke=GREY, class_="null", stroke_dasharray="2"),
        tag("line", x1=a, x2=b, y1=9.0, y2=9.0, stroke=BLUE, class_="curve", stroke_width=width),
        tag("circle", cx=at, cy=9.0, r=width + 1.5, fill=BLUE, class_="spot-blue"),
        xmlns="http://www.w3.org/2000/svg",
        viewBox="0 0 150 18",
        width=150,
        height=18,
        aria_hidden="true",
        class_="bar",
    )


def _line(curve: ReliabilityCurve, x: Axis, y: Axis, width: float = 2.5) -> list[Markup]:
    """Return the curve with its band, dashed where few rows speak; or a point with a bar for each score."""
    if curve.discrete:
        return _each_score(curve, x, y, width)
    curve = curve._thinned()
    firm = curve.n_eff >= REPORT.assessed_rows
    # A node on either side, so that dashed and solid segments meet.
    near = firm | np.roll(firm, 1) | np.roll(firm, -1)
    parts = []
    if curve.low is not None and curve.high is not None:
        known = np.isfinite(curve.value)
        low, high = (np.where(known, end, np.nan) for end in (curve.low, curve.high))
        outline = area(x(curve.score), y(low), y(high))
        parts.append(tag("path", d=outline, class_="band", fill=BLUE, fill_opacity="0.2"))
    style: dict[str, Any] = {"class_": "curve", "fill": "none", "stroke": BLUE}
    for held, more in (
        (~firm, {"stroke_width": 1, "stroke_dasharray": "3 3"}),
        (near & firm, {"stroke_width": width}),
    ):
        line = path(x(curve.score), y(np.where(held, curve.value, np.nan)))
        if line:
            parts.append(tag("path", d=line, **style, **more))
    return parts


def _each_score(curve: ReliabilityCurve, x: Axis, y: Axis, width: float) -> list[Markup]:
    parts = []
    low, high = (curve.value if end is None else end for end in (curve.low, curve.high))
    columns = (curve.score, curve.value, low, high, curve.n_eff)
    for score, frequency, a, b, rows in zip(*columns, strict=True):
        if np.isnan(frequency):
            continue
        at, dashes = float(x(score)), {} if rows >= REPORT.assessed_rows else {"stroke_dasharray": "3 3"}
        words = f"score {score:.4g}: {with_interval(frequency, a, b)}, {_size(rows, curve.n)}"
        ends = {"x1": at, "x2": at, "y1": float(y(a)), "y2": float(y(b))}
        bar = tag("line", **ends, stroke=BLUE, stroke_width=width, class_="curve", **dashes)
        dot = tag("circle", cx=at, cy=float(y(frequency)), r=1.6 * width, fill=BLUE, class_="spot-blue")
        parts.append(tag("g", tag("title", words), bar, dot))
    return parts


def _bins(diagram: ReliabilityDiagram, x: Axis, y: Axis) -> list[Markup]:
    parts = []
    most = float(np.max(diagram.count, initial=1.0))
    columns = (diagram.score, diagram.frequency, diagram.low, diagram.high, diagram.count)
    for score, frequency, low, high, rows in zip(*columns, strict=True):
        if not rows > 0:
            continue
        at, size = float(x(score)), 2.0 + 4 * float(np.sqrt(np.sqrt(rows / most)))
        ends = {"y1": float(y(low)), "y2": float(y(high))}
        words = f"bin at {score:.4g}: {with_interval(frequency, low, high)}, {_size(rows, diagram.n)}"
        stroke = tag("line", x1=at, x2=at, **ends, stroke=ORANGE, class_="bin-bar")
        dot = tag("circle", cx=at, cy=float(y(frequency)), r=size, fill=ORANGE, stroke="#fff", class_="bin")
        parts.append(tag("g", tag("title", words), stroke, dot))
    return parts


def _size(rows: float, n: float) -> str:
    """Return the rows behind a point, or their effective number where that of all rows is one."""
    return counted(round(rows), "row") if size_name(n) == "rows" else f"effective sample size {rows:,.0f}"


def _counts(x: Axis, edges: Any, counts: Any) -> list[Markup]:
    top = float(np.max(counts, initial=0.0))
    if not top > 0:
        return []
    log = bool(top > DWARFED * float(np.median(counts[counts > 0])))
    height = STRIP * (np.log1p(counts) / np.log1p(top) if log else counts / top)
    left, right = x(edges[:-1]), x(edges[1:])
    parts = [
        tag("rect", x=a, y=FOOT - h, width=b - a, height=h, fill=GREY, class_="hist")
        for a, b, h in zip(left.tolist(), right.tolist(), height.tolist(), strict=True)
        if h > 0 and b > a
    ]
    middle = FOOT - STRIP / 2
    turned = {"text_anchor": "middle", "transform": f"rotate(-90 12 {middle:g})"}
    size = size_name(float(np.sum(counts))).replace("sample size", "n")  # there is little space
    parts.append(text(f"{size}, log" if log else size, 12, middle, 13, **turned))
    most = f"{top:,.0f}"
    parts.append(text(most, LEFT - 7, FOOT - STRIP + 9, 11, text_anchor="end"))
    return parts


def _frame(x: Axis, y: Axis, names: tuple[str, str]) -> list[Markup]:
    """Return the grid, ticks, the diagonal and the names of the axes."""
    right = LEFT + SIDE
    parts: list[Markup] = []
    for score, words in x.ticks:
        at = float(x(score))
        parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=FOOT, stroke=FAINT, class_="grid"))
        parts.append(text(words, at, FOOT + 18, 12, text_anchor="middle"))
    for frequency, words in y.ticks:
        up = float(y(frequency))
        parts.append(tag("line", x1=LEFT, x2=right, y1=up, y2=up, stroke=FAINT, class_="grid"))
        parts.append(text(words, LEFT - 7, up + 4, 12, text_anchor="end"))
    first, last = max(x.low, y.low), min(x.high, y.high)
    turned = {"text_anchor": "middle", "transform": f"rotate(-90 12 {TOP + SIDE / 2:g})"}
    parts += [
        _diagonal(*(float(v) for v in (x(first), y(first), x(last), y(last)))),
        tag("rect", x=LEFT, y=TOP, width=SIDE, height=SIDE, fill="none", stroke=GREY, class_="box"),
        tag("line", x1=LEFT, x2=right, y1=FOOT, y2=FOOT, stroke=GREY, class_="box"),
        text(names[0], LEFT + SIDE / 2, FOOT + 40, 14, text_anchor="middle", fill=INK),
        text(names[1], 12, TOP + SIDE / 2, 14, fill=INK, **turned),
    ]
    return parts


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
            cell.append(tag("rect", **place, fill="none", stroke=FAINT, class_="grid"))
            if k != j and classes <= NUMBERED:
                text_style: dict[str, Any] = {"fill": GREY}
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
