"""Forests, several models and scores by outcome: what is drawn, and that all pictures can be read."""

import sys
from itertools import combinations
from types import MappingProxyType, SimpleNamespace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_rgb
from test_plot import (
    DRAWINGS,
    _no_figure_is_left,  # noqa: F401
    a_curve,
    assert_texts_apart_and_inside,
    of_type,
)

from calibrant import Comparison, Estimate, ScoreHistogram, plot
from calibrant.curves.histogram import histogram_of
from calibrant.inference.comparison import ErrorDifference
from calibrant.inference.interval_estimate import IntervalEstimate
from calibrant.inference.result import Null
from calibrant.inputs import house_style as house
from calibrant.plot import canvas, reliability, scores
from calibrant.score_data import Cells, Sample
from calibrant.tasks import get_notion

HOSTILE = [
    "$x_1$ <b>",
    r"$\frac$ %d {0} \n",
    "a" * 200,
    "W" * 200,
    "two\nlines\tand\rmore",
    "שלום עולם",
    "مرحبا بالعالم",
    "\u202eturned around\x00",
    "\ud800",
    "",
    7,
    None,
    ("a", 1),
]


def an_estimate(value=0.04, half=0.01, **changes):
    settings = {
        "value": value,
        "low": max(0.0, value - half),
        "high": value + half,
        "level": 0.95,
        "null": Null(0.008),
        "p_value": 0.01,
        "over": value,
        "under": 0.0,
        "n": 1234.0,
        "notion": "confidence",
        "estimator": "bayes",
    }
    return Estimate(**settings | changes)


def a_comparison(names=("logistic regression", "forest", "boosting"), values=(0.03, 0.06, 0.012)):
    estimates = {name: an_estimate(value) for name, value in zip(names, values, strict=True)}
    differences = {
        name: ErrorDifference(name, names[0], value - values[0], value - values[0] - 0.009,
                         value - values[0] + 0.007, 0.95, 0.02, 0.5)
        for name, value in zip(names[1:], values[1:], strict=True)
    }  # fmt: skip
    return Comparison(MappingProxyType(estimates), MappingProxyType(differences), names[0])


def some_groups(count, name="group {}, of some length"):
    rng = np.random.default_rng(0)
    return {
        name.format(i): an_estimate(rng.gamma(2, 0.02), 0.3 / np.sqrt(n), n=float(n))
        for i, n in enumerate(rng.integers(40, 90_000, count))
    }


def some_curves(count):
    grid = np.linspace(0, 1, 201)
    made = {}
    for i in range(count):
        middle = grid ** (0.6 + 0.3 * i)
        changes = {"low": middle - 0.04, "high": middle + 0.04, "n_eff": np.full(201, 50.0)}
        made[f"model {i}"] = a_curve(value=middle, lce=middle - grid, error=0.01 * i, **changes)
    return made


def a_histogram(saturated=False, notion="binary", label=None):
    cells = np.linspace(0.01, 0.99, 50)
    positive, negative = np.round(40 * cells**2), np.round(40 * (1 - cells) ** 2)
    if saturated:
        positive[-1], negative[0] = 9000, 400
    support = (0.1, 1.0) if notion == "confidence" else (0.0, 1.0)
    n = float(positive.sum() + negative.sum())
    return ScoreHistogram(np.linspace(0, 1, 51), positive, negative, notion, label, n, support)


def kept(levels=400):
    """Return the accuracy of what is kept, from the most confident of so many levels on."""
    coverage = np.arange(1, levels + 1) / levels
    accuracy, wide = 0.97 - 0.2 * coverage**2, 0.02 / np.sqrt(coverage)
    return SimpleNamespace(
        confidence=1 - 0.5 * coverage, coverage=coverage, accuracy=accuracy, low=accuracy - wide,
        high=np.minimum(accuracy + wide, 1), band_low=accuracy - 1.5 * wide,
        band_high=np.minimum(accuracy + 1.5 * wide, 1), aurc=IntervalEstimate(0.0823, 0.07, 0.1), level=0.95,
        n=1234.0, notion="confidence",
    )  # fmt: skip


