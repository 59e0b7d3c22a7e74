"""The paper's two figures.

Figures are laid out here and computed elsewhere. matplotlib is imported on use, through `Figure` alone:
nothing is shown, and neither pyplot's state nor rcParams change.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import calibrant
from calibrant.estimators import FIFTEEN
from calibrant.experiment import models
from calibrant.experiment.distributions import Mixture, rng_of
from calibrant.experiment.procedure import title
from calibrant.experiment.summary import BASELINES, Summary
from calibrant.score_data import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = {
    "published": "as published",
    "corrected": "corrected",
    "normalised": "corrected, divided by the true error",
}
# Safe for the colour-blind. In a grey print the names beside the curves tell the first two apart.
FAMILIES = {
    "l": ("#e69f00", "uniform"),
    "a": ("#56b4e9", "adaptive"),
    "c": ("#009e73", "uniform, convex"),
    "ac": ("#c4320a", "adaptive, convex"),
    "d": ("#14306e", "density"),
}
STYLES: dict[str, tuple[Any, float, str]] = {
    "sqrt": ("-", 1.7, "√N bins, Silverman's bandwidth"),
    "10": ((0, (5, 1.6)), 1.1, "10 bins, bandwidth 0.1"),
    "30": ((0, (1, 1.3)), 1.1, "30 bins, bandwidth 0.033"),
}
SAME_STYLE = {"silverman": "sqrt", "0.1": "10", "0.033": "30"}
MARKERS = "osD^vPX*"
FONT = 7.5
LONGEST = 16  # letters of a name beside a curve
WIDTH, PANEL, TOP, BOTTOM, BETWEEN = 7.0, 3.3, 0.95, 0.5, 0.35  # inches


def figure2(summary: Summary, reading: str = "published") -> Figure:
    """Draw the paper's Figure 2: how far each estimator is off, by the size of the evaluation set.

    Parameters
    ----------
    summary : Summary
        A run; a panel is drawn for each of its notions.
    reading : {"published", "corrected", "normalised"}

    Returns
    -------
    matplotlib.figure.Figure
        Median over the models of the 95th percentile of |estimate - truth|; estimators beyond the paper's
        fifteen are black, with markers. The error of the baselines, which are constants, is grey.
    """
    from matplotlib.figure import Figure

    if reading not in summary.values:
        raise ValueError(f"reading must be one of {', '.join(summary.values)}, got {reading!r}")
    notions = summary.settings.notions
    height = TOP + BOTTOM + len(notions) * PANEL + (len(notions) - 1) * BETWEEN
    figure = Figure(figsize=(WIDTH, height))
    for k, notion in enumerate(notions):
        bottom = height - TOP - PANEL - k * (PANEL + BETWEEN)
        ax = figure.add_axes((0.095, bottom / height, 0.745, PANEL / height))
        _panel(ax, summary, reading, notion)
        ax.tick_params(labelbottom=notion == notions[-1])
    what = f"size of the evaluation set (curves are medians over {len(summary.models)} models)"
    ax.set_xlabel(what, size=FONT + 1)
    title = f"Error of the estimators, {WORDS[reading]}"
    figure.text(0.095, 1 - 0.12 / height, title, size=FONT + 2.5, va="top", weight="bold")
    _keys(figure, height)
    return figure


def _panel(ax: Any, summary: Summary, reading: str, notion: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

    order = np.argsort(summary.settings.sizes)
    sizes = np.array(summary.settings.sizes, dtype=float)[order]
    ax.set(xscale="log", yscale="log")
    ends, others = [], 0
    medians = summary.median(reading, notion)[:, order]
    failed: Array = np.any(np.isnan(medians) & (summary.failed(reading, notion)[:, order] > 0), axis=1)
    for name, curve, broken in zip(summary.settings.estimators, medians, failed, strict=True):
        if broken or not np.isfinite(curve).any():
            continue
        style = _style(name, others)
        others += name not in FIFTEEN
        if sizes.size == 1:
            style["marker"] = style.get("marker", "o")
        ax.plot(sizes, curve, label=name, solid_capstyle="round", dash_capstyle="butt", **style)
        last = np.flatnonzero(np.isfinite(curve))[-1]
        ends.append((sizes[last], curve[last], _short(name), style["color"]))
    errors = zip(BASELINES, summary.baselines(reading, notion), strict=True)
    for name, error in errors:
        if error > 0:  # a logarithmic axis has no 0
            ax.plot(sizes[[0, -1]], [error, error], label=name, color="0.5", linewidth=2.2, zorder=1.5)
            ends.append((sizes[-1], error, name, "#7f7f7f"))
    low, high = sizes.min(), sizes.max()
    margin = (high / low) ** 0.015 if high > low else 1.1
    ax.set_xlim(low / margin, high * margin)
    ax.xaxis.set_major_locator(FixedLocator(_spaced(sizes)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    relative = reading == "normalised"
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
    ax.yaxis.set_minor_locator(LogLocator(subs=(1.5, 4, 6, 7, 8, 9)))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{100 * v:g} %" if relative else f"{v:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(which="major", color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=FONT)
    ax.set_ylabel("95th percentile of |estimate − truth|" + (" / truth" if relative else ""), size=FONT + 1)
    ax.text(0.985, 0.97, title(notion), transform=ax.transAxes, size=FONT + 2.5, ha="right", va="top")
    if failed.any():
        names = [
            _short(name) for name, broken in zip(summary.settings.estimators, failed, strict=True) if broken
        ]
        note = f"not drawn, as it failed on too many models: {', '.join(names)}"
        ax.text(0.985, 0.9, note, transform=ax.transAxes, size=FONT, ha="right", va="top")
    _label(ax, ends)


def _style(name: str, others: int) -> dict[str, Any]:
    """Return colour by family and line by hyperparameter; beyond the fifteen black with markers."""
    if name not in FIFTEEN:
        marker = MARKERS[others % len(MARKERS)]
        return {"color": "black", "linewidth": 1.2, "marker": marker, "markersize": 3.5, "zorder": 4}
    family, _, parameter = name.partition(":")
    dashes, width, _ = STYLES[SAME_STYLE.get(parameter, parameter)]
    return {"color": FAMILIES[family][0], "linestyle": dashes, "linewidth": width, "zorder": 2 + width / 2}


def _short(name: str) -> str:
    """Return the name beside a curve: of a dotted path the last part."""
    head, colon, parameter = name.partition(":")
    text = head.rpartition(".")[2] + colon + parameter
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _spaced(sizes: Array) -> list[float]:
    """Return as many of the sizes as fit on the axis with their labels, the last one always."""
    kept: list[float] = []
    for n in sorted(set(sizes.tolist()), reverse=True):
        width = 0.017 * len(f"{n:g}") * np.log(sizes.max() / sizes.min())
        if not kept or np.log(kept[-1] / n) > width:
            kept.append(n)
    return kept[::-1]


def _label(ax: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write names at the right, moved apart as little as they need, each tied to the end of its curve."""
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D

    if not ends:
        return
    ends = sorted(ends, key=lambda end: end[1])
    scale = (ax.transScale + ax.transLimits).transform
    points = scale([(x, y) for x, y, _, _ in ends])
    gap = (FONT + 1.2) / 72 / PANEL
    for (x, y), level, (_, _, name, color) in zip(points, spread_apart(points[:, 1], gap), ends, strict=True):
        tie = {"color": color, "linewidth": 0.5, "clip_on": False, "transform": ax.transAxes, "zorder": 1}
        ax.add_line(Line2D([x + 0.003, 1.005, 1.035, 1.045], [y, y, level, level], label="_tie", **tie))
        ink = 0.75 * np.array(to_rgb(color))  # thin letters need more contrast than lines
        ax.text(1.052, level, name, color=ink, size=FONT, va="center_baseline", transform=ax.transAxes)


