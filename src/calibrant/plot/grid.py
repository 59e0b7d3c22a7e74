"""Plots of all classes: a small panel for each, or a heat map of the probability transfer between them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from calibrant.assessment import Assessment
from calibrant.assessment.probability_transfer import pairs
from calibrant.assessment.text import is_rejected
from calibrant.curves import ByClass
from calibrant.inputs import InputError
from calibrant.inputs import house_style as house
from calibrant.plot import canvas
from calibrant.plot.canvas import Size
from calibrant.plot.reliability import Scale, draw, strip
from calibrant.plot.scores import by_class

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from calibrant.curves import ReliabilityCurve, ReliabilityDiagram
    from calibrant.curves.histogram import ScoreHistogram
NUMBERED = 0.2  # inches; narrower cells hold no numbers


Panels: TypeAlias = "NDArray[np.object_]"
Pictures: TypeAlias = "Mapping[Any, ReliabilityCurve | ReliabilityDiagram | ScoreHistogram]"


def small_multiples(results: Pictures | Assessment, axes: Any = None, *, histogram: bool = True,
                    scale: Scale = "linear", most: int = 8, figsize: Size = None) -> Panels:  # fmt: skip
    """Draw one panel per class, all on the same axes: a square with its error in a corner, or scores.

    Parameters
    ----------
    results : mapping of class to ReliabilityCurve, ReliabilityDiagram or ScoreHistogram; or Assessment
        What to draw, in this order; histograms all or none. Of an assessment the curve of each class.
    axes : array of Axes, optional
        Where to draw, one per result; any more are switched off. One new figure with a legend otherwise.
    histogram : bool
        Whether to put a strip with the distribution of the scores under each square.
    most : int
        Panels at most. Of more classes those with the largest errors are drawn, the largest first; of
        score histograms, those of the most frequent classes.
    scale, figsize
        As for `diagram`.

    Returns
    -------
    array of Axes
        The main panels, in the order in which they are drawn.

    See Also
    --------
    groups : Signed gaps of groups in one panel.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> panels = calibrant.plot.small_multiples({"all": calibrant.reliability_curve(outcome, score)})
    """
    if isinstance(results, Assessment):
        results = next((curves for curves in results.curves.values() if isinstance(curves, ByClass)), {})
    chosen: list[tuple[Any, Any]] = list(results.items())
    total = len(chosen)
    scores = total > 0 and hasattr(chosen[0][1], "positive")
    if total > most:
        size = [result.positive.sum() if scores else result.error for _, result in chosen]
        chosen = [chosen[k] for k in np.argsort(size, kind="stable")[::-1][: max(most, 1)]]
    count, peers = len(chosen), [result for _, result in chosen]
    if not 0 < count <= (count if axes is None else np.size(axes)):
        raise ValueError(f"axes must hold one Axes per result, and results at least one, got {count} results")
    ratio = 0.8 if scores else 1.2 if histogram else 0.95
    grid = np.asarray(canvas.new(ratio, count, figsize) if axes is None else axes, dtype=object)
    panels, columns = grid.ravel(), grid.shape[-1] if grid.ndim else 1
    for i, (name, result) in enumerate(chosen):
        ax, first = panels[i], i % columns == 0
        lowest = by_class(ax, result, peers) if scores else _square(ax, result, peers, histogram, scale)
        ax.set_title(canvas.fitted(name, canvas.inches(ax), "medium"), size="medium")
        ax.set_ylabel(ax.get_ylabel() if first else "")
        ax.tick_params(labelleft=first)
        lowest.yaxis.label.set_visible(first)
        bottom = i // columns == (count - 1) // columns
        lowest.set_xlabel(canvas.axis_labels(result)[0].split()[0] if bottom else "")
        lowest.tick_params(labelbottom=i + columns >= count)
    for spare in panels[count:]:
        spare.set_axis_off()
    if axes is None:
        if total > count:
            order = "most frequent" if scores else "largest error"
            ax.figure.suptitle(f"{count} of {total} classes, {order} first", size="medium")
        _, facts = ("", [canvas.size_text(result.n)]) if scores else canvas.words(result)
        facts = facts if scores else [f"corners: {facts[0].rpartition(' ')[0]}", *facts[1:]]
        every = [canvas.handles(each) for each in panels[:count]]
        entries = {label: mark for marks, labels in every for mark, label in zip(marks, labels, strict=True)}
        if scores:
            entries = dict(zip(["of the class", "of another class"], canvas.handles(ax)[0], strict=True))
        across = 3 if ax.figure.get_figwidth() > 4 else 2
        key = {"title": ", ".join(facts), "ncols": across, **canvas.KEY}
        written = ax.figure.legend(list(entries.values()), list(entries), loc="outside lower center", **key)
        if figsize is None:  # the panels keep their size
            extra = written.get_window_extent().height / ax.figure.dpi + 0.25 * (total > count)
            ax.figure.set_figheight(ax.figure.get_figheight() + max(extra - 0.35, 0.0))
    return panels[:count]


def _square(ax: Any, result: Any, peers: list[Any], histogram: bool, scale: Scale) -> Any:
    """Draw one class, and return the panel that has the x axis."""
    from matplotlib.patheffects import withStroke

    draw(result, ax, False, False, None, None, scale)
    lowest = strip(ax, result, None, peers, bare=True) if histogram else ax
    ax.set(xlabel="", ylabel=ax.get_ylabel().split()[0])
    error = canvas.words(result)[1][0].removeprefix("binned ")
    error = error.removeprefix("ECE ") if canvas.inches(ax) < 1 else error
    note = ax.text(0.05, 0.95, error, transform=ax.transAxes, va="top", size="small")
    # Where bars reach into both corners, a rim keeps the number legible.
    note.set_path_effects([withStroke(linewidth=2, foreground=ax.get_facecolor())])
    if canvas.find_corner(ax, note, canvas.CORNERS)[0] == "lower right":
        note.set(x=0.95, y=0.05, ha="right", va="bottom")
    return lowest


def probability_transfer(assessment: Assessment, ax: Axes | None = None, *, figsize: Size = None) -> Axes:
    """Draw the net probability transfer between classes as a heat map.

    Where a cell is orange, the scores of the class of the row have too much probability, which those of the
    class of the column lack; where it is blue, the reverse. Numbers are percentage points averaged over all
    rows, bold where calibration is rejected and the interval excludes 0.

    Parameters
    ----------
    assessment : Assessment
        Of the canonical notion, with 3 to 12 classes.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size in inches.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.assess : Takes ``notion="canonical"``.

    Examples
    --------
    >>> import calibrant
    >>> rows = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]] * 30
    >>> result = calibrant.assess([0, 1, 2] * 30, rows, notion="canonical")
    >>> ax = calibrant.plot.probability_transfer(result)
    """
    from matplotlib.colors import LinearSegmentedColormap

    if assessment.probability_transfer is None:
        rule = 'be of notion="canonical" with 3 to 12 classes'
        got = f"{assessment.notion}, {len(assessment.classes)} classes"
        raise InputError("assessment", rule, got=got)
    transfer, names = assessment.probability_transfer, assessment.classes
    _, ax = canvas.panel(ax, 0.95, figsize)
    most = max(float(np.abs(transfer.net).max()), 1e-9)
    shades = LinearSegmentedColormap.from_list(
        "transfer", [_pale(house.BLUE), "#ffffff", _pale(house.ORANGE)]
    )
    ax.imshow(transfer.net, cmap=shades, vmin=-most, vmax=most)
    ticks = range(len(names))
    wide = 0.25 * canvas.space(ax)
    labels = [canvas.fitted(name, wide, "medium") for name in names]
    ax.set_xticks(ticks, labels, rotation=45, ha="left", rotation_mode="anchor")
    ax.set_yticks(ticks, labels)
    ax.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
    ax.set(xlabel="class with too little", ylabel="class with too much")
    ax.xaxis.set_label_position("top")
    ax.set_title("net probability transfer, percentage points", size="small", y=-0.03, va="top")
    ax.set_xticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=house.LINE, linewidth=0.8)
    ax.tick_params(which="minor", length=0)
    cell = canvas.inches(ax) / len(names)
    if cell >= NUMBERED:
        size = min(24 * cell, 9)
        rejected = is_rejected(assessment.estimate, assessment.level)
        known = [pair for pair in pairs(transfer, assessment.level) if pair.low > 0 and rejected]
        certain = {frozenset(pair[:2]) for pair in known}
        for (row, column), value in np.ndenumerate(transfer.net):
            if row != column:
                style: dict[str, Any] = {"color": house.SOFT}
                if frozenset((row, column)) in certain:
                    style = {"color": house.INK, "weight": "bold"}
                shown = f"{100 * value:.1f}".replace("-", "−") if abs(value) >= 5e-4 else "0"
                ax.text(column, row, shown, ha="center", va="center", size=size, **style)
    return ax


def _pale(color: str, share: float = 0.6) -> Any:
    """Return a colour that leaves text on it readable."""
    from matplotlib.colors import to_rgb

    return tuple(1 - share * (1 - channel) for channel in to_rgb(color))
