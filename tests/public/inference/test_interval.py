"""The parts of an interval: worlds with a known error, and the errors under which an estimate is usual."""

import numpy as np
import pytest

import calibrant


@pytest.mark.parametrize("estimator", ["uniform:10", "density"])
def test_the_scale_of_weights_does_not_move_the_interval_of_a_named_estimator(estimator):
    rng = np.random.default_rng(6)
    p, weight = rng.beta(0.3, 0.3, 20), rng.uniform(0.1, 2, 20)
    y = rng.random(20) < p
    ends = []
    for times in (1.0, 1.37, 0.0731):
        found = calibrant.estimate(y, p, estimator=estimator, sample_weight=times * weight)
        ends.append((found.low, found.high))
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)
    assert ends[2] == pytest.approx(ends[0], abs=1e-9)


def test_intervals_keep_growing_with_the_level():
    rng = np.random.default_rng(3)
    score = rng.random(400)
    outcome = rng.random(400) < score + 0.12 * np.sin(3 * score)
    width = [
        found.high - found.low
        for found in (calibrant.estimate(outcome, score, level=level) for level in (0.95, 0.99, 0.999))
    ]
    assert width[1] > 1.15 * width[0]
    assert width[2] > 1.1 * width[1]