def spread_apart(points: Array, gap: float) -> Array:
    """Move ascending places at least `gap` apart, as little as possible, and between 0 and 1 if they fit.

    >>> spread_apart(np.array([0.5, 0.5, 0.9]), 0.1)
    array([0.45, 0.55, 0.9 ])
    """
    from scipy.optimize import isotonic_regression

    offset = gap * np.arange(len(points))
    moved = isotonic_regression(points - offset).x
    return np.asarray(np.clip(moved, 0.0, max(0.0, 1.0 - offset[-1])) + offset)


def _keys(figure: Any, height: float) -> None:
    """Write two rows above the panels: what the colours mean, and what the lines."""
    from matplotlib.lines import Line2D

    colours = [
        Line2D([], [], color=color, linewidth=2.2, label=f"{family}  {words}")
        for family, (color, words) in FAMILIES.items()
    ]
    lines = [
        Line2D([], [], color="0.25", linestyle=dashes, linewidth=width, label=words)
        for dashes, width, words in STYLES.values()
    ]
    for entries, down in ((colours, 0.37), (lines, 0.57)):
        figure.legend(
            handles=entries,
            ncols=len(entries),
            loc="upper left",
            bbox_to_anchor=(0.095, 1 - down / height),
            fontsize=FONT,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=2.4,
            handletextpad=0.5,
            columnspacing=1.4,
        )


def figure1(seed: int = 0) -> Figure:
    """Draw the paper's Figure 1: a diagram, a curve and a bootstrapped curve of the same scores.

    A random forest learns from 300 rows of a mixture of two classes and seven features, and is judged on
    1000 others. Bandwidth and kernels are the authors': cosine in the middle, Gaussian on the right.

    Parameters
    ----------
    seed : int
        Of the distribution, the rows and the resamples.
    """
    from matplotlib.figure import Figure

    where, rng = Mixture(2, 7, seed), rng_of("figure 1", seed)
    forest = models.fit(models.forest, *where.sample(300, rng), seed=seed)
    features, labels = where.sample(1000, rng)
    score = models.scores(forest, features, 2)[:, 1]
    curve = partial(calibrant.reliability_curve, labels, score, method="density", bandwidth=0.03)
    plain = curve(kernel="cosine", n_boot=0, band=None)
    band = curve(kernel="gaussian", n_boot=500, band="bootstrap", rng=seed)
    diagram = calibrant.reliability_diagram(labels, score, binning="uniform:15")
    panels: dict[str, calibrant.ReliabilityCurve | calibrant.ReliabilityDiagram] = {
        f"Reliability diagram, 15 bins\nbinned ECE {diagram.error:.3f}, 95 % intervals": diagram,
        f"Reliability curve, bandwidth 0.03\nECE {plain.error:.3f}": plain,
        f"Bootstrapped curve, 500 resamples\nECE {band.error:.3f}, 95 % band": band,
    }
    figure = Figure(figsize=(10.5, 4.9), layout="constrained")
    for ax, (heading, result) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        result.plot(ax, legend=False)
        ax.set_title(heading, size="medium")
    # The colours of the last panel are those of the first.
    marks, names = ax.get_legend_handles_labels()
    figure.legend(marks, names, loc="outside lower center", ncols=len(names), frameon=False, fontsize="small")
    return figure
