"""Whole rows of scores: which classes take probability from which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.assessment.text import sure
from calibrant.assessment.where import pairs
from calibrant.inputs import InputError
from calibrant.plot.canvas import fitted, inches, new, room

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.assessment import Assessment

NUMBERED = 0.2  # inches; narrower cells hold no numbers


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

    if assessment.where is None:
        rule = 'be of notion="multiclass" with 3 to 12 classes'
        got = f"{assessment.notion}, {len(assessment.classes)} classes"
        raise InputError("assessment", rule, got=got)
    where, names = assessment.where, assessment.classes
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
