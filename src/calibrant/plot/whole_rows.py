"""Whole rows of scores: who takes probability from whom, and the simplex of three classes with arrows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.assessment.text import sure
from calibrant.assessment.where import pairs
from calibrant.inputs import InputError
from calibrant.plot.canvas import CURVE, GREY, fitted, inches, new, room

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.assessment import Assessment
    from calibrant.posterior.softmax.where import Where

NUMBERED = 0.2  # inches; narrower cells hold no numbers
LEAST = 5e-3  # share of rows that an arrow is drawn for
MOST = 60.0  # area of the dot with most rows, in square points
HEIGHT = float(np.sqrt(0.75))  # of a triangle of side 1


def taken(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw which classes take probability from which, as a heat map.

    The class of each row takes from that of each column where a cell is orange, and gives where it is blue;
    numbers are percent per row, bold where calibration is rejected and the interval excludes 0.

    Parameters
    ----------
    assessment : Assessment
        Of the multiclass notion, with 3 to 12 classes.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    from matplotlib.colors import LinearSegmentedColormap

    where, names = _where(assessment), assessment.classes
    ax = new(0.9)[0, 0] if ax is None else ax
    most = max(float(np.abs(where.taken).max()), 1e-9)
    shades = LinearSegmentedColormap.from_list("taken", ["#4f7fbf", "#ffffff", "#e08a45"])
    ax.imshow(where.taken, cmap=shades, vmin=-most, vmax=most)
    ticks = range(len(names))
    wide = 0.25 * room(ax)
    labels = [fitted(name, wide, "medium") for name in names]
    ax.set_xticks(ticks, labels, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(ticks, labels)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set(xlabel="takes from", ylabel="class")
    ax.xaxis.set_label_position("top")
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="0.85", linewidth=0.8)
    ax.tick_params(which="minor", length=0)
    cell = inches(ax) / len(names)
    if cell >= NUMBERED:
        size = min(24 * cell, 9)
        rejected = sure(assessment.estimate, assessment.level)
        known = [pair for pair in pairs(where, assessment.level) if pair.low > 0 and rejected]
        certain = {frozenset(pair[:2]) for pair in known}
        for (row, column), value in np.ndenumerate(where.taken):
            if row != column:
                style: dict[str, Any] = {"color": "0.35"}
                if frozenset((row, column)) in certain:
                    style = {"weight": "bold"}
                shown = f"{100 * value:.1f}".replace("-", "−") if abs(value) >= 5e-4 else "0"
                ax.text(column, row, shown, ha="center", va="center", size=size, **style)
    return ax


def simplex(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw the simplex of three classes, with arrows from scores to the frequencies of the classes there.

    Each arrow begins at the mean scores of rows near each other, at a dot that is larger the more rows there
    are.

    Parameters
    ----------
    assessment : Assessment
        Of the multiclass notion, with three classes.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    where, names = _where(assessment), assessment.classes
    if len(names) != 3:
        raise InputError(
            "assessment", "be of three classes, whose simplex is flat", got=f"{len(names)} classes"
        )
    ax = new(0.95)[0, 0] if ax is None else ax
    for share in (0.2, 0.4, 0.6, 0.8):
        for k in range(3):
            line = np.zeros((2, 3))
            line[:, k], line[0, k - 1], line[1, k - 2] = share, 1 - share, 1 - share
            ax.plot(*_at(line), color="0.9", linewidth=0.8, zorder=0)
    ax.plot(*_at(np.eye(3)[[0, 1, 2, 0]]), color=GREY, linewidth=1, zorder=1)
    for k, (x, y, side) in enumerate(((0, -0.03, "top"), (1, -0.03, "top"), (0.5, HEIGHT + 0.03, "bottom"))):
        ax.text(x, y, fitted(names[k], 0.4 * room(ax), "medium"), ha="center", va=side)
    kept = where.weight >= LEAST
    start, end, weight = where.start[kept], where.end[kept], where.weight[kept]
    ax.scatter(*_at(start), s=MOST * weight / weight.max(initial=LEAST), color=GREY, linewidth=0, zorder=2)
    for tail, head in zip(np.transpose(_at(start)), np.transpose(_at(end)), strict=True):
        if np.hypot(*(head - tail)) > 1e-3:
            look = {"arrowstyle": "-|>", "color": CURVE, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
            ax.annotate("", head, tail, arrowprops=look, zorder=3)
    ax.set(aspect="equal", xlim=(-0.1, 1.1), ylim=(-0.12, HEIGHT + 0.12))
    ax.set_axis_off()
    return ax


def _at(rows: Any) -> tuple[Any, Any]:
    """Return where rows of three probabilities lie in a triangle of side 1."""
    return rows[:, 1] + rows[:, 2] / 2, HEIGHT * rows[:, 2]


def _where(assessment: Assessment) -> Where:
    """Return where the gap lies, or say what has to be assessed for it."""
    if assessment.where is None:
        rule = 'be of notion="multiclass" with 3 to 12 classes'
        got = f"{assessment.notion}, {len(assessment.classes)} classes"
        raise InputError("assessment", rule, got=got)
    return assessment.where
