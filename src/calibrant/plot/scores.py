"""Where the scores lie: one outcome upwards, the other downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.plot.canvas import (
    BINS,
    CORNERS,
    CURVE,
    DWARFED,
    LIMITS,
    axis_labels,
    counted,
    inches,
    legend,
    new,
    plain,
    reading_of,
    shade,
    unit_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.curves.histogram import ScoreHistogram

UP: dict[str, Any] = {"facecolor": CURVE, "edgecolor": CURVE, "linewidth": 0.6}
DOWN: dict[str, Any] = {"facecolor": "#f6d9c0", "edgecolor": BINS, "linewidth": 0.8}


def score_histograms(result: ScoreHistogram, ax: Axes | None = None) -> Axes:
    """Draw the scores of the rows with the outcome upwards, and of those without it downwards.

    Both sides have one scale, which is logarithmic where a few cells would dwarf the others.

    Parameters
    ----------
    result : ScoreHistogram
        What to draw.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    fresh, ax = ax is None, new(0.75)[0, 0] if ax is None else ax
    mirrored(ax, result)
    ax.set_xlabel(axis_labels(result)[0])
    legend(ax, [], (*CORNERS, "lower left", "upper right"), fresh)
    return ax


def mirrored(ax: Any, result: Any, peers: Sequence[Any] = ()) -> Any:
    """Draw both outcomes, on the scale that all peers ask for."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    sides = [(peer.positive, peer.negative) for peer in (result, *peers)]
    up, down = (max(float(side[i].max(initial=0.0)) for side in sides) for i in (0, 1))
    cells = np.concatenate([counts[counts > 0] for side in sides for counts in side])
    log = any(_dwarfed(*side) for side in sides)
    for counts, style, name in zip(
        (result.positive, -result.negative), (UP, DOWN), outcomes(result), strict=True
    ):
        held = f"{name}, n = {abs(counts.sum()):,.0f}"
        ax.stairs(counts, result.edges, baseline=0, fill=True, zorder=2, label=held, **style)
    ax.axhline(0, color="black", linewidth=0.8, zorder=3)
    if log:
        least = float(cells.min())
        ax.set_yscale("symlog", linthresh=least, linscale=0.6)
        ax.set_ylim(-2.0 * max(down, least), 2.0 * max(up, least))
        ax.yaxis.set_major_locator(FixedLocator(_decades(least, up, down, _ticks(ax))))
    else:
        ax.set_ylim(-1.12 * max(down, 0.08 * up), 1.12 * max(up, 0.08 * down))
        ax.yaxis.set_major_locator(MaxNLocator(2 * _ticks(ax), steps=[1, 2, 5, 10]))
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(FuncFormatter(counted))
    ax.set(xlim=LIMITS, ylabel="log count" if log else "count")
    unit_ticks(ax, ax.xaxis)
    shade(ax, result)
    return ax


def outcomes(result: Any) -> tuple[str, str]:
    """Return the names of the two outcomes."""
    reading = reading_of(result)
    if reading.event:
        return reading.positive, reading.negative
    return ("positive", "negative") if result.label is None else (f"class {plain(result.label, 12)}", "other")


def _dwarfed(positive: Any, negative: Any) -> bool:
    """Whether some cell, or the smaller side as a whole, would be too low to see."""
    cells = np.concatenate([positive, negative])
    most = cells.max(initial=0.0)
    tops = [counts.max() for counts in (positive, negative) if counts.any()]
    return bool(most > DWARFED * np.median(cells[cells > 0])) or (min(tops) * DWARFED < most)


def _ticks(ax: Any) -> int:
    """Return ticks on each side that fit."""
    height = ax.get_window_extent().height / ax.figure.dpi
    return 1 if height < 0.5 else 2 if min(height, inches(ax)) < 1.5 else 3


def _decades(least: float, up: float, down: float, most: int) -> list[float]:
    """Return powers of ten on both sides, no more than `most` on each."""
    first, last = np.ceil(np.log10(least) - 1e-9), np.floor(np.log10(max(up, down)) + 1e-9)
    tens = 10.0 ** np.arange(last, first - 0.5, -np.ceil((last - first + 1) / most))
    return [*(-tens[tens <= 2 * down]), *tens[tens <= 2 * up]]