NEW = {
    "comparison": lambda ax=None: plot.compare(a_comparison(), ax),
    "groups": lambda ax=None: plot.groups(some_groups(8), ax, overall=an_estimate(0.05, 0.004)),
    "one group": lambda ax=None: plot.groups(some_groups(1), ax),
    "estimators": lambda ax=None: plot.estimators(
        {name: an_estimate(0.04 + 0.01 * i) for i, name in enumerate(("auto", "uniform:15", "density"))}, ax
    ),
    "two models": lambda ax=None: plot.models(some_curves(2), ax),
    "six models": lambda ax=None: plot.models(some_curves(6), ax),
    "scores": lambda ax=None: plot.score_histograms(a_histogram(), ax),
    "saturated": lambda ax=None: plot.score_histograms(a_histogram(True, label="ship"), ax),
    "confidences": lambda ax=None: plot.score_histograms(a_histogram(True, "confidence"), ax),
    "kept": lambda ax=None: plot.risk_coverage(kept(), ax),
    "kept in levels": lambda ax=None: plot.risk_coverage(kept(4), ax),
    "all kept": lambda ax=None: plot.risk_coverage(kept(1), ax),
}
ALL = NEW | {name: (lambda ax=None, draw=draw: draw(ax)) for name, draw in DRAWINGS.items()}


def grey(color):
    """Lightness as a grey print has it."""
    return float(np.dot(to_rgb(color), (0.299, 0.587, 0.114)))


def panel_beside(ax):
    return next(other for other in ax.figure.axes if other is not ax)


def marks(ax):
    """Values and rows of the filled marks; the ticks of the null are another kind."""
    groups = [group for group in of_type(ax, PathCollection) if group.get_zorder() == 4]
    return np.concatenate([group.get_offsets() for group in groups])


def intervals(ax):
    bars = [group for group in of_type(ax, LineCollection) if group.get_zorder() == 3]
    return np.concatenate([np.array(group.get_segments()) for group in bars if group.get_segments()])


# What holds for every picture.


@pytest.mark.parametrize("name", NEW)
def test_the_given_axes_are_used_and_returned(name):
    ax = plt.subplots(layout="constrained")[1]
    before = plt.get_fignums()
    assert NEW[name](ax) is ax
    assert plt.get_fignums() == before
    assert plt.gca() is ax


@pytest.mark.parametrize("name", NEW)
def test_without_axes_one_figure_is_made_and_settings_stay(name):
    before = dict(matplotlib.rcParams)
    ax = NEW[name]()
    ax.figure.canvas.draw()
    assert plt.get_fignums() == [ax.figure.number]
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", NEW)
def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[plot\]'"):
        NEW[name]()


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("width", "given"), [(3.3, True), (3.3, False), (6.4, True)])
def test_no_text_overlaps_another_or_leaves_the_figure(name, width, given):
    with plt.rc_context({"figure.figsize": (width, width)}):
        ax = plt.subplots(layout="constrained")[1] if given else None
        assert_texts_apart_and_inside(ALL[name](ax).figure)


@pytest.mark.no_cover
@pytest.mark.parametrize("layout", ["constrained", "tight", None])
def test_a_grid_of_subplots_holds_them(layout):
    figure, grid = plt.subplots(3, 4, figsize=(16, 12), layout=layout)
    for ax, draw in zip(grid.flat, NEW.values(), strict=True):
        draw(ax)
    if layout == "constrained":
        assert_texts_apart_and_inside(figure)
    else:
        figure.canvas.draw()


@pytest.mark.no_cover
@pytest.mark.parametrize("width", [3.3, 6.4])
def test_any_names_of_rows_are_only_text(width):
    with plt.rc_context({"figure.figsize": (width, 3.3)}):
        found = {name: an_estimate(0.02 + 0.001 * i) for i, name in enumerate(HOSTILE)}
        assert_texts_apart_and_inside(plot.groups(found, overall=an_estimate()).figure)
        assert_texts_apart_and_inside(plot.estimators(found).figure)
        names = ["first", *HOSTILE]
        assert_texts_apart_and_inside(plot.compare(a_comparison(names, [0.02] * len(names))).figure)


@pytest.mark.no_cover
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:12])
def test_any_name_is_only_text(name):
    with plt.rc_context({"figure.figsize": (3.3, 3.3)}):
        assert_texts_apart_and_inside(plot.compare(a_comparison((name, "other", "third"))).figure)
        assert_texts_apart_and_inside(plot.models({name: a_curve(), "other": a_curve()}).figure)
        assert_texts_apart_and_inside(plot.score_histograms(a_histogram(label=name)).figure)


def test_a_shortened_name_keeps_both_ends():
    shown = canvas.fitted("women of 65 and over, in rural areas", 1.2, 8)
    start, end = shown.split("…")
    assert "women of 65 and over, in rural areas".startswith(start)
    assert "women of 65 and over, in rural areas".endswith(end)
    assert len(start) > 3 < len(end)
    assert canvas.width_of(shown, 8) <= 1.2
    assert canvas.fitted("short", 1.2, 8) == "short"


