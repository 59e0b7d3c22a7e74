"""Forests, several models and scores by outcome: what is drawn, and that all pictures can be read."""

import runpy
from pathlib import Path

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.patches import StepPatch
from test_plot import (
    _no_figure_is_left,  # noqa: F401
    a_curve,
    assert_texts_apart_and_inside,
    of_type,
)

import calibrant
from calibrant import ScoreHistogram, plot


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


@pytest.mark.no_cover
@pytest.mark.parametrize(("width", "count"), [(3.3, 1), (3.3, 3), (3.3, 14), (6.4, 10)])
def test_a_grid_of_histograms_keeps_its_texts_apart(width, count):
    with plt.rc_context({"figure.figsize": (width, 4.0)}):
        results = {f"class {i}": a_histogram(saturated=i % 2 == 1, label=i) for i in range(count)}
        panels = plot.small_multiples(results)
        assert_texts_apart_and_inside(panels[0].figure)
        assert len({ax.get_ylim() for ax in panels}) == len({ax.get_yscale() for ax in panels}) == 1


def test_a_forest_needs_an_estimate():
    for draw in (plot.groups, plot.estimators):
        with pytest.raises(ValueError, match="at least one name to an Estimate, got none"):
            draw({})
    assert not plt.get_fignums()


def test_the_classes_of_an_estimate_are_groups():
    rng = np.random.default_rng(0)
    found = calibrant.estimate(
        rng.integers(0, 3, 300), rng.dirichlet(np.ones(3), 300), notion="classwise", rng=0
    )
    ax = plot.groups(found.by_class, overall=found)
    assert sorted(label.get_text() for label in ax.get_yticklabels()) == ["0", "1", "2"]


# Several models.


def test_models_are_curves_on_one_square():
    curves = some_curves(6)
    ax = plot.models(curves)
    drawn = [line for line in ax.lines if line.get_label() != "calibrated" and len(line.get_xdata())]
    firm = [line for line in drawn if np.isfinite(line.get_ydata()).any()]
    for line, result in zip(firm, curves.values(), strict=True):
        np.testing.assert_array_equal(line.get_ydata(), result.value)
    assert ax.get_aspect() == 1
    assert not of_type(ax, PolyCollection)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[:3] == ["calibrated", "model 0, < 0.001", "model 1, 0.010"]
    assert ax.get_legend().get_title().get_text().replace("\n", ", ") == "n = 1,000, ECE by model"


def test_two_models_have_their_bands():
    ax = plot.models(some_curves(2))
    assert len([band for band in of_type(ax, PolyCollection) if band.get_paths()]) == 2
    assert "95 % bands" in ax.get_legend().get_title().get_text()


@pytest.mark.parametrize("count", [0, 7])
def test_more_models_than_can_be_told_apart_are_refused(count):
    with pytest.raises(ValueError, match=f"1 to 6 curves to be told apart, got {count}"):
        plot.models(some_curves(count))
    assert not plt.get_fignums()


def test_models_of_different_notions_are_refused():
    with pytest.raises(ValueError, match="of one notion, got"):
        plot.models({"a": a_curve(), "b": a_curve(notion="confidence")})


def test_models_are_shaded_where_none_can_have_a_score():
    curves = {start: a_curve(notion="confidence", support=(start, 1.0)) for start in (0.5, 0.1, 0.3)}
    (shade,) = plot.models(curves).patches
    assert shade.get_extents().transformed(shade.axes.transData.inverted()).x1 == pytest.approx(0.1)


def test_a_legend_above_leaves_a_new_panel_its_size():
    def side(ax):
        ax.figure.canvas.draw()
        return ax.get_window_extent().width / ax.figure.dpi

    with plt.rc_context({"figure.figsize": (3.3, 3.3)}):
        assert side(plot.models(some_curves(6))) > 0.95 * side(plot.models(some_curves(1)))


# Scores by outcome.


def brute(score, outcome, weight, bins):
    return [np.histogram(score[part], bins, (0, 1), weights=weight[part])[0] for part in (outcome, ~outcome)]


def test_a_histogram_counts_each_outcome():
    rng = np.random.default_rng(1)
    score, outcome = rng.random(500), rng.random(500) < 0.3
    found = calibrant.score_histogram(outcome, score, bins=13)
    positive, negative = brute(score, outcome, np.ones(500), 13)
    np.testing.assert_array_equal(found.positive, positive)
    np.testing.assert_array_equal(found.negative, negative)
    assert (found.n, found.notion, found.edges.size) == (500, "binary", 14)
    assert repr(found).startswith("ScoreHistogram(class")


def test_weights_are_scaled_to_the_effective_number_of_rows():
    rng = np.random.default_rng(2)
    score, outcome, weight = rng.random(300), rng.random(300) < 0.6, rng.gamma(1.0, 5.0, 300)
    found = calibrant.score_histogram(outcome, score, bins=10, sample_weight=weight)
    positive, negative = brute(score, outcome, weight, 10)
    scale = weight.sum() / (weight**2).sum()
    np.testing.assert_allclose(found.positive, positive * scale)
    np.testing.assert_allclose(found.negative, negative * scale)
    assert found.positive.sum() + found.negative.sum() == pytest.approx(found.n)
    counts = calibrant.score_histogram(outcome, score, counts=np.full(300, 3))
    np.testing.assert_allclose(counts.positive, 3 * calibrant.score_histogram(outcome, score).positive)


