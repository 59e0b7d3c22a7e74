"""The pictures: what is drawn, where it lies, and that nothing around them is disturbed."""

import subprocess
import sys
from itertools import combinations
from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PathCollection, PolyCollection

from calibrant import plot

AWKWARD = r"$\frac$ and a name much longer than any axis has room for"  # as mathematics, an error


def by_outcome(cells):
    """Return edges of fifty bins, and the counts halved between the outcomes."""
    return np.linspace(0, 1, 51), cells / 2, cells / 2


def a_diagram(**changes):
    count = np.array([400.0, 0.0, 30.0, 60.0, 0.0, 510.0])
    score = np.array([0.05, np.nan, 0.42, 0.60, np.nan, 0.95])
    frequency = np.array([0.02, np.nan, 0.30, 0.66, np.nan, 0.90])
    half = np.array([0.01, np.nan, 0.17, 0.12, np.nan, 0.03])
    cells = np.zeros(50)
    cells[[2, 3, 20, 21, 30, 47, 48]] = [200, 200, 15, 15, 60, 255, 255]
    settings = {
        "edges": np.linspace(0, 1, 7),
        "score": score,
        "frequency": frequency,
        "count": count,
        "low": frequency - half,
        "high": frequency + half,
        "notion": "binary",
        "label": None,
        "level": 0.95,
        "n": 1000.0,
        "estimator": "uniform:6",
        "error": 0.0432,
        "by_outcome": by_outcome(cells),
        "support": (0.0, 1.0),
    }
    return SimpleNamespace(**settings | changes)


def a_curve(**changes):
    score = np.linspace(0, 1, 201)
    defined = (score > 0.1) & (score < 0.8) & ~((score > 0.4) & (score < 0.5))
    probability = np.where(defined, score**1.5, np.nan)
    settings = {
        "score": score,
        "value": probability,
        "point": probability,
        "density": np.where(defined, 1.5, 0.0),
        "n_eff": np.where(defined, 160.0, 0.0),
        "low": probability - 0.05 * score,
        "high": probability + 0.05 * score,
        "lce": probability - score,
        "bandwidth": 0.03,
        "kernel": "triweight",
        "n_boot": 200,
        "discrete": False,
        "by_outcome": by_outcome(np.where(np.arange(50) < 40, 25.0, 0.0)),
    }
    base = {
        name: getattr(a_diagram(), name) for name in ("notion", "label", "level", "n", "error", "support")
    }
    return SimpleNamespace(**base | settings | changes)


DRAWINGS = {
    "diagram": lambda ax: plot.diagram(a_diagram(), ax),
    "curve": lambda ax: plot.curve(a_curve(), ax),
    "overlay": lambda ax: plot.overlay(a_curve(), a_diagram(), ax),
    "local_error": lambda ax: plot.local_error(a_curve(), ax),
}
SQUARE = ["diagram", "curve", "overlay"]


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    plt.close("all")
    yield
    plt.close("all")


def axes(width=3.4, height=3.8):
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def panel_under(ax):
    return next(
        other for other in ax.figure.axes if other is not ax and other.get_shared_x_axes().joined(ax, other)
    )


def of_type(ax, kind):
    return [group for group in ax.collections if isinstance(group, kind)]


def curves_of(ax):
    """Lines of curves: neither the diagonal nor the ticks of single rows."""
    return [line for line in ax.lines if line.get_label() != "calibrated" and line.get_marker() != "|"]


def drawn_points(ax):
    lines = [line.get_xydata() for line in curves_of(ax)]
    groups = [
        path.vertices
        for group in ax.collections
        for path in group.get_paths()
        if len(group.get_offsets()) < 2
    ]
    points = np.concatenate(
        [np.empty((0, 2)), *lines, *groups, *(group.get_offsets() for group in of_type(ax, PathCollection))]
    )
    return points[np.isfinite(points).all(axis=1)]


def shown_texts(figure):
    """Every text that a reader sees, with its box."""
    figure.draw_without_rendering()
    found = list(figure.texts)
    for legend in [*figure.legends, *(ax.get_legend() for ax in figure.axes)]:
        found += [] if legend is None else [legend.get_title(), *legend.get_texts()]
    for ax in figure.axes:
        if not ax.axison:
            continue
        found += [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.texts]
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            found += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    return {text: text.get_window_extent() for text in found if text.get_visible() and text.get_text()}


