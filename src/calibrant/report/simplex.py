"""Pictures of whole rows: who takes from whom, and for three classes the simplex with arrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.assessment.text import points, short
from calibrant.assessment.where import Pair
from calibrant.evidence import Array
from calibrant.posterior.softmax.where import Where
from calibrant.report.svg import BLUE, FAINT, GREY, INK, ORANGE, drawing, path, tag, text

# The heat map: room for names at the left and above, the width of all cells, and their deepest shade.
NAMES, ABOVE, CELLS, DEEPEST = 112.0, 84.0, 320.0, 0.55
# Classes up to which cells hold numbers.
NUMBERED = 8
# The triangle: its margins and side, and the least share of rows that an arrow is drawn for.
MARGIN, SIDE, LEAST = 46.0, 400.0, 5e-3
ARROW = 7.0


def heat(where: Where, names: Sequence[str], pairs: Sequence[Pair]) -> Markup:
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
                look: dict[str, Any] = {"fill": GREY}
                if known:
                    look = {"fill": INK, "class_": "known", "font_weight": "bold"}
                centre = place["x"] + size / 2, place["y"] + size / 2 + 5
                cell.append(text(signed(value), *centre, 13, text_anchor="middle", **look))
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


def corners(rows: Array) -> tuple[Array, Array]:
    """Return where rows of three probabilities lie in a triangle of side 1, upwards."""
    return rows[:, 1] + rows[:, 2] / 2, rows[:, 2] * np.sqrt(0.75)


def triangle(where: Where, names: Sequence[str]) -> Markup:
    """Draw the simplex of three classes with arrows from mean scores to frequencies."""
    height = SIDE * float(np.sqrt(0.75))
    top = 30.0

    def at(rows: Array) -> tuple[Array, Array]:
        x, y = corners(rows)
        return MARGIN + SIDE * x, top + height - SIDE * y

    ends = np.eye(3)
    parts = []
    for share in (0.2, 0.4, 0.6, 0.8):
        for k in range(3):
            line = np.zeros((2, 3))
            line[:, k], line[0, k - 1], line[1, k - 2] = share, 1 - share, 1 - share
            parts.append(tag("path", d=path(*at(line)), fill="none", stroke=FAINT, class_="grid"))
    parts.append(tag("path", d=path(*at(ends), closed=True), fill="none", stroke=GREY, class_="box"))
    x, y = at(ends)
    for k, (anchor, down) in enumerate((("middle", 24), ("middle", 24), ("middle", -12))):
        parts.append(text(short(names[k], 18), x[k], y[k] + down, 14, text_anchor=anchor, fill=INK))
    shown = np.flatnonzero(where.weight >= LEAST)
    largest = float(where.weight.max(initial=LEAST))
    tail, head = at(where.start), at(where.end)
    for k in shown[np.argsort(where.weight[shown])]:
        start, end = (np.array([float(xy[k]) for xy in side]) for side in (tail, head))
        words = " → ".join(", ".join(f"{v:.2f}" for v in rows[k]) for rows in (where.start, where.end))
        words = f"{', '.join(names)}: {words}; {100 * where.weight[k]:.1f} % of the rows"
        size = 1.5 + 4 * float(np.sqrt(where.weight[k] / largest))
        dot = tag("circle", cx=start[0], cy=start[1], r=size, fill=GREY, class_="hist")
        parts.append(tag("g", tag("title", words), dot, *_arrow(start, end)))
    described = (
        "A triangle whose corners are the three classes. Each arrow leads from the mean scores of rows near "
        "each other to the frequencies of the classes among them."
    )
    width, height = SIDE + 2 * MARGIN, top + height + 34
    return drawing(width, height, "From scores to frequencies on the simplex", described, "simplex", parts)


def _arrow(start: Array, end: Array) -> list[Markup]:
    """Return a line with a head; of a short one the head shrinks with it."""
    along = end - start
    length = float(np.hypot(*along))
    if length < 0.5:
        return []
    along = along / length
    size = min(ARROW, 0.6 * length)
    across = np.array([-along[1], along[0]])
    back = end - size * along
    wings = np.stack([end, back + 0.5 * size * across, back - 0.5 * size * across])
    line = {"x1": start[0], "y1": start[1], "x2": back[0], "y2": back[1]}
    return [
        tag("line", **line, stroke=BLUE, class_="curve", stroke_width=2),
        tag("path", d=path(*wings.T, closed=True), fill=BLUE, class_="spot-blue"),
    ]
