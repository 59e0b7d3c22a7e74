"""Titles of panels and what is written above the panels."""

import numpy as np
import pytest

import calibrant

Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.mark.parametrize("title_first", [True, False])
def test_a_title_lies_above_the_legend_above_a_panel(title_first):
    rng = np.random.default_rng(0)
    score = rng.random(500)
    curve = calibrant.reliability_curve(rng.random(500) < 1 / (1 + np.exp(-12 * (score - 0.5))), score)
    figure = Figure(figsize=(3.5, 5), layout="constrained")
    ax = figure.subplots()
    if title_first:
        ax.set_title("large")
    curve.plot(ax, histogram=False)
    if not title_first:
        ax.set_title("large")
    figure.draw_without_rendering()
    key, title, panel = ax.get_legend().get_window_extent(), ax.title.get_window_extent(), ax.bbox
    assert key.y0 >= panel.y1 - 1  # the case in question: the legend is above the panel
    assert title.y0 >= key.y1 - 1
    assert title.y1 <= figure.bbox.y1