def assert_texts_apart_and_inside(figure):
    boxes = shown_texts(figure)
    for text, box in boxes.items():
        assert box.x0 >= -0.5, text
        assert box.y0 >= -0.5, text
        assert box.x1 <= figure.bbox.width + 0.5, text
        assert box.y1 <= figure.bbox.height + 0.5, text
    for (first, a), (second, b) in combinations(boxes.items(), 2):
        overlap = min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5
        assert not overlap, (first, second)


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_given_axes_are_used_and_returned(name):
    ax = axes()
    before = plt.get_fignums()
    assert DRAWINGS[name](ax) is ax
    assert plt.get_fignums() == before
    assert plt.gca() is ax


@pytest.mark.parametrize("name", DRAWINGS)
def test_without_axes_one_figure_is_made(name):
    ax = DRAWINGS[name](None)
    assert plt.get_fignums() == [ax.figure.number]
    ax.figure.canvas.draw()


@pytest.mark.full
@pytest.mark.parametrize("name", DRAWINGS)
def test_rcparams_stay_as_they_are(name):
    before = dict(matplotlib.rcParams)
    DRAWINGS[name](None).figure.canvas.draw()
    assert dict(matplotlib.rcParams) == before


@pytest.mark.no_cover
@pytest.mark.parametrize("name", DRAWINGS)
@pytest.mark.parametrize("width", [3.4, 6.0])
def test_no_text_overlaps_another_or_leaves_the_figure(name, width):
    ax = axes(width, width * (0.75 if name == "local_error" else 1.12))
    DRAWINGS[name](ax)
    assert_texts_apart_and_inside(ax.figure)


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize("name", SQUARE)
@pytest.mark.parametrize(
    ("size", "layout"),
    [
        *(((6, 3), layout) for layout in (None, "constrained", "tight")),
        *(((3, 8), layout) for layout in (None, "constrained", "tight")),
        *((size, "constrained") for size in ((3.4, 3.8), (6.4, 4.8))),
    ],
)
def test_the_main_panel_is_square(name, size, layout):
    figure, ax = plt.subplots(figsize=size, layout=layout)
    DRAWINGS[name](ax)
    figure.draw_without_rendering()
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height)
    assert ax.get_aspect() == 1
    assert ax.get_xlim() == ax.get_ylim()


@pytest.mark.parametrize("name", SQUARE)
def test_the_diagonal_is_there_once(name):
    ax = axes()
    DRAWINGS[name](ax)
    DRAWINGS[name](ax)
    diagonal = [line for line in ax.lines if line.get_label() == "calibrated"]
    assert len(diagonal) == 1
    np.testing.assert_array_equal(*diagonal[0].get_xydata().T)
    assert [text.get_text() for text in ax.get_legend().get_texts()].count("calibrated") == 1


def test_no_line_connects_the_bins():
    ax = plot.diagram(a_diagram(), axes())
    assert [line.get_label() for line in ax.lines] == ["calibrated"]
    bars = [bar for group in of_type(ax, LineCollection) for bar in group.get_segments()]
    assert len(bars) == 4
    assert all(len(bar) == 2 and bar[0, 0] == bar[1, 0] for bar in bars)


def test_bins_without_mass_are_not_drawn():
    result = a_diagram()
    ax = plot.diagram(result, axes(), color="black")
    (markers,), (bars,) = of_type(ax, PathCollection), of_type(ax, LineCollection)
    held = result.count > 0
    np.testing.assert_array_equal(markers.get_offsets(), np.c_[result.score, result.frequency][held])
    np.testing.assert_array_equal(
        [bar[:, 1] for bar in bars.get_segments()], np.c_[result.low, result.high][held]
    )


def test_a_diagram_of_one_bin_is_drawn():
    alone = {name: np.array([0.5]) for name in ("score", "frequency", "low", "high", "count")}
    ax = plot.diagram(a_diagram(**alone), axes())
    assert len(of_type(ax, PathCollection)[0].get_offsets()) == 1
    ax.figure.canvas.draw()


