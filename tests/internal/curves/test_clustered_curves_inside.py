"""Curves, diagrams, local errors and calibrators of rows that belong together."""

import numpy as np
import pytest

import calibrant
from calibrant.curves.band import wilson
from calibrant.score_data import Sample
from calibrant.score_data.clusters import DesignEffect


@pytest.fixture(scope="module")
def rows():
    """Sixty questions with one score and eight answers that correlate."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(60), 8)
    p = rng.uniform(0.05, 0.95, 60)[cluster]
    return rng.random(480) < rng.beta(2 * p, 2 - 2 * p)[8 * cluster], p, cluster


def test_the_bins_are_the_same_and_their_intervals_are_those_of_fewer_rows(rows):
    y, p, cluster = rows
    alone, together = (calibrant.reliability_diagram(y, p, n_bins=8, cluster=c) for c in (None, cluster))
    for name in ("edges", "score", "frequency", "count", "error"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))
    effect = DesignEffect.of(Sample(p, y), cluster).effect
    low, high = wilson(alone.frequency, alone.count / effect, 0.95)
    assert together.low == pytest.approx(low, abs=1e-12, nan_ok=True)
    assert together.high == pytest.approx(high, abs=1e-12, nan_ok=True)