def test_each_notion_has_its_histogram():
    rng = np.random.default_rng(4)
    y_prob = rng.dirichlet(np.ones(3), 200)
    y_true = np.array(["a", "b", "c"])[rng.integers(0, 3, 200)]
    right = calibrant.score_histogram(y_true, y_prob)
    assert right.positive.sum() == (y_prob.argmax(axis=1) == np.searchsorted(["a", "b", "c"], y_true)).sum()
    assert (right.notion, right.support[0]) == ("confidence", pytest.approx(1 / 3))
    one = calibrant.score_histogram(y_true, y_prob, notion="binary", pos_label="b")
    each = calibrant.score_histogram(y_true, y_prob, notion="classwise")
    assert list(each) == ["a", "b", "c"]
    np.testing.assert_array_equal(each["b"].positive, one.positive)
    assert one.label == each["b"].label == "b"
    assert len(each.plot()) == 3
    assert one.plot().get_xlabel() == "score of class b"
    assert right.plot().get_xlabel() == "confidence"


def test_a_histogram_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="bins must be an integer of at least 1, got 0"):
        calibrant.score_histogram([0, 1], [0.2, 0.7], bins=0)
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        calibrant.score_histogram([0, 1], [0.2, 0.7], binning="uniform:3")


def test_outcomes_are_drawn_to_either_side():
    result = a_histogram()
    ax = plot.score_histograms(result)
    up, down = [patch for patch in ax.patches if isinstance(patch, StepPatch)]
    np.testing.assert_array_equal(up.get_data().values, result.positive)
    np.testing.assert_array_equal(down.get_data().values, -result.negative)
    ax.figure.canvas.draw()
    assert not any("−" in label.get_text() or "-" in label.get_text() for label in ax.get_yticklabels())
    assert (ax.get_yscale(), ax.get_ylabel(), ax.get_xlabel()) == ("linear", "rows", "score")
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"positive, n = {up.get_data().values.sum():,.0f}", "negative, n = 664"]


@pytest.mark.full
@pytest.mark.parametrize(
    "result",
    [
        a_histogram(saturated=True),
        ScoreHistogram(
            np.linspace(0, 1, 3), np.array([0.0, 3.0]), np.array([90.0, 0.0]), "binary", None, 93.0
        ),
    ],
    ids=["a cell", "a side"],
)
def test_what_would_be_dwarfed_makes_the_axis_logarithmic_and_says_so(result):
    ax = plot.score_histograms(result)
    assert (ax.get_yscale(), ax.get_ylabel()) == ("symlog", "rows, log")
    low, high = ax.get_ylim()
    assert low < -result.negative.max()
    assert high > result.positive.max()


@pytest.mark.parametrize("empty", ["positive", "negative"])
def test_an_outcome_that_never_occurs_leaves_its_side_empty(empty):
    other = np.array([2.0, 5.0])
    sides = {"positive": other, "negative": other} | {empty: np.zeros(2)}
    result = ScoreHistogram(np.linspace(0, 1, 3), notion="confidence", label=None, n=7.0, **sides)
    assert_texts_apart_and_inside(plot.score_histograms(result).figure)


def test_models_with_the_same_scores_are_side_by_side_with_bars():
    score = np.array([0.1, 0.5, 0.9])
    few = {"score": score, "value": score, "point": score, "low": score - 0.05, "high": score + 0.05}
    few |= {"lce": 0 * score, "n_eff": np.full(3, 50.0), "density": np.ones(3), "discrete": True}
    ax = plot.models({name: a_curve(**few) for name in ("a", "b", "c")})
    points = [line for line in ax.lines if len(line.get_xdata()) == 3]
    assert [line.get_marker() for line in points] == ["o", "s", "D"]
    at = [line.get_transform().transform(line.get_xydata())[:, 0] for line in points]
    assert np.all(np.diff(at, axis=0) >= 4.5 / 72 * ax.figure.dpi - 1e-6)
    assert [len(bars.get_segments()) for bars in of_type(ax, LineCollection)] == [3, 3, 3]


# The gallery.


@pytest.mark.full
def test_the_gallery_shows_what_its_code_makes(tmp_path):
    docs = Path(__file__).parents[3] / "docs"
    space = runpy.run_path(str(docs / "make_figures.py"))
    made = {path.name for path in space["make"](tmp_path, dpi=40)}
    kept = list((docs / "images" / "figures").glob("*.png"))
    assert made == {path.name for path in kept}
    assert sum(path.stat().st_size for path in kept) < 500_000
    drawn_by_results = {"compare", "curve", "diagram", "regret", "score_histograms"}
    drawn_by_results |= {"monitor", "segments", "small_multiples"}
    text = (docs / "figures.md").read_text(encoding="utf-8")
    assert {name for name in plot.__all__ if f"plot.{name}(" not in text} == drawn_by_results