def test_marker_area_grows_with_the_count():
    result = a_diagram()
    (markers,) = of_type(plot.diagram(result, axes(), color="black"), PathCollection)
    order = np.argsort(result.count[result.count > 0])
    assert np.all(np.diff(markers.get_sizes()[order]) > 0)


@pytest.mark.parametrize("name", DRAWINGS)
def test_nothing_is_drawn_beyond_the_data(name):
    ax = axes()
    DRAWINGS[name](ax)
    x, y = drawn_points(ax).T
    bins, grid = a_diagram(), a_curve()
    sources = [bins.score] if name in ("diagram", "overlay") else []
    sources += [grid.score[np.isfinite(grid.value)]] if name != "diagram" else []
    data = np.concatenate(sources)
    assert x.min() >= np.nanmin(data)
    assert x.max() <= np.nanmax(data)
    assert y.min() >= (-1 if name == "local_error" else 0)
    assert y.max() <= 1


def test_curve_and_band_break_where_the_curve_is_undefined():
    ax = plot.curve(a_curve(low=np.zeros(201), high=np.ones(201)), axes())
    x = drawn_points(ax)[:, 0]
    assert not np.any((x > 0.4) & (x < 0.5))
    assert of_type(ax, PolyCollection)


def test_a_curve_without_a_band_has_none():
    ax = plot.curve(a_curve(low=None, high=None), axes())
    assert not of_type(ax, PolyCollection)
    assert [text.get_text() for text in ax.get_legend().get_texts()][:2] == ["calibrated", "curve"]
    plot.local_error(a_curve(low=None, high=None), axes())


@pytest.mark.full
def test_results_without_any_data_are_drawn_empty():
    nothing = {name: np.full(201, np.nan) for name in ("value", "low", "high", "lce")}
    bare = {"n_eff": np.zeros(201), "by_outcome": by_outcome(np.full(50, 1e-9))}
    for draw in (plot.curve, plot.local_error):
        ax = draw(a_curve(**nothing | bare), axes())
        assert not len(drawn_points(ax))
        ax.figure.canvas.draw()
    ax = plot.diagram(a_diagram(count=np.zeros(6)), axes())
    assert not of_type(ax, PathCollection)
    ax.figure.canvas.draw()


def test_a_curve_fades_with_the_number_of_rows_and_has_no_band_below_ten():
    grid = a_curve()
    rows = np.where(grid.score > 0.6, 4.0, 160.0)
    ax = plot.curve(a_curve(n_eff=rows), axes())
    alphas = {line.get_alpha(): line for line in curves_of(ax)}
    assert min(alphas) == pytest.approx(0.3)
    assert max(alphas) == 1
    faint = alphas[min(alphas)]
    few = np.isfinite(faint.get_ydata())
    assert few[(grid.score > 0.6) & np.isfinite(grid.value)].all()
    assert min(line.get_alpha() for line in curves_of(ax) if np.isfinite(line.get_ydata())[40]) == 1
    reach = max(
        path.vertices[:, 0].max() for band in of_type(ax, PolyCollection) for path in band.get_paths()
    )
    assert 0.45 < reach <= 0.605
    # The band fades towards its end, without a cliff: the last piece is nearly as light as the paper.
    lightest = max(band.get_facecolor()[0, :3].min() for band in of_type(ax, PolyCollection))
    assert lightest > 0.93


