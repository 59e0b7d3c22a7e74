"""Pictures of decisions: net benefit above the regret, the cost by threshold, and risk-coverage curves."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.collections import PolyCollection
from test_plot import _no_figure_is_left, assert_texts_apart_and_inside, axes  # noqa: F401

import calibrant
from calibrant import plot


@pytest.mark.full
def test_the_axis_spans_the_thresholds_that_matter():
    rng = np.random.default_rng(0)
    for score, low, high in (
        (rng.beta(0.5, 40, 5000), (0.0, 0.01), (0.1, 0.3)),
        (1 - rng.beta(0.5, 40, 5000), (0.7, 0.97), 1.0),
        (rng.random(2000), (0.0, 0.05), (0.95, 1.0)),
    ):
        curve = calibrant.regret_curve(rng.random(len(score)) < score, score)
        left, right = plot.regret(curve)[-1].get_xlim()
        assert np.min(low) <= left <= np.max(low)
        assert np.min(high) <= right <= np.max(high)
        # Beyond it, the model does as always or never acting does.
        outside = (curve.thresholds < left) | (curve.thresholds > right)
        simple = np.maximum(curve.treat_all, 0)
        assert (np.abs(curve.net_benefit - simple)[outside] <= 0.01 * simple.max()).all()
        plt.close("all")


def test_several_risk_coverage_curves_are_told_apart():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 300)
    y = np.array([rng.choice(3, p=row) for row in p])
    found = {"good": calibrant.risk_coverage(y, p, rng=0), "poor": calibrant.risk_coverage(y, p[::-1], rng=0)}
    ax = plot.risk_coverage(found | {"again": found["good"]})
    curves = [line for line in ax.lines if line.get_drawstyle() == "steps-pre"]
    assert len({line.get_color() for line in curves}) == 3
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [f"{name}, {found[name if name != 'again' else 'good'].aurc.value:.3g}"
                     for name in ("good", "poor", "again")]  # fmt: skip
    assert not [one for one in ax.collections if isinstance(one, PolyCollection)]
    assert len([one for one in plot.risk_coverage(found).collections if isinstance(one, PolyCollection)]) == 2
    # Fewer than ten rows tell nothing.
    assert all(line.get_xdata()[1] * 300 >= 10 - 1e-9 for line in curves)
    assert_texts_apart_and_inside(ax.figure)
    with pytest.raises(ValueError, match="1 to 6 curves"):
        plot.risk_coverage({})
