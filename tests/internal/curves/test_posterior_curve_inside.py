"""The curve of the posterior: its number, its band, where it answers, and scores that are few."""

import numpy as np
import pytest

from calibrant.curves import posterior_curve
from calibrant.score_data import Residuals, Sample
from calibrant.settings import CURVES
from oracles import local_lines as oracle


def data(n=400, seed=0, power=1.6):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng.random(n) < score**power, score


# --- the band --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "n", "every"), [(0.5, 80, 7), (0.95, 80, 7), (0.9, 900, 91)])
def test_the_intervals_of_the_rows_equal_weighted_least_squares(level, n, every):
    outcome, score = data(n)
    if n > 80:  # windows hold few of the rows
        score = (np.argsort(np.argsort(score)) + 0.5) / n
    residuals = Residuals.of(Sample(score, outcome))
    nodes = np.unique(np.concatenate([score, np.linspace(0, 1, 21)]))
    nearby = posterior_curve._LocalLines.of(residuals, nodes)
    (low, high), rows = nearby.intervals(level), nearby.rows
    frequency = np.clip(score + np.interp(score, nodes, nearby.gap), 0, 1)
    for k in range(0, nodes.size, every):
        about = {"window": CURVES.window, "far": CURVES.distance, "wall": CURVES.distance_offset}
        expected = oracle.interval(score, outcome, nodes[k], frequency, level=level, **about)
        inside = score.min() <= nodes[k] <= score.max()
        if inside:
            found = rows[k], max(low[k], 0.0), min(high[k], 1.0)
            assert found == pytest.approx(expected, abs=1e-6)