def test_single_rows_are_ticks_where_there_is_no_band():
    cells = np.zeros(50)
    cells[[5, 20, 45]] = [100, 100, 2]
    grid = a_curve()
    ax = plot.curve(
        a_curve(n_eff=np.where(grid.score > 0.6, 4.0, 160.0), by_outcome=by_outcome(cells)), axes()
    )
    ticks = [line for line in ax.lines if line.get_marker() == "|"]
    assert [len(line.get_xdata()) for line in ticks] == [1, 1]
    assert all(0.9 < x < 0.92 for line in ticks for x in line.get_xdata())
    assert "single rows" in [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("name", ["curve", "diagram"])
def test_log_odds_have_equal_ranges_and_the_diagonal(name):
    draw, result = {"curve": (plot.curve, a_curve()), "diagram": (plot.diagram, a_diagram())}[name]
    ax = draw(result, axes(), scale="log-odds")
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    assert box.width == pytest.approx(box.height)
    assert ax.get_xscale() == ax.get_yscale() == panel_under(ax).get_xscale() == "logit"
    assert ax.get_xlim() == ax.get_ylim()
    assert {text.get_text() for text in ax.get_yticklabels()} >= {"0.1", "0.5"}
    (diagonal,) = [line for line in ax.lines if line.get_label() == "calibrated"]
    np.testing.assert_array_equal(*diagonal.get_xydata().T)
    assert_texts_apart_and_inside(ax.figure)
    with pytest.raises(ValueError, match="scale must be one of"):
        draw(result, axes(), scale="log")


def test_a_curve_stays_within_its_band_on_log_odds():
    ax = plot.curve(a_curve(low=np.zeros(201)), axes(), scale="log-odds")
    low, high = ax.get_ylim()
    for band in of_type(ax, PolyCollection):
        for path in band.get_paths():
            assert (path.vertices[:, 1] >= low).all()
            assert (path.vertices[:, 1] <= high).all()


@pytest.mark.parametrize("name", DRAWINGS)
def test_the_size_of_a_new_figure_is_kept(name):
    draw = {"overlay": lambda **size: plot.overlay(a_curve(), a_diagram(), **size)}
    draw |= {"local_error": lambda **size: plot.local_error(a_curve(), **size)}
    draw |= {"diagram": lambda **size: plot.diagram(a_diagram(), **size)}
    draw |= {"curve": lambda **size: plot.curve(a_curve(), **size)}
    assert tuple(draw[name](figsize=(5, 3)).figure.get_size_inches()) == (5, 3)


def test_of_many_classes_those_with_the_largest_errors_are_drawn():
    results = {f"class {i}": a_diagram(error=i / 1000) for i in range(30)}
    panels = plot.small_multiples(results)
    assert [ax.get_title() for ax in panels] == [f"class {i}" for i in range(29, 21, -1)]
    assert panels[0].figure.get_suptitle() == "8 of 30 classes, largest error first"
    assert panels[0].figure.get_figheight() < 8
    assert_texts_apart_and_inside(panels[0].figure)
    assert len(plot.small_multiples(results, most=3)) == 3
    assert plot.small_multiples({"a": a_diagram()})[0].figure.get_suptitle() == ""


def test_a_faint_band_does_not_flatten_the_local_error():
    grid = a_curve()
    few = grid.score > 0.6
    wide = {"low": np.where(few, 0.0, grid.low), "high": np.where(few, 1.0, grid.high)}
    ax = plot.local_error(a_curve(n_eff=np.where(few, 4.0, 160.0), **wide), axes())
    assert ax.get_ylim()[1] < 0.2
    assert ax.get_ylim()[1] > np.nanmax(np.abs(grid.lce))


def test_the_histogram_lies_underneath_on_the_same_x_axis():
    ax = plot.diagram(a_diagram(), axes())
    below = panel_under(ax)
    ax.figure.canvas.draw()
    main, strip = ax.get_window_extent(), below.get_window_extent()
    assert below.get_xlim() == ax.get_xlim()
    assert (strip.x0, strip.x1) == pytest.approx((main.x0, main.x1))
    assert strip.y1 < main.y0
    assert (ax.get_xlabel(), below.get_xlabel(), below.get_ylabel()) == ("", "score", "rows")


def test_the_histogram_can_be_left_out():
    ax = plot.curve(a_curve(), axes(), histogram=False, legend=False)
    assert ax.figure.axes == [ax]
    assert ax.get_xlabel() == "score"
    assert ax.get_legend() is None


@pytest.mark.full
def test_two_results_share_one_histogram_panel():
    ax = plot.diagram(a_diagram(), axes(), label="before")
    plot.diagram(a_diagram(error=0.01), ax, label="after", color="black")
    assert len(ax.figure.axes) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()][1:] == [
        "before, binned ECE 0.043",
        "after, binned ECE 0.010",
    ]


