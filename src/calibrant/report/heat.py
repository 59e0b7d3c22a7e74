"""A heat map of whole rows: which classes take probability from which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.assessment.text import points, short
from calibrant.assessment.where import Pair
from calibrant.posterior.softmax.where import Where
from calibrant.report.svg import BLUE, FAINT, GREY, INK, ORANGE, drawing, tag, text

# The heat map: room for names at the left and above, the width of all cells, and their deepest shade.
NAMES, ABOVE, CELLS, DEEPEST = 112.0, 84.0, 320.0, 0.55
# Classes up to which cells hold numbers.
NUMBERED = 8


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
