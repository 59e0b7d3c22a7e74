"""Plots of all classes: a small panel for each, or a heat map of the probability transfer between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.assessment import Assessment
from calibrant.assessment.probability_transfer import pairs
from calibrant.assessment.text import sure
from calibrant.curves import ByClass
from calibrant.inputs import InputError
from calibrant.plot.canvas import (
    BINS,
    CORNERS,
    CURVE,
    GREY,
    KEY,
    axis_labels,
    find_corner,
    fitted,
    handles,
    inches,
    new,
    space,
    words,
)
from calibrant.plot.reliability import draw, strip
from calibrant.plot.scores import mirrored

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from calibrant.curves import ReliabilityCurve, ReliabilityDiagram
    from calibrant.curves.histogram import ScoreHistogram
NUMBERED = 0.2  # inches; narrower cells hold no numbers


def small_multiples(
    results: Mapping[Any, ReliabilityCurve | ReliabilityDiagram | ScoreHistogram] | Assessment,
    axes: Any = None,
    *,
    histogram: bool = True,
) -> NDArray[np.object_]:
    """Draw one panel per class, all on the same axes: a square with its error in a corner, or scores.

    Parameters
    ----------
    results : mapping of class to ReliabilityCurve, ReliabilityDiagram or ScoreHistogram; or Assessment
        What to draw, in this order; histograms all or none. Of an assessment the curve of each class.
    axes : array of Axes, optional
        Where to draw, one per result; any more are switched off. One new figure with a legend otherwise.
    histogram : bool
        Whether to put a strip with the distribution of the scores under each square.

    Returns
    -------
    array of Axes
        The main panels, in the order of `results`.
    """
    if isinstance(results, Assessment):
        results = next((curves for curves in results.curves.values() if isinstance(curves, ByClass)), {})
    count, peers = len(results), list(results.values())
    if not 0 < count <= (count if axes is None else np.size(axes)):
        raise ValueError(f"axes must hold one Axes per result, and results at least one, got {count} results")
    scores = hasattr(peers[0], "positive")
    ratio = 0.8 if scores else 1.2 if histogram else 0.95
    grid = np.asarray(new(ratio, count) if axes is None else axes, dtype=object)
    panels, columns = grid.ravel(), grid.shape[-1] if grid.ndim else 1
    for i, (name, result) in enumerate(results.items()):
        ax, first = panels[i], i % columns == 0
        lowest = mirrored(ax, result, peers) if scores else _square(ax, result, peers, histogram)
        ax.set_title(fitted(name, inches(ax), "medium"), size="medium")
        ax.set_ylabel(ax.get_ylabel() if first else "")
        ax.tick_params(labelleft=first)
        lowest.yaxis.label.set_visible(first)
        bottom = i // columns == (count - 1) // columns
        lowest.set_xlabel(axis_labels(result)[0].split()[0] if bottom else "")
        lowest.tick_params(labelbottom=i + columns >= count)
    for panel in panels[count:]:
        panel.set_axis_off()
    if axes is None:
        size, named = f"n = {result.n:,.0f}", "binned ECE" if hasattr(result, "edges") else "ECE"
        key = {"title": size if scores else f"in the corners: {named}; {size}", "ncols": 2, **KEY}
        marks, labels = handles(ax)
        labels = ["of the class", "of another"] if scores else labels
        ax.figure.legend(marks, labels, loc="outside lower center", **key)
    return panels[:count]


def _square(ax: Any, result: Any, peers: list[Any], histogram: bool) -> Any:
    """Draw one class, and return the panel that has the x axis."""
    from matplotlib.patheffects import withStroke

    draw(result, ax, False, False, BINS if hasattr(result, "edges") else CURVE, None)
    lowest = strip(ax, result, GREY, peers, bare=True) if histogram else ax
    ax.set(xlabel="", ylabel=ax.get_ylabel().split()[0])
    error = words(result)[1][0].removeprefix("binned ")
    error = error.removeprefix("ECE ") if inches(ax) < 1 else error
    note = ax.text(0.05, 0.95, error, transform=ax.transAxes, va="top", size="small")
    # Where bars reach into both corners, a rim keeps the number legible.
    note.set_path_effects([withStroke(linewidth=2, foreground=ax.get_facecolor())])
    if find_corner(ax, note, CORNERS)[0] == "lower right":
        note.set(x=0.95, y=0.05, ha="right", va="bottom")
    return lowest


def taken(assessment: Assessment, ax: Axes | None = None) -> Axes:
    """Draw which classes take probability from which, as a heat map.

    The class of each row takes from that of each column where a cell is orange, and gives where it is blue;
    numbers are percent per row, bold where calibration is rejected and the interval excludes 0.

    Parameters
    ----------
    assessment : Assessment
        Of the canonical notion, with 3 to 12 classes.
    ax : Axes, optional
        Where to draw; one new figure otherwise.

    Returns
    -------
    Axes
    """
    from matplotlib.colors import LinearSegmentedColormap

    if assessment.probability_transfer is None:
        rule = 'be of notion="canonical" with 3 to 12 classes'
        got = f"{assessment.notion}, {len(assessment.classes)} classes"
        raise InputError("assessment", rule, got=got)
    where, names = assessment.probability_transfer, assessment.classes
    ax = new(0.9)[0, 0] if ax is None else ax
    most = max(float(np.abs(where.taken).max()), 1e-9)
    shades = LinearSegmentedColormap.from_list("taken", ["#4f7fbf", "#ffffff", "#e08a45"])
    ax.imshow(where.taken, cmap=shades, vmin=-most, vmax=most)
    ticks = range(len(names))
    wide = 0.25 * space(ax)
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