def test_a_dominating_cell_makes_the_count_axis_logarithmic_and_says_so():
    counts = np.ones(50)
    counts[-1] = 8400
    ax = plot.diagram(a_diagram(by_outcome=by_outcome(counts)), axes())
    below = panel_under(ax)
    assert (below.get_yscale(), below.get_ylabel()) == ("symlog", "rows, log")
    low, high = below.get_ylim()
    assert low < -4200
    assert high > 4200


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize("layout", ["constrained", "compressed", "tight", None])
def test_a_grid_of_subplots_holds_them(layout):
    figure, grid = plt.subplots(2, 3, figsize=(9, 7.5), layout=layout)
    drawings = list(DRAWINGS.values())
    for i, ax in enumerate(grid.flat):
        drawings[i % 4](ax)
    if layout == "constrained":
        assert_texts_apart_and_inside(figure)
    else:
        figure.canvas.draw()


def test_free_standing_axes_and_subfigures_hold_them():
    figure = plt.figure(figsize=(8, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    plot.diagram(a_diagram(), left.subplots())
    plot.curve(a_curve(), right.add_axes((0.2, 0.2, 0.7, 0.7)))
    figure.canvas.draw()


def test_the_text_avoids_the_data():
    high = np.array([0.95, 0.97])
    above = a_diagram(
        score=np.array([0.1, 0.3]), frequency=high, low=high - 0.1, high=high + 0.02, count=np.ones(2)
    )
    below = a_diagram(
        score=1 - above.score, frequency=1 - high, low=1 - above.high, high=1 - above.low, count=np.ones(2)
    )
    everywhere = a_diagram(
        score=np.linspace(0, 1, 6),
        frequency=np.full(6, 0.5),
        low=np.zeros(6),
        high=np.ones(6),
        count=np.ones(6),
    )
    for result, (x, y) in ((above, (1, 0)), (below, (0, 1)), (everywhere, (None, 2))):
        ax = plot.diagram(result, axes())
        ax.figure.canvas.draw()
        main, text = ax.get_window_extent(), ax.get_legend().get_window_extent()
        assert x is None or (text.x0 + text.x1 > main.x0 + main.x1) == bool(x)
        assert (text.y0 + text.y1 > main.y0 + main.y1) == bool(y)
        assert (text.y0 >= main.y1) == (y == 2)


@pytest.mark.full
def test_axes_say_what_is_measured():
    def labels(**changes):
        ax = plot.diagram(a_diagram(**changes), axes())
        return panel_under(ax).get_xlabel(), ax.get_ylabel()

    assert labels() == ("score", "frequency of the class")
    assert labels(label=3) == ("score of class 3", "frequency of the class")
    assert labels(notion="confidence", support=(0.25, 1.0)) == ("confidence", "accuracy")


def test_confidences_that_cannot_occur_are_shaded():
    ax = plot.diagram(a_diagram(notion="confidence", support=(0.25, 1.0)), axes())
    (shade,) = ax.patches
    assert shade.get_extents().transformed(ax.transData.inverted()).x1 == pytest.approx(0.25)
    assert ax.lines[0].get_xdata()[0] == 0.25
    assert not plot.diagram(a_diagram(), axes()).patches


def test_only_confidences_below_equal_chances_are_shaded():
    assert plot.curve(a_curve(support=(0.25, 1.0), notion="confidence"), axes()).patches
    assert not plot.curve(a_curve(support=(0.25, 1.0), notion="binary"), axes()).patches


def test_error_size_and_level_are_written():
    legend = plot.diagram(a_diagram(n=12345.0, level=0.9), axes()).get_legend()
    facts = legend.get_title().get_text().replace("\n", ", ")
    assert facts == "binned ECE 0.043, n = 12,345, 90 % intervals"
    assert [text.get_text() for text in legend.get_texts()] == [
        "calibrated",
        "score too high",
        "no error found",
    ]
    legend = plot.diagram(a_diagram(error=2e-5), axes()).get_legend()
    assert legend.get_title().get_text().startswith("binned ECE < 0.001")


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["$5$", AWKWARD, "two\nlines", r"a\$b", "", "été", 7, None])
def test_class_names_are_text(name):
    ax = plot.diagram(a_diagram(label=name), axes(), label="model $x_$")
    assert_texts_apart_and_inside(ax.figure)
    plot.small_multiples({name: a_diagram(), "other": a_curve()})[0].figure.canvas.draw()


@pytest.mark.full
def test_small_multiples_are_square_panels_titled_by_class_on_the_same_axes():
    results = {name: a_diagram(label=name) for name in ["a", "b$", "c", "d", "e", "f", 7]}
    panels = plot.small_multiples(results)
    figure = panels[0].figure
    assert plt.get_fignums() == [figure.number]
    assert [ax.get_title() for ax in panels] == ["a", r"b\$", "c", "d", "e", "f", "7"]
    figure.canvas.draw()
    for ax in panels:
        box = ax.get_window_extent()
        assert box.width == pytest.approx(box.height)
        assert ax.get_xlim() == panels[0].get_xlim() == ax.get_ylim()
    assert len({round(ax.get_window_extent().width, 3) for ax in panels}) == 1


@pytest.mark.full
@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("width", "histogram", "count"),
    [(3.4, True, 1), (6.0, False, 1), (3.4, False, 2), (6.0, True, 7), (3.4, True, 9)],
)
def test_small_multiples_keep_their_texts_apart(width, histogram, count):
    with plt.rc_context({"figure.figsize": (width, 4.0)}):
        results = {f"the class {i}" + "!" * 4 * i: (a_curve, a_diagram)[i % 2]() for i in range(count)}
        results["saturated"] = a_diagram(by_outcome=by_outcome(np.geomspace(1, 8400, 50)))
        panels = plot.small_multiples(results, histogram=histogram, most=10)
        assert_texts_apart_and_inside(panels[0].figure)
        assert not histogram or panel_under(panels[0]).get_yscale() == "symlog"