def test_main_marks_differ_in_grey():
    assert abs(grey(scores.UP["facecolor"]) - grey(scores.DOWN["facecolor"])) > 0.5
    ax = NEW["groups"]()
    interval = next(bars for bars in of_type(ax, LineCollection) if bars.get_zorder() == 3)
    null = of_type(ax, PathCollection)[0]
    assert abs(grey(interval.get_color()[0][:3]) - grey(null.get_edgecolor()[0][:3])) > 0.15
    ax = NEW["estimators"]()
    first, others = [group for group in of_type(ax, PathCollection) if group.get_zorder() == 4]
    assert abs(grey(first.get_facecolor()[0][:3]) - grey(others.get_facecolor()[0][:3])) > 0.5


def test_models_differ_by_dashes_and_neighbours_by_lightness():
    assert len({str(dashes) for _, dashes, _ in reliability.LINES}) == len(reliability.LINES)
    lightness = [grey(color) for color, _, _ in reliability.LINES]
    assert np.min(np.abs(np.diff(lightness))) > 0.1
    assert np.min(np.diff(np.sort(lightness))) > 0.05
    assert max(lightness) < 0.7, "too light for a white page"


# Colours as the common kinds of colour blindness see them (Machado, Oliveira and Fernandes 2009, severity 1).
BLIND = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


@pytest.mark.parametrize("kind", BLIND)
def test_colours_stay_apart_for_colour_blind_eyes(kind):
    def seen(color):
        rgb = np.array(to_rgb(color))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        linear = np.clip(np.array(BLIND[kind]) @ linear, 0, 1)
        return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)

    pairs = [*combinations([color for color, _, _ in reliability.LINES], 2), (house.HIGH, house.LOW)]
    for one, other in pairs:
        assert np.linalg.norm(seen(one) - seen(other)) > 0.25, (one, other)


# Forests.


def test_each_row_has_estimate_interval_and_null():
    found = {"a": an_estimate(0.02, null=Null(0.005)), "b": an_estimate(0.07, null=Null(0.015))}
    ax = plot.estimators(found)
    np.testing.assert_allclose(marks(ax), [[0.02, 0], [0.07, 1]])
    np.testing.assert_allclose(intervals(ax)[:, :, 0], [[0.01, 0.03], [0.06, 0.08]])
    (null,) = [group for group in of_type(ax, PathCollection) if group.get_zorder() == 2]
    np.testing.assert_allclose(null.get_offsets(), [[0.005, 0], [0.015, 1]])
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "95 % interval",
        "expected if calibrated",
    ]


@pytest.mark.parametrize("name", ["comparison", "groups", "one group", "estimators"])
def test_the_axis_of_errors_starts_at_zero_and_holds_all(name):
    ax = NEW[name]()
    low, high = ax.get_xlim()
    assert low == 0
    assert intervals(ax)[:, :, 0].max() < high
    assert len([tick for tick in ax.get_xticks() if low <= tick <= high]) >= 2


def test_an_error_of_zero_is_drawn():
    ax = plot.estimators({"a": an_estimate(0.0, 0.0, null=Null(0.0))})
    assert ax.get_xlim()[1] >= 0.01
    assert_texts_apart_and_inside(ax.figure)


def test_axes_say_what_is_measured():
    def label(*found):
        return plot.groups(dict(enumerate(found))).get_xlabel()

    assert label(an_estimate()) == "calibration error (confidence)"
    assert label(an_estimate(notion="binary", label="odd")) == "calibration error (class odd)"
    assert label(*(an_estimate(notion="binary", label=k) for k in (1, 2))) == "calibration error (binary)"
    assert label(an_estimate(), an_estimate(notion="classwise")) == "calibration error"
    assert label(an_estimate(norm="l2")) == "RMS calibration error (confidence)"
    assert label(an_estimate(norm="l2"), an_estimate()) == "calibration error (confidence)"


def test_groups_come_worst_first_with_their_sizes():
    found = {"small": an_estimate(0.01, n=50.0), "worst": an_estimate(0.09, n=12345.0), "mid": an_estimate()}
    ax = plot.groups(found)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["worst", "mid", "small"]
    assert [text.get_text() for text in ax.texts] == ["12,345", "1,234", "50", "n"]
    ax.figure.canvas.draw()
    tops = [label.get_window_extent().y1 for label in ax.get_yticklabels()]
    assert tops == sorted(tops, reverse=True)
    sizes = [text.get_window_extent() for text in ax.texts]
    assert len({round(box.x1, 3) for box in sizes}) == 1


