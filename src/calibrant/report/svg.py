"""Small pieces of SVG: elements whose text is escaped, axes, paths.

Colours are presentation attributes, which a strict content-security policy leaves alone; the page's
style sheet changes them by class where it may.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from calibrant.inputs.house_style import SOFT, log_odds_ticks
from calibrant.score_data import Array

FONT = "system-ui, sans-serif"
# Least distance of ticks, and largest distance of a point from the line that replaces it.
TICK_SPACING, STRAIGHT = 48, 0.4


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """Make one element; children and attributes are escaped unless they are markup already.

    >>> tag("text", "<b>", x=1.25, class_="tick")
    Markup('<text x="1.25" class="tick">&lt;b&gt;</text>')
    """
    written = {
        key.rstrip("_").replace("_", "-"): _short(value) if isinstance(value, float) else escape(value)
        for key, value in attributes.items()
        if value is not None
    }
    given = "".join([f' {key}="{value}"' for key, value in written.items()])
    # Joined as plain text, which is quicker: every part is escaped by now.
    inside = "".join([escape(child) for child in children])
    return Markup(f"<{name}{given}>{inside}</{name}>" if children else f"<{name}{given}/>")


def _short(value: float, decimals: int = 2) -> str:
    return f"{value:.{decimals}f}".rstrip("0").rstrip(".")


def text(words: Any, x: float, y: float, size: int = 12, *, fill: str = SOFT, **more: Any) -> Markup:
    """Make a line of text."""
    return tag("text", words, x=float(x), y=float(y), font_size=size, fill=fill, **more)


def path(x: Array, y: Array) -> str:
    """Return a path through points, fewer where they lie on a line; it breaks where there is none.

    >>> path(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), np.array([0.0, 1.0, 2.0, np.nan, 5.0]))
    'M0 0L2 2'
    """
    parts = (_points(x[run], y[run]) for run in runs(np.isfinite(x) & np.isfinite(y)))
    return "".join([f"M{points}" for points in parts if "L" in points])


def area(x: Array, low: Array, high: Array, straight: float = STRAIGHT) -> str:
    """Return the outline between two curves, where both are known."""
    known = [run for run in runs(np.isfinite(low) & np.isfinite(high)) if run.stop - run.start > 1]
    return "".join(
        [
            f"M{_points(x[run], high[run], 1, straight)}L{_points(x[run], low[run], -1, straight)}Z"
            for run in known
        ]
    )


def _points(x: Array, y: Array, step: int = 1, straight: float = STRAIGHT) -> str:
    """Return points in one direction, without those that the line through others nearly meets."""
    kept, spans = {0, len(x) - 1}, [(0, len(x) - 1)]
    while spans:
        a, b = spans.pop()
        distance = np.abs(y[a : b + 1] - np.interp(x[a : b + 1], x[[a, b]], y[[a, b]]))
        middle = a + int(distance.argmax())
        if distance.max() > straight and a < middle < b:
            kept.add(middle)
            spans += [(a, middle), (middle, b)]
    return "L".join([f"{_short(x[i], 1)} {_short(y[i], 1)}" for i in sorted(kept)[::step]])


def runs(mask: Array) -> Iterable[slice]:
    """Return the runs of true entries.

    >>> list(runs(np.array([True, True, False, True])))
    [slice(0, 2, None), slice(3, 4, None)]
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


@dataclass(frozen=True)
class Axis:
    """From scores to positions: evenly, or by their log odds.

    >>> [words for _, words in Axis(0.0, 300.0, 0.0, 7.3).ticks]
    ['0', '2', '4', '6']

    Parameters
    ----------
    start, length : float
        Where the lowest score lies, and how far from it the highest.
    low, high : float
        The scores at both ends.
    odds : bool
        Whether log odds are spaced evenly; scores beyond the ends then lie at them.
    """

    start: float
    length: float
    low: float = 0.0
    high: float = 1.0
    odds: bool = False

    def __call__(self, scores: Any) -> Array:
        """Return positions of scores."""
        s = np.asarray(scores, dtype=np.float64)
        if self.odds:
            with np.errstate(invalid="ignore"):
                s = np.clip(s, self.low, self.high)
            from scipy.special import logit

            low, high = logit(self.low), logit(self.high)
            return np.asarray(self.start + self.length * (logit(s) - low) / (high - low))
        return np.asarray(self.start + self.length * (s - self.low) / (self.high - self.low))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Round values within the ends, as many as fit, and how to write them."""
        most = max(int(abs(self.length) / TICK_SPACING), 5)
        if self.odds:
            return list(log_odds_ticks(self.low, self.high, most).items())
        least = (self.high - self.low) / min(most, 6)
        power = 10.0 ** np.floor(np.log10(least))
        step = next(power * k for k in (1, 2, 5, 10) if power * k >= least * (1 - 1e-9))
        steps = np.arange(np.ceil(self.low / step - 1e-9), np.floor(self.high / step + 1e-9) + 1)
        return [(value, f"{value:.6g}") for value in (steps * step + 0.0).tolist()]


def drawing(
    width: float, height: float, title: str, described: str, name: str, children: Sequence[Any], **more: Any
) -> Markup:
    """Make a picture with a title and a description for those who cannot see it."""
    return tag(
        "svg",
        tag("title", title, id=f"{name}-title"),
        tag("desc", described, id=f"{name}-desc"),
        *children,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
        id=name,
        font_family=FONT,
        **{"class_": "drawing", **more},
    )