def test_small_multiples_use_the_given_axes():
    figure, grid = plt.subplots(2, 2, layout="constrained", sharex=True, sharey=True)
    panels = plot.small_multiples({"a": a_diagram(), "b": a_curve(), "c": a_diagram()}, grid)
    assert list(panels) == list(grid.flat[:3])
    assert not grid[1, 1].axison
    assert plt.get_fignums() == [figure.number]
    figure.canvas.draw()
    plot.small_multiples({"a": a_diagram()}, [plt.figure().subplots()])
    plot.small_multiples({"a": a_diagram()}, plt.figure().subplots())


@pytest.mark.parametrize(("count", "axes"), [(0, None), (0, 4), (5, 4)])
def test_small_multiples_need_results_and_enough_axes(count, axes):
    grid = None if axes is None else plt.subplots(2, 2)[1]
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=f"got {count} results"):
        plot.small_multiples({i: a_diagram() for i in range(count)}, grid)
    assert plt.get_fignums() == before


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, calibrant.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", DRAWINGS)
def test_without_matplotlib_the_error_says_what_to_install(monkeypatch, name):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'calibrant\[plot\]'"):
        DRAWINGS[name](None)


def test_a_curve_without_a_band_does_not_promise_one():
    ax = axes()
    plot.curve(a_curve(low=None, high=None), ax)
    texts = [text.get_text() for text in shown_texts(ax.figure)]
    assert "curve" in texts
    assert not any("band" in text for text in texts)


def test_scores_that_are_few_are_points_with_bars_and_no_line():
    score = np.array([0.1, 0.4, 0.9])
    rows = {"score": score, "n_eff": np.array([50.0, 40.0, 3.0]), "density": np.ones(3), "discrete": True}
    middle = {
        "value": score,
        "point": score,
        "low": score - 0.05,
        "high": score + 0.05,
        "lce": 0 * score,
    }
    few = a_curve(**rows, **middle)
    for draw in (plot.curve, plot.local_error):
        ax = draw(few)
        drawn = [line for line in ax.lines if line.get_marker() == "o"]
        assert all(line.get_linestyle() == "None" for line in drawn)
        assert sorted(x for line in drawn for x in line.get_xdata()) == list(score)
        bars = [each for each in ax.collections if isinstance(each, LineCollection)]
        assert sum(len(each.get_segments()) for each in bars) == 3
        assert not any(isinstance(each, PolyCollection) and len(each.get_paths()) for each in ax.collections)
        # The score that three rows have is faint.
        assert [line.get_alpha() for line in drawn if 0.9 in line.get_xdata()] == [0.3]
        assert "95 % intervals" in ax.get_legend().get_title().get_text()
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["calibrated", "no error found"]
    handles = plot.models({"few": few, "many": a_curve()}).get_legend().get_lines()
    assert [line.get_marker() for line in handles if line.get_label().startswith("few")] == ["o"]
