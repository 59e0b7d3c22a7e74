"""Where the scores lie: one outcome upwards, the other downwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.curves.appearance import dwarfed, outcome_names
from calibrant.inputs import house_style as house
from calibrant.inputs.wording import count
from calibrant.plot import canvas
from calibrant.plot.canvas import Size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.curves.histogram import ScoreHistogram

TOPS = "_calibrant_tops"  # the attribute of a panel with the largest counts drawn so far
UP: dict[str, Any] = {"facecolor": house.SOFT, "edgecolor": house.SOFT, "linewidth": 0.6}
DOWN: dict[str, Any] = {"facecolor": house.TINT, "edgecolor": house.GREY, "linewidth": 0.8}


def score_histograms(result: ScoreHistogram, ax: Axes | None = None, *, figsize: Size = None) -> Axes:
    """Draw the scores of the rows with the outcome upwards, and of those without it downwards.

    Both sides have one scale, which is logarithmic where a few cells would dwarf the others.

    Parameters
    ----------
    result : ScoreHistogram
        What to draw.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size in inches.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.score_histogram : Computes the histogram.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.score_histograms(calibrant.score_histogram(outcome, score))
    """
    fresh, ax = canvas.panel(ax, 0.75, figsize)
    by_class(ax, result)
    ax.set_xlabel(canvas.axis_labels(result)[0])
    canvas.legend(ax, [], (*canvas.CORNERS, "lower left", "upper right"), fresh)
    return ax


def by_class(ax: Any, result: Any, peers: Sequence[Any] = ()) -> Any:
    """Draw one histogram on the scale that all peers ask for."""
    ax.set_xlim(canvas.LIMITS)
    first, *others = [(each.edges, each.positive, each.negative) for each in (result, *peers)]
    sizes = zip(outcomes(result), first[1:], strict=True)
    mirrored(ax, first, others, labels=[f"{name}, n = {count(round(rows.sum()))}" for name, rows in sizes])
    canvas.unit_ticks(ax, ax.xaxis)
    canvas.shade(ax, result)
    return ax


def mirrored(ax: Any, cells: Any, peers: Sequence[Any] = (), color: str | None = None,
             labels: Sequence[str | None] = (None, None)) -> None:  # fmt: skip
    """Draw counts upwards and downwards: bars between edges, or a stem at each of as many scores."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

    x, *counts = cells
    x = np.clip(x, *ax.get_xlim()) if ax.get_xscale() == "logit" else x
    tops = [max(float(peer[i].max(initial=0.0)) for peer in (cells, *peers)) for i in (1, 2)]
    up, down = np.maximum(tops, getattr(ax, TOPS, (0.0, 0.0)))
    setattr(ax, TOPS, (up, down))
    log = ax.get_yscale() == "symlog" or any(dwarfed(*peer[1:]) for peer in (cells, *peers))
    for sign, rows, style, label in zip((1, -1), counts, (UP, DOWN), labels, strict=True):
        if len(x) == len(rows):
            ink = color or (UP["facecolor"] if sign > 0 else DOWN["edgecolor"])
            ax.vlines(x, 0, sign * rows, ink, linewidth=3, zorder=2, label=label)
        else:
            fill_style = style if color is None else {"facecolor": "none", "edgecolor": color, "linewidth": 1}
            ax.stairs(sign * rows, x, baseline=0, fill=True, zorder=2, label=label, **fill_style)
    ax.axhline(0, color=house.INK, linewidth=0.8, zorder=3)
    if log:
        least = min(float(rows[rows > 0].min(initial=1.0)) for peer in (cells, *peers) for rows in peer[1:])
        ax.set_yscale("symlog", linthresh=least, linscale=0.6)
        ax.set_ylim(-2.0 * max(down, least), 2.0 * max(up, least))
        ax.yaxis.set_major_locator(FixedLocator(_decades(least, up, down, _ticks(ax))))
    else:
        ax.set_ylim(-1.12 * max(down, 0.08 * up), 1.12 * max(up, 0.08 * down))
        ax.yaxis.set_major_locator(MaxNLocator(2 * _ticks(ax), steps=[1, 2, 5, 10]))
    ax.minorticks_off()
    ax.yaxis.set_major_formatter(FuncFormatter(canvas.counted))
    ax.set_ylabel("rows, log" if log else "rows")


def outcomes(result: Any) -> tuple[str, str]:
    """Return the names of the two outcomes."""
    positive, negative = (canvas.plain(name) for name in outcome_names(result))
    return positive, negative


def _ticks(ax: Any) -> int:
    """Return ticks on each side that fit."""
    canvas.settle(ax)
    height = ax.get_window_extent().height / ax.figure.dpi
    return 1 if height < 0.8 else 2 if min(height, canvas.inches(ax)) < 1.5 else 3


def _decades(least: float, up: float, down: float, most: int) -> list[float]:
    """Return powers of ten on both sides, no more than `most` on each."""
    first, last = np.ceil(np.log10(least) - 1e-9), np.floor(np.log10(max(up, down)) + 1e-9)
    tens = 10.0 ** np.arange(last, first - 0.5, -np.ceil((last - first + 1) / most))
    return [*(-tens[tens <= 2 * down]), *tens[tens <= 2 * up]]
