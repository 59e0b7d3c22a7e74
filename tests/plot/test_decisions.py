"""Pictures of decisions: regret over thresholds above the decision curves, and one regret."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection, PolyCollection
from test_plot import _no_figure_is_left, assert_texts_apart_and_inside, axes  # noqa: F401

from calibrant.decisions import Difference, Regret, RegretCurve
from calibrant.inference.result import Null
from calibrant.plot.decisions import plot_regret, plot_regret_curve

AWKWARD = r"$\frac$ and a name much longer than any axis has room for"


def a_curve(*, other=False, label=None):
    at = np.arange(1, 20) / 20
    value = at * (1 - at) / 5
    net = 0.4 * (1 - at) - 0.05
    difference = Difference(value - 0.02, value - 0.05, value + 0.01) if other else None
    return RegretCurve(
        at, value, value / 2, value + 0.02, 0.95, net, 0.4 - at / (1 - at) * 0.6, net + 0.03, 1000.0, label,
        difference,
    )  # fmt: skip


def a_regret():
    return Regret(
        0.1, 0.05, 0.2, 0.95, 0.01, Null(0.002), 0.08, 0.5, 100.0, ((1.0, 0.0), (0.0, 9.0)), ("act", "leave"),
        (0, 1), 0.1,
    )  # fmt: skip


@pytest.mark.parametrize("other", [False, True])
def test_panels_that_are_given_are_drawn_on(other):
    panels = plt.subplots(2 + other, 1)[1]
    before = plt.get_fignums()
    assert plot_regret_curve(a_curve(other=other), panels) is panels
    assert plt.get_fignums() == before
    with pytest.raises(ValueError, match=f"axes must be {2 + other} panels, got {3 - other}"):
        plot_regret_curve(a_curve(other=other), plt.subplots(3 - other, 1)[1])


@pytest.mark.parametrize("other", [False, True])
def test_without_panels_one_figure_is_made(other):
    panels = a_curve(other=other, label=AWKWARD).plot()
    assert len(panels) == 2 + other
    assert plt.get_fignums() == [panels[0].figure.number]
    assert_texts_apart_and_inside(panels[0].figure)


def test_the_regret_has_its_band_and_its_worst_decision():
    found = a_curve()
    top, bottom = plot_regret_curve(found)
    regret, worst = top.lines
    np.testing.assert_array_equal(regret.get_xydata().T, [found.thresholds, found.value])
    assert worst.get_xydata().tolist() == [[found.worst.threshold, found.worst.value]]
    (band,) = [one for one in top.collections if isinstance(one, PolyCollection)]
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(found.high.max())
    assert corners[:, 1].min() == pytest.approx(found.low.min())
    assert top.get_ylim()[0] == 0
    assert [text.get_text() for text in top.get_legend().get_texts()] == [
        "95 % band",
        "regret",
        "worst, at 0.5",
    ]
    assert bottom.get_xlabel() == "threshold"


def test_decision_curves_are_of_the_model_recalibrated_always_and_never():
    found = a_curve(label="ill")
    _, bottom = plot_regret_curve(found)
    drawn = {line.get_label(): np.asarray(line.get_ydata()) for line in bottom.lines}
    np.testing.assert_array_equal(drawn["model"], found.net_benefit)
    np.testing.assert_array_equal(drawn["recalibrated"], found.recalibrated)
    np.testing.assert_array_equal(drawn["always act"], found.treat_all)
    assert set(drawn["never act"]) == {0}
    assert bottom.get_xlabel() == "threshold of class ill"
    # Far below zero nobody acts: what lies there would press the rest together.
    low, high = bottom.get_ylim()
    assert -0.3 * high < low < 0 < found.net_benefit.max() < high


def test_a_difference_has_a_panel_of_its_own():
    found = a_curve(other=True)
    *_, last = plot_regret_curve(found)
    np.testing.assert_array_equal(last.lines[0].get_ydata(), found.difference.value)
    low, high = last.get_ylim()
    assert low == -high
    assert high > found.difference.high.max()


def test_a_regret_shows_its_interval_and_what_is_recovered():
    found = a_regret()
    ax = plot_regret(found)
    (bar,) = [one for one in ax.collections if isinstance(one, LineCollection)]
    np.testing.assert_allclose(bar.get_segments()[0], [[0.05, 0], [0.2, 0]])
    dots = [line.get_xydata()[0].tolist() for line in ax.lines if line.get_marker() == "o"]
    assert dots == [[0.1, 0], [0.08, 1], [0.002, 2]]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["regret", "recovered", "if calibrated"]
    assert ax.get_xlabel() == "per row, in the unit of the costs"
    assert_texts_apart_and_inside(ax.figure)
    given = axes()
    assert found.plot(given) is given


def test_rcparams_stay_as_they_are():
    before = dict(matplotlib.rcParams)
    plot_regret_curve(a_curve(other=True))
    plot_regret(a_regret())
    assert dict(matplotlib.rcParams) == before