def test_groups_of_dates_are_in_the_order_of_time():
    days = ["2026-05-10", "2026-04-30", "2026-05-02"]
    ax = plot.groups(dict(zip(days, some_groups(3).values(), strict=True)))
    assert [label.get_text() for label in ax.get_yticklabels()] == sorted(days)
    mixed = dict(zip(["all", *days[1:]], some_groups(3).values(), strict=True))
    ax = plot.groups(mixed)
    by_size = sorted(mixed, key=lambda name: -mixed[name].value)
    assert [label.get_text() for label in ax.get_yticklabels()] == by_size != sorted(mixed)


def test_groups_show_the_whole_as_line_and_band():
    ax = plot.groups(some_groups(3), overall=an_estimate(0.3, 0.05))
    (band,), (line,) = ax.patches, ax.lines
    assert tuple(line.get_xdata()) == (0.3, 0.3)
    extent = band.get_extents().transformed(ax.transData.inverted())
    assert (extent.x0, extent.x1) == pytest.approx((0.25, 0.35))
    assert ax.get_xlim()[1] > 0.35
    assert ax.get_legend().get_texts()[-1].get_text() == "overall, 0.300"
    assert not plot.groups(some_groups(3)).lines


@pytest.mark.no_cover
@pytest.mark.parametrize(("width", "count"), [(6.4, 1), (3.3, 2), (6.4, 20), (3.3, 50)])
def test_any_number_of_groups_is_readable(count, width):
    with plt.rc_context({"figure.figsize": (width, 4.0)}):
        ax = plot.groups(some_groups(count), overall=an_estimate())
        assert_texts_apart_and_inside(ax.figure)
        assert min(label.get_size() for label in ax.get_yticklabels()) > 6
        given = plt.subplots(layout="constrained")[1]
        plot.groups(some_groups(count), given, overall=an_estimate())
        assert_texts_apart_and_inside(given.figure)
        assert (given.figure.get_size_inches() == (width, 4.0)).all()


def test_the_first_estimator_is_emphasised():
    ax = NEW["estimators"]()
    assert [label.get_fontweight() for label in ax.get_yticklabels()] == ["bold", "normal", "normal"]
    assert [text.get_text() for text in ax.texts if text.get_text()] == ["0.040", "0.050", "0.060"]


def test_a_comparison_shows_differences_from_the_baseline():
    result = a_comparison()
    ax = result.plot()
    panel = panel_beside(ax)
    np.testing.assert_allclose(marks(panel), [[0.03, 1], [-0.018, 2]])
    np.testing.assert_allclose(intervals(panel)[:, :, 0], [[0.021, 0.037], [-0.027, -0.011]])
    assert [(text.get_text(), text.get_position()) for text in panel.texts] == [("baseline", (0, 0))]
    assert panel.get_xlim()[0] < -0.027 < 0 < 0.037 < panel.get_xlim()[1]
    assert panel.get_xlabel() == "difference from\nlogistic regression (paired)"
    ax.figure.canvas.draw()
    left, right = ax.get_window_extent(), panel.get_window_extent()
    assert left.x1 < right.x0
    assert (left.y0, left.y1) == pytest.approx((right.y0, right.y1))


def test_a_comparison_without_differences_is_drawn():
    alone = Comparison({"a": an_estimate()}, {}, "a")
    assert_texts_apart_and_inside(alone.plot().figure)


def test_the_baseline_may_stand_anywhere():
    result = a_comparison()
    other = Comparison(result.estimates, {"forest": result.differences["forest"]}, "boosting")
    panel = panel_beside(plot.compare(other))
    assert [text.get_position()[1] for text in panel.texts] == [2]


def test_cells_and_rows_have_the_same_histogram():
    rng = np.random.default_rng(3)
    sample = Sample(rng.random(400) ** 3, rng.random(400) < 0.4)
    rows, cells = (histogram_of(part, notion=get_notion("binary")) for part in (sample, Cells.of(sample)))
    np.testing.assert_allclose(rows.positive, cells.positive)
    np.testing.assert_allclose(rows.negative, cells.negative)
    assert cells.negative.min() >= 0


SIZED = {
    "compare": lambda **size: plot.compare(a_comparison(), **size),
    "groups": lambda **size: plot.groups(some_groups(4), **size),
    "estimators": lambda **size: plot.estimators(some_groups(2), **size),
    "models": lambda **size: plot.models(some_curves(2), **size),
    "scores": lambda **size: plot.score_histograms(a_histogram(), **size),
    "risk_coverage": lambda **size: plot.risk_coverage(kept(), **size),
    "small_multiples": lambda **size: plot.small_multiples(some_curves(3), **size)[0],
}


@pytest.mark.parametrize("name", SIZED)
def test_the_size_of_a_new_figure_is_kept(name):
    assert tuple(SIZED[name](figsize=(5, 3.5)).figure.get_size_inches()) == (5, 3.5)
