"""Pictures of decisions: net benefit above the regret, the cost by threshold, and risk-coverage curves."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection
from test_plot import _no_figure_is_left, assert_texts_apart_and_inside, axes  # noqa: F401

import calibrant
from calibrant import BestThreshold, RegretCurve, plot
from calibrant.decisions import NetBenefitDifference
from calibrant.decisions.decision import COST_THRESHOLDS

AWKWARD = r"$\frac$ and a name much longer than any axis has room for"


def a_curve(*, other=False, label=None):
    at = np.arange(1, 20) / 20
    value = at * (1 - at) / 5
    net = 0.4 * (1 - at) - 0.05
    difference = NetBenefitDifference(value - 0.02, value - 0.05, value + 0.01) if other else None
    return RegretCurve(
        at, value, value / 2, value + 0.02, 0.95, net, 0.4 - at / (1 - at) * 0.6, net + 0.03, 1000.0, label,
        difference,
    )  # fmt: skip


def a_threshold(**changes):
    values = {"value": 0.3, "low": 0.2, "high": 0.35, "cost": 0.41, "cost_low": 0.38, "cost_high": 0.45}
    values |= {"cost_as_is": 0.5, "cost_recalibrated": 0.4, "gain": 0.09, "gain_low": 0.05, "gain_high": 0.12}
    costs = tuple(0.4 + (COST_THRESHOLDS - 0.3) ** 2)
    return BestThreshold(
        **values | {"level": 0.95, "implied_threshold": 0.1, "n": 1000.0, "costs": costs} | changes
    )


@pytest.mark.parametrize("other", [False, True])
def test_panels_that_are_given_are_drawn_on(other):
    panels = plt.subplots(2 + other, 1)[1]
    before = plt.get_fignums()
    assert plot.regret(a_curve(other=other), panels) is panels
    assert plt.get_fignums() == before
    with pytest.raises(ValueError, match=f"ax must be {2 + other} panels, got {3 - other}"):
        plot.regret(a_curve(other=other), plt.subplots(3 - other, 1)[1])


@pytest.mark.parametrize("other", [False, True])
def test_without_panels_one_figure_is_made(other):
    panels = a_curve(other=other, label=AWKWARD).plot()
    assert len(panels) == 2 + other
    assert plt.get_fignums() == [panels[0].figure.number]
    assert_texts_apart_and_inside(panels[0].figure)


def test_the_regret_has_its_band_and_its_largest_value():
    found = a_curve()
    top, bottom = plot.regret(found)
    regret, worst = bottom.lines
    np.testing.assert_array_equal(regret.get_xydata().T, [found.thresholds, found.value])
    assert worst.get_xydata().tolist() == [[found.worst.threshold, found.worst.value]]
    (band,) = [one for one in bottom.collections if isinstance(one, PolyCollection)]
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(found.high.max())
    assert corners[:, 1].min() == pytest.approx(found.low.min())
    assert bottom.get_ylim()[0] == 0
    texts = [text.get_text() for text in bottom.get_legend().get_texts()]
    assert texts == ["95 % band", "decision regret", "largest, at 0.5"]
    assert (top.get_ylabel(), bottom.get_xlabel()) == ("net benefit", "threshold")


def test_decision_curves_are_of_the_model_recalibrated_always_and_never():
    found = a_curve(label="ill")
    top, bottom = plot.regret(found)
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in top.lines}
    np.testing.assert_array_equal(drawn["model"], found.net_benefit)
    np.testing.assert_array_equal(drawn["recalibrated"], found.recalibrated)
    np.testing.assert_array_equal(drawn["always act"], found.treat_all)
    assert set(drawn["never act"]) == {0}
    assert bottom.get_xlabel() == "threshold of class ill"
    # Far below zero nobody acts: what lies there would press the rest together.
    low, high = top.get_ylim()
    assert -0.3 * high < low < 0 < found.net_benefit.max() < high


def test_the_axis_spans_the_thresholds_of_the_caller():
    for panel in plot.regret(a_curve()):
        assert panel.get_xlim() == (0.05, 0.95)
    one = calibrant.regret_curve([0, 1, 1, 0] * 20, [0.2, 0.7, 0.8, 0.3] * 20, thresholds=[0.4])
    assert plot.regret(one)[0].get_xlim() == (0, 1)


def test_a_difference_has_a_panel_of_its_own():
    found = a_curve(other=True)
    *_, last = plot.regret(found)
    np.testing.assert_array_equal(last.lines[0].get_ydata(), found.difference.value)
    low, high = last.get_ylim()
    assert low == -high
    assert high > found.difference.high.max()


def test_the_cost_has_two_marks_yours_and_the_best_with_its_interval():
    found = a_threshold()
    ax = found.plot()
    lines = {line.get_marker(): line for line in ax.lines}
    np.testing.assert_array_equal(lines["None"].get_ydata(), found.costs)
    assert lines["s"].get_xydata().tolist() == [[0.1, 0.5]]
    assert lines["o"].get_xydata().tolist() == [[0.3, 0.41]]
    (bar,) = [one for one in ax.collections if isinstance(one, LineCollection)]
    np.testing.assert_allclose(bar.get_segments()[0], [[0.2, 0.41], [0.35, 0.41]])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts[1:] == ["your threshold 0.1, cost 0.5", "best 0.3 [0.2, 0.35], cost 0.41"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("threshold", "cost per row")
    low, high = ax.get_ylim()
    assert low < 0.4
    assert 0.5 < high < 1
    assert_texts_apart_and_inside(ax.figure)
    given = axes()
    assert found.plot(given) is given


def test_never_acting_lies_at_the_end_of_the_axis():
    ax = a_threshold(value=np.inf, high=np.inf).plot()
    (best,) = [line for line in ax.lines if line.get_marker() == "o"]
    assert best.get_xydata().tolist() == [[1.0, 0.41]]
    assert "best never act, cost 0.41" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_costs_are_those_of_the_rows():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(400), 2)
    y = rng.random(400) < score**2
    found = calibrant.best_threshold(y, score, (1, 9), rng=0)
    for t, cost in zip(COST_THRESHOLDS, found.costs, strict=True):
        act = score >= t
        assert cost == pytest.approx(np.mean(act & ~y) + 9 * np.mean(~act & y))
    assert found.costs[list(COST_THRESHOLDS).index(0.1)] == pytest.approx(found.cost_as_is)


def test_a_threshold_near_zero_lies_on_a_log_odds_axis():
    ax = a_threshold(value=0.001, low=0.0005, high=0.002).plot()
    assert ax.get_xscale() == "logit"
    assert_texts_apart_and_inside(ax.figure)
    assert a_threshold().plot().get_xscale() == "linear"


def test_the_size_of_a_new_figure_is_kept_and_settings_stay():
    before = dict(matplotlib.rcParams)
    for found in (a_curve(), a_curve(other=True)):
        assert tuple(found.plot(figsize=(5, 6))[0].figure.get_size_inches()) == (5, 6)
    assert tuple(a_threshold().plot(figsize=(5, 3)).figure.get_size_inches()) == (5, 3)
    assert dict(matplotlib.rcParams) == before
