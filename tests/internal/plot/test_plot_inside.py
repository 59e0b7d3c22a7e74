"""The pictures: what is drawn, where it lies, and that nothing around them is disturbed."""

from types import SimpleNamespace

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from calibrant import plot
from calibrant.inputs import house_style as house


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


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    plt.close("all")
    yield
    plt.close("all")


def axes(width=3.4, height=3.8):
    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def curves_of(ax):
    """Lines of curves: neither the diagonal nor the ticks of single rows."""
    return [line for line in ax.lines if line.get_label() != "calibrated" and line.get_marker() != "|"]


def test_the_colour_of_a_curve_tells_the_side():
    grid = np.linspace(0, 1, 201)
    middle = 0.5 + 0 * grid
    known = {"value": middle, "lce": middle - grid, "low": middle - 0.1, "high": middle + 0.1}
    ax = plot.curve(a_curve(n_eff=np.full(201, 500.0), **known), axes())
    found = {line.get_label(): line for line in curves_of(ax)}
    assert list(found) == list(house.SIDES)
    for name, inside, color in zip(house.SIDES, (0.8, 0.2, 0.5), house.SIDE_COLORS, strict=True):
        at = int(np.argmin(np.abs(grid - inside)))
        assert [k for k, line in found.items() if np.isfinite(line.get_ydata()[at])] == [name]
        assert found[name].get_color() == color
