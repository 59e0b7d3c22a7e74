"""Decisions: net benefit, regret and cost over thresholds, and the accuracy of the most confident rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.decisions import BestThreshold
from calibrant.decisions.curve import THRESHOLDS
from calibrant.decisions.decision import COST_THRESHOLDS
from calibrant.inputs import house_style as house
from calibrant.plot import canvas
from calibrant.plot.canvas import Size, plain, reading_of
from calibrant.plot.reliability import BANDED, LINES
from calibrant.settings import REPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from calibrant.decisions import RegretCurve, RiskCoverage

# Inches of a new figure, and how far below zero net benefits are still shown, as a share of the best.
WIDE, HIGH, BELOW = 4.5, 4.7, 0.25
# Differences of net benefit, and regrets, below this share of the largest are not visible.
VISIBLE = 0.01


def regret(result: RegretCurve | BestThreshold, ax: Any = None, *, figsize: Size = None) -> Any:
    """Draw what decisions on the scores bring or cost, by threshold.

    Parameters
    ----------
    result : RegretCurve or BestThreshold
        Of a curve: net benefit and, below, the decision regret with its band, at every threshold; with the
        difference of two models a third panel shows that. Of a best threshold: the cost per row at every
        threshold, with two marks, the threshold implied by the costs and the best one with its interval.
        The axis of a curve spans the thresholds that were passed to `regret_curve`. By default it spans those
        at which the model differs visibly from always and never acting, or has a regret.
    ax : Axes, or sequence of Axes, optional
        Where to draw, two or three panels for a curve; one new figure otherwise.
    figsize : pair of floats, optional
        Size of a new figure in inches.

    Returns
    -------
    Axes or sequence of Axes

    See Also
    --------
    calibrant.regret_curve : Computes the curve.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.regret(calibrant.regret_curve(outcome, score))
    """
    if isinstance(result, BestThreshold):
        return _costs(result, ax, figsize)
    count = 2 if result.difference is None else 3
    ax = canvas.stacked(ax, count, figsize or (WIDE, HIGH * count / 2))
    top, middle, *rest = ax
    t, worst = result.thresholds, result.worst
    top.plot(t, result.net_benefit, color=house.BLUE, lw=1.6, label="model")
    top.plot(t, result.recalibrated, color=house.ORANGE, lw=1.4, ls="--", label="recalibrated")
    top.plot(t, result.treat_all, color=house.INK, lw=1, ls=":", label="always act")
    top.axhline(0, color=house.GREY, lw=1, label="never act")
    best = max(float(result.net_benefit.max()), float(result.treat_all.max()), 1e-3)
    top.set(ylabel="net benefit", ylim=(-BELOW * best, 1.05 * best), xlim=_visible_range(result))
    _banded(middle, t, result.value, result.low, result.high, "decision regret", result.level)
    mark = {"color": house.ORANGE, "ms": 5, "label": f"largest, at {worst.threshold:.2g}"}
    middle.plot([worst.threshold], [worst.value], "o", **mark)
    middle.set_ylabel("regret per row")
    middle.set_ylim(0, None)
    for last in rest:
        assert result.difference is not None
        value, low, high = result.difference
        _banded(last, t, value, low, high, "difference in net benefit", result.level)
        last.axhline(0, color=house.GREY, lw=1)
        # Beyond most thresholds few rows are left, and the odds blow their noise up.
        limit = 1.1 * float(np.abs([low[t <= 0.9], high[t <= 0.9]]).max(initial=1e-3))
        last.set(ylabel="difference", ylim=(-limit, limit))
    ax[-1].set_xlabel(_threshold(result.label))
    for each in ax:
        canvas.above(each, *canvas.handles(each), **canvas.KEY)
    return ax


def _visible_range(result: RegretCurve) -> tuple[float, float]:
    """Return the thresholds given by the caller or, of the default ones, those at which curves differ."""
    t = result.thresholds
    if not np.array_equal(t, THRESHOLDS):
        return (float(t[0]), float(t[-1])) if t.size > 1 else (0.0, 1.0)
    simple = np.maximum(result.treat_all, 0.0)
    gain = np.maximum(np.abs(result.net_benefit - simple), np.abs(result.recalibrated - simple))
    # The band of the regret extends over all thresholds: it does not count.
    shown = t[(gain > VISIBLE * simple.max()) | (result.value > VISIBLE * result.high.max())]
    if not shown.size:
        return 0.0, 1.0
    margin = 0.1 * float(np.ptp(shown)) + 0.01
    return max(float(shown[0]) - margin, 0.0), min(float(shown[-1]) + margin, 1.0)


def _threshold(label: Any) -> str:
    return "threshold" if label is None else f"threshold of class {plain(label)}"


def _banded(ax: Any, t: Any, value: Any, low: Any, high: Any, name: str, level: float) -> None:
    style = {"color": house.BLUE, "alpha": 0.18, "lw": 0, "label": canvas.level_text(level, "band")}
    ax.fill_between(t, low, high, **style)
    ax.plot(t, value, color=house.BLUE, lw=1.6, label=name)


def _costs(result: BestThreshold, ax: Any, figsize: Size) -> Any:
    """Draw the cost of these data at every threshold, yours and the best one."""
    fresh, ax = canvas.panel(ax, 0.75, figsize)
    (log_odds, bottom, top), limits = result._axes, canvas.LIMITS
    if log_odds:
        limits = (COST_THRESHOLDS[0], COST_THRESHOLDS[-1])
        ax.set_xscale("logit")
    at, low, high = np.clip([result.value, result.low, result.high], *np.clip(limits, 0, 1))
    ax.plot(COST_THRESHOLDS, result.costs, color=house.BLUE, lw=1.6, label="cost at each threshold")
    yours = f"your threshold {result.implied_threshold:.3g}, cost {result.cost_as_is:.3g}"
    ax.plot(
        [result.implied_threshold], [result.cost_as_is], "s", color=house.INK, ms=6, zorder=4, label=yours
    )
    best = {0.0: "always act", np.inf: "never act"}.get(
        result.value, f"{result.value:.2g} [{low:.2g}, {high:.2g}]"
    )
    ax.hlines(result.cost, low, high, house.ORANGE, linewidth=2, zorder=3.5)
    ax.plot(
        [at],
        [result.cost],
        "o",
        color=house.ORANGE,
        ms=6,
        zorder=5,
        label=f"best {best}, cost {result.cost:.3g}",
    )
    ax.set(xlim=limits, ylim=(bottom, top))
    ax.set(xlabel=_threshold(result.label), ylabel="cost per row")
    canvas.unit_ticks(ax, ax.xaxis)
    facts = [canvas.size_text(result.n), canvas.level_text(result.level)]
    canvas.legend(ax, facts, ("upper right", "lower right", "upper left", "lower left"), fresh)
    return ax


def risk_coverage(
    result: RiskCoverage | Mapping[str, RiskCoverage], ax: Axes | None = None, *, figsize: Size = None
) -> Axes:
    """Plot the accuracy of the most confident predictions over the coverage.

    Of one result pointwise intervals are dark and the simultaneous band is light. The dotted line is the
    accuracy of all rows, which is also the accuracy at every coverage if the confidence is uninformative.
    Curves start at ten selected rows.

    Parameters
    ----------
    result : RiskCoverage, or mapping from name to RiskCoverage
        What to draw; up to six results, of which one or two have their intervals.
    ax, figsize : Axes, pair of floats, optional
        Where to draw; otherwise one new figure, of this size in inches.

    Returns
    -------
    Axes

    See Also
    --------
    calibrant.risk_coverage : Computes the curve.

    Examples
    --------
    >>> import calibrant
    >>> score = [0.1, 0.3, 0.4, 0.6, 0.8, 0.9] * 20
    >>> outcome = [0, 0, 1, 0, 1, 1] * 20
    >>> ax = calibrant.plot.risk_coverage(calibrant.risk_coverage(outcome, score, notion="correctness"))
    """
    by_name = isinstance(result, Mapping)
    results: Mapping[str, RiskCoverage] = result if isinstance(result, Mapping) else {"": result}
    if not 0 < len(results) <= len(LINES):
        raise ValueError(f"result must hold 1 to {len(LINES)} curves to be told apart, got {len(results)}")
    fresh, ax = canvas.panel(ax, 0.75, figsize)
    least = 1.0
    for (name, each), (ink, dashes, _) in zip(results.items(), LINES, strict=False):
        color = ink if by_name else house.BLUE
        # A share is selected by the threshold that selects at least as much: the curve is a flight of steps.
        held = each.coverage * each.n >= min(REPORT.assessed_rows, each.n)
        share = np.append(0.0 if held[0] else each.coverage[~held][-1], each.coverage[held])
        steps: dict[str, Any] = {"color": color, "linewidth": 0, "zorder": 1.5, "step": "pre"}
        bands = [("interval", 0.15, each.low, each.high)] if len(results) <= BANDED else []
        if not by_name:
            bands = [("band", 0.15, each.band_low, each.band_high), ("interval", 0.3, each.low, each.high)]
        for kind, alpha, low, high in bands:
            ends = [np.append(end[held][0], end[held]) for end in (low, high)]
            label = None if by_name else canvas.level_text(each.level, kind)
            ax.fill_between(share, ends[0], ends[1], alpha=alpha, label=label, **steps)
        entry = f"{plain(name, 16)}, {each.aurc.value:.3g}" if by_name else None
        accuracy = np.append(each.accuracy[held][0], each.accuracy[held])
        line = {"linestyle": dashes, "linewidth": 1.6, "zorder": 3, "drawstyle": "steps-pre"}
        ax.plot(share, accuracy, color=color, label=entry, **line)
        every = float(each.accuracy[-1])
        note = None if by_name else "all rows"
        ax.axhline(every, color=color if by_name else house.GREY, lw=1, ls=":", zorder=1, label=note)
        shown = each.accuracy if by_name and not bands else each.low
        least = min(least, every, float(shown[each.coverage >= 0.1].min(initial=1.0)))
    ax.set(xlim=canvas.LIMITS, ylim=(max(-0.03, least - 0.25 * (1 - least) - 0.02), 1.03))
    ax.set_xlabel("coverage (most confident rows first)")
    ax.set_ylabel(f"{reading_of(each).frequency} of selected rows")
    canvas.unit_ticks(ax, ax.xaxis)
    facts = ["AURC by model"] if by_name else [f"AURC {each.aurc.value:.3g}", canvas.size_text(each.n)]
    canvas.legend(
        ax, facts, ("lower left", "lower right", "upper right"), fresh, handlelength=2.4 if by_name else 1.6
    )
    return ax
